"""Values: a reference to one and what stands for one stay, a default and everything else is taken."""

import pytest

from convmem.redact import redact

REFERENCES = (
    *("${DB_PASSWORD}", "$DB_PASSWORD", "${process.env.X}", "${X:?is not set}", "${X:-}", "${X:-$Y}", "${X:-${Y}}"),
    *("${A}${B}", "${{ secrets.X }}", "{{ name }}", "{{ vault.db_password }}", "%DB_PASSWORD%", "%s", "%(password)s"),
    *("{password}", "#{password}", "process.env.DB_PASSWORD", "import.meta.env.VITE_KEY", "var.db_password"),
)
BARE_REFERENCES = (
    *("$1", "$password", "$this->password", "$_ENV['X']", "$env:DB_PASSWORD", "os.environ['X']", 'os.environ["X"]'),
    *("ENV['X']", 'process.env["X"]', 'data["password"]', "getpass.getpass()", 'os.environ.get("X")', 'os.getenv("X")'),
    *('input("Password: ")', 'getenv("X")', "env('DB_PASSWORD')", 'System.getenv("X")', 'click.prompt("Password")'),
)
FILLERS = (
    "YOUR_API_KEY",
    "your-token-here",
    "<your-token>",
    "<token>",
    "xxxxx",
    "XXXXXXXX",
    "***",
    "********",
    "...",
    "••••",
)


@pytest.mark.parametrize("value", [*REFERENCES, *BARE_REFERENCES, *FILLERS])
@pytest.mark.parametrize("between", ["=", " = ", ": ", " := "])
def test_what_only_refers_to_a_value_stays_whole(value: str, between: str):
    for after in ("", " b", "\n", ",", ";", ")"):
        text = f"a password{between}{value}{after}"
        assert redact(text) == text


@pytest.mark.parametrize("value", [*REFERENCES, *FILLERS])
@pytest.mark.parametrize("quote", ['"', "'", "`", '\\"'])
def test_it_stays_in_quotes_that_hold_nothing_else(value: str, quote: str):
    text = f'{{"password": {quote}{value}{quote}}}'
    assert redact(text) == text
    taken = redact(f"password={quote}hunter2 {value}{quote} b")
    assert taken == f"password={quote}[REDACTED:credential]{quote} b"


@pytest.mark.parametrize("value", ["${A}hunter2", "$Ahunter2!", "hunter2$A", "%A%2x", "xxx1", "***1", "your2", "$$1a"])
def test_more_than_a_reference_is_a_value(value: str):
    assert redact(f"password={value} b") == "password=[REDACTED:credential] b"


def test_in_quotes_a_small_name_behind_a_dollar_sign_may_be_a_password():
    assert redact("password='$ecret'") == "password='[REDACTED:credential]'"
    assert redact("password='$SECRET'") == "password='$SECRET'"


@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_doubled_quote_belongs_to_the_value(quote: str):
    text = f"password={quote}it{quote}{quote}s x{quote}, user={quote}{quote}"
    assert redact(text) == f"password={quote}[REDACTED:credential]{quote}, user={quote}{quote}"


@pytest.mark.parametrize("quote", ["\\u0022", "\\u0027", "\\\\u0022", "&quot;", "\\x22"])
def test_quotes_may_be_written_as_numbers(quote: str):
    before, after = f"{{{quote}password{quote}:{quote}", f"{quote},{quote}b{quote}:1}}"
    assert redact(f"{before}x y{after}") == f"{before}[REDACTED:credential]{after}"


@pytest.mark.parametrize("command", ["echo hunter2", "cat /run/x", "pass show $(id -un)", "[REDACTED:credential]"])
def test_a_command_is_taken_whole(command: str):
    assert redact(f"export PASSWORD=$({command}); b") == "export PASSWORD=$([REDACTED:credential]); b"


@pytest.mark.parametrize("value", ["ｈｕｎｔｅｒ２", "Ｈｕｎｔｅｒｓ", "ｈｕｎｔｅｒ＿２"])
def test_a_full_width_value_is_telling_if_it_is_no_plain_word(value: str):
    assert redact(f"password：{value}。次") == "password：[REDACTED:credential]。次"
    assert redact("password：ｒｅｑｕｉｒｅｄ。次") == "password：ｒｅｑｕｉｒｅｄ。次"
