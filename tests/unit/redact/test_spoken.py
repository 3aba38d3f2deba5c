"""Credentials that languages and commands hold in their own way: all of the secret goes, the notation stays."""

import pytest

from convmem.redact import redact

PUT = "[REDACTED:credential]"


def in_json(text: str) -> str:
    """A text as it stands in a string of JSON."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('password = os.environ.get("X", "', '")'),
        ("password: str = os.getenv('X', '", "')"),
        ("'password' => env('DB_PASSWORD', '", "'),"),
        ('token = config.get("db.token", default="', '")'),
        ('token = config.get(\n    "db.token",\n    "', '",\n)'),
        ("password = process.env.X || '", "'"),
        ("password: process.env.X ?? '", "',"),
        ('password = os.environ["X"] if "X" in os.environ else "', '"'),
        ('token = os.environ.get("X") or "', '"'),
        ("password=${X:-", "}"),
        ("password=${X=", "} b"),
        ("image: ${DB_PASSWORD:-", "}"),
    ],
)
@pytest.mark.parametrize("written", [str, in_json])
def test_a_default_is_taken_and_the_reference_stays(before: str, after: str, written: type):
    before, after = written(before), written(after)
    assert redact(f"{before}hunter 2{after}") == before + PUT + after


def test_of_a_choice_both_are_taken():
    assert redact('token = $A ? "x y" : "z"') == f'token = $A ? "{PUT}" : "{PUT}"'
    assert redact('token = "x y" if b else "z"') == f'token = "{PUT}" if b else "{PUT}"'
    assert redact('token = "x y" + "z"') == f'token = "{PUT}" + "{PUT}"'


@pytest.mark.parametrize(
    "text", ["{token:-1}", "a-token:-b", "${TOKEN:-$OTHER}", "${client-secret-name}", "${TOKEN:+1}"]
)
def test_what_is_no_default_stays(text: str):
    assert redact(text) == text


@pytest.mark.parametrize("between", [",", ", ", ",\n  "])
@pytest.mark.parametrize("written", [str, in_json])
def test_every_element_of_a_list_is_taken(between: str, written: type):
    text = written('{"password": ["a b"' + between + '"c\'d"' + between + '"e"], "n": ["f"]}')
    assert redact(text) == written('{"password": ["' + PUT + '"], "n": ["f"]}')
    assert redact("tokens = ['a1', 'b2']") == f"tokens = ['{PUT}']"


@pytest.mark.parametrize("end", ["EOF", "'EOF'", '"EOF"', "-EOF", "~EOF", "<EOF"])
@pytest.mark.parametrize("written", [str, in_json])
def test_a_here_document_is_taken_up_to_its_end(end: str, written: type):
    text = written(f"password=<<{end}\n  hunter\n\n  two \\ three\n  EOF\nb=1")
    assert redact(text) == written(f"password=<<{end}\n  ") + PUT + written("\n  EOF\nb=1")


def test_of_a_here_document_without_an_end_the_first_line_is_taken():
    assert redact("password=<<EOF\nhunter 2\nb\n") == f"password=<<EOF\n{PUT}\nb\n"
    assert redact("cout<<token<<endl;\nb\n") == "cout<<token<<endl;\nb\n"


@pytest.mark.parametrize("between", [",", ", ", ",\n  "])
@pytest.mark.parametrize("name", ["name", "key", "Name"])
@pytest.mark.parametrize("written", [str, in_json])
def test_a_value_stands_beside_its_name_before_or_behind(between: str, name: str, written: type):
    start, end = '{"' + name + '":"db_password"', '"value":"'
    for before, after in (
        (start + between + end, '"}'),
        (start + between + '"type":"text"' + between + end, '"}'),
        ('{"value": "', '"' + between + '"' + name + '": "db_password"}'),
    ):
        assert redact(written(f"{before}x y{after}")) == written(before) + PUT + written(after)
        other = written(f"{before}x y{after}").replace("password", "mode")
        assert redact(other) == other


@pytest.mark.parametrize(
    "before",
    [
        *("mysql -p", "mysql -u root -p", "mysqldump --host=db -uroot -p'", "mariadb shop -p"),
        *("docker login -u ann -p ", "docker login r.example.com -u ann -p ", 'az login -u ann -p "'),
        *("mongosh --host db -u ann -p ", "redis-cli -h db -a ", "helm registry login -p ", "sshpass -p "),
    ],
)
def test_the_short_flag_of_a_command_holds_a_password(before: str):
    after = before[-1] if before[-1] in "'\"" else ""
    assert redact(f"{before}hunter2{after} b") == f"{before}{PUT}{after} b"
    assert redact(f"{before}$PASS{after} b") == f"{before}$PASS{after} b"


@pytest.mark.parametrize(
    "text",
    ["mysql -p shop", "mysql -P 3306", "docker run -p 80:80 a", "docker login; a -p b", "git login -p b", "mysql -p"],
)
def test_another_flag_stays(text: str):
    assert redact(text) == text
