"""A credential is known by its name: after `=` always, after a colon if it is quoted or telling, in prose never."""

import pytest

from convmem.redact import redact

ALL_NAMES = """password passwd passphrase passcode PASSWORD Password DB_PASSWORD dbPassword db-password db_pass secret
client_secret clientSecret app-secret secret_key SECRET_KEY_BASE token access_token accessToken auth_token refresh-token
csrfToken api_key apikey apiKey API-KEY x-api-key X-Api-Key OPENAI_API_KEY OPENAI_KEY private_key privateKey
credential AWS_SECRET_ACCESS_KEY encryption_key signing-key account_key AccountKey SharedAccessKey master_key pwd pw
mysql_pwd _auth _authToken PASSWORD_2 API_KEY_PROD password1 Passwort Kennwort contraseña senha пароль 密码 口令
パスワード 暗証番号 비밀번호 รหัสผ่าน"""
ALL_OTHERS = """max_tokens max_token tokenizer token_count secretary passwordless password_hash
keyboard monkey key public_key primary_key cache_key sort_key compass bypass pad_token eos_token token_type session_id
author authority passport apikeyring secretion"""
NAMES, OTHERS = ALL_NAMES.split(), ALL_OTHERS.split()
PLAIN = (
    "see docs",
    "required",
    "string;",
    "none",
    "null",
    "true",
    "optional, see below",
    "default.",
    "what?",
    "obligatoria!",
)


def placed(before: str, after: str = "") -> str:
    return f"{before}[REDACTED:credential]{after}"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("between", ["=", " = ", "＝", ":=", " := ", "?=", "+=", "||="])
def test_after_an_equals_sign_any_value_is_taken(name: str, between: str):
    assert redact(f"a {name}{between}x b") == placed(f"a {name}{between}", " b")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("between", [":", ": ", "：", " : "])
def test_after_a_colon_a_telling_value_is_taken(name: str, between: str):
    assert redact(f"a {name}{between}hunter2 b") == placed(f"a {name}{between}", " b")
    assert redact(f"a {name}{between}Hunter b") == placed(f"a {name}{between}", " b")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("quotes", ['""', "''", "``", "“”", "‘’", "「」", "『』"])
def test_after_a_colon_a_quoted_value_is_taken_whatever_it_is(name: str, quotes: str):
    opened, closed = quotes
    assert redact(f"a {name}: {opened}x y{closed} b") == placed(f"a {name}: {opened}", f"{closed} b")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", PLAIN)
def test_after_a_colon_a_word_of_prose_stays(name: str, value: str):
    assert redact(f"the {name}: {value}") == f"the {name}: {value}"


@pytest.mark.parametrize("name", OTHERS)
def test_other_names_keep_their_values(name: str):
    for text in (f"{name}=4096abc", f"{name}: hunter22", f'"{name}": "x y"', f"--{name} hunter22"):
        assert redact(text) == text


def test_passes_are_no_passwords_but_a_flag_of_that_name_is_one():
    assert redact("pass=12 fail=0, pass: hunter22") == "pass=12 fail=0, pass: hunter22"
    assert redact("--pass hunter22") == placed("--pass ")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("between", ["==", " == ", " != ", " >= ", " <= ", "::", " === ", " =~ "])
def test_a_comparison_is_no_value(name: str, between: str):
    assert redact(f"if {name}{between}other1:") == f"if {name}{between}other1:"


@pytest.mark.parametrize("quote", ['"', '\\"', '\\\\\\"', "'"])
@pytest.mark.parametrize("value", ["x", "x y", "x, y: z", "=x", " x", "秘密", "ß", "x;y", "…x…"])
def test_in_json_of_any_depth_the_value_ends_where_its_quotes_do(quote: str, value: str):
    before = f"{{{quote}a{quote}: 1, {quote}password{quote}: {quote}"
    after = f"{quote}, {quote}b{quote}: {quote}kept{quote}}}"
    assert redact(before + value + after) == placed(before, after)


def test_escaped_quotes_belong_to_the_value():
    assert redact(r'{"password": "a\"b c\\", "b": 1}') == placed('{"password": "', '", "b": 1}')
    assert redact(r'"{\"password\": \"a\\\"b c\", \"b\": 1}"') == placed(r'"{\"password\": \"', r'\", \"b\": 1}"')


@pytest.mark.parametrize("value", ["p@ss&w;rd!", "a,b", "a=b==", "a:b", "a/b+c", "a(b)c", "a|b", "a'b", "x" * 5_000])
def test_marks_inside_a_value_belong_to_it(value: str):
    assert redact(f"PASSWORD={value} b") == placed("PASSWORD=", " b")
    assert redact(f"PASSWORD={value}\nB=1") == placed("PASSWORD=", "\nB=1")


@pytest.mark.parametrize(
    "after", ["&b=1", ";b=1", ",b=1", ", b", ". B", ") b", "] b", "} b", "<br>", '" b', "\n", "\0", "。b", "ครับ"]
)
def test_what_follows_a_value_stays(after: str):
    assert redact(f"a token=hunter2{after}") == placed("a token=", after)


@pytest.mark.parametrize(
    "text", ["password=", "password= ", "password=\n", "?token=&a=1", "token=;a=1", 'token=""', "--password"]
)
def test_without_a_value_nothing_is_put(text: str):
    assert redact(text) == text


@pytest.mark.parametrize("text", ['"password=" is', "`token=`", "'token: '", '"token: " + x', "('password:')"])
def test_a_quote_that_ends_a_text_begins_no_value(text: str):
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "is_secret"),
    [
        ("PWD=/srv/app", False),
        ("PWD=~/app", False),
        ("pwd: C:\\app", False),
        ("pwd=hunter2", True),
        ("pwd: hunter2", True),
    ],
)
def test_the_working_directory_is_no_password(text: str, is_secret: bool):
    assert (redact(text) != text) is is_secret


@pytest.mark.parametrize("value", ["get_token()", "req.body.password", "${PASSWORD}", "[x]", "(x)", "<x>"])
def test_what_is_lost_and_what_stays_of_code(value: str):
    assert ("[REDACTED:" in redact(f"password = {value}")) == (value not in {"<x>", "${PASSWORD}"})
    kept = {"get_token()", "${PASSWORD}", "[x]", "(x)", "<x>"}
    assert (redact(f"password: {value}") == f"password: {value}") == (value in kept)


@pytest.mark.parametrize("name", ["passwords", "DB_PASSWORDS", "tokens", "secrets", "credentials", "API_KEYS"])
def test_a_name_in_the_plural_has_values_behind_an_equals_sign_if_they_are_no_numbers(name: str):
    assert redact(f"{name}=a,b c") == placed(f"{name}=", " c")
    assert redact(f"{name} = '4096 or so'") == placed(f"{name} = '", "'")
    for other in (
        "=1200",
        " = 1,234",
        "=12k",
        ": hunter22",
        "=None",
        "=tokens",
        "=old_keys;",
        " = split(x)",
        " = x.shape",
        " = ['a', 'b']",
    ):
        assert redact(name + other) == name + other


@pytest.mark.parametrize("name", ["password", "API_KEY", "clientSecret", "パスワード"])
@pytest.mark.parametrize("between", [" == ", "==", " != ", " === ", " !== "])
@pytest.mark.parametrize("quote", ['"', "'", "`", '\\"'])
def test_a_literal_that_a_name_is_compared_with_is_taken(name: str, between: str, quote: str):
    before = f"if {name}{between}{quote}"
    assert redact(f"{before}hunter2{quote}: x") == placed(before, f"{quote}: x")
    for other in ("(", "\\n", "a", "string"):
        assert redact(f"{before}{other}{quote}: x") == f"{before}{other}{quote}: x"
    assert redact(f"{before}{quote}: x") == f"{before}{quote}: x"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\u202f", "\u200b", "\u3000", " \t"])
def test_space_is_space_however_wide(name: str, space: str):
    assert redact(f"{name}{space}={space}hunter2 b") == placed(f"{name}{space}={space}", " b")
    assert redact(f"{name}{space}:{space}hunter2 b") == placed(f"{name}{space}:{space}", " b")


@pytest.mark.parametrize("pair", ["()", "[]", "<>", "«»"])
def test_one_word_in_brackets_is_taken_if_it_holds_a_digit(pair: str):
    opened, closed = pair
    for before in ("password: ", "token：", "secret=", '"password": '):
        assert redact(f"{before}{opened}hunter2{closed} b") == placed(before + opened, f"{closed} b")
    for value in ("hunter", "see 2 docs", "a2"):
        assert redact(f"password: {opened}{value}{closed}") == f"password: {opened}{value}{closed}"


@pytest.mark.parametrize("remark", [" (prod)", " (of the shop)", "（本番）"])
def test_a_remark_may_stand_behind_the_name(remark: str):
    assert redact(f"password{remark}: hunter2") == placed(f"password{remark}: ")
    assert redact(f"password{remark} = x") == placed(f"password{remark} = ")
    assert redact(f"password{remark}: Hunters") == f"password{remark}: Hunters"


@pytest.mark.parametrize("kind", ["str", "string, optional", "Optional[str]", "bytes"])
def test_a_type_in_parentheses_is_no_remark(kind: str):
    assert redact(f"token ({kind}): OAuth2.0 access") == f"token ({kind}): OAuth2.0 access"


@pytest.mark.parametrize("indent", ["  ", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\\n"])
def test_in_yaml_the_value_may_stand_below_its_name(indent: str, end: str):
    for between in (f": |{end}{indent}", f": # of 2 shops{end}{indent}", f":{end}{indent}- ", f":{end}- "):
        assert redact(f"password{between}hunter22x{end}b: 1") == placed(f"password{between}", f"{end}b: 1")


@pytest.mark.parametrize("between", ["!!str ", "&shop ", "!!str &shop ", "&shop !!str "])
def test_in_yaml_a_tag_and_an_anchor_are_no_value(between: str):
    assert redact(f"password: {between}hunter2\nb: 1") == placed(f"password: {between}", "\nb: 1")
