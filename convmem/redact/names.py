"""Names of credentials, in the scripts people write them in, and the cues that one of them is in a text.

The name is the whole last part of a word: not tokenizer, token_count, secretary. First letters stand outside `(?i:…)`:
the matcher skips an alternative by its first letter only if that has one case.

Rejected: a boundary before a name (Thai, Chinese and Japanese put no space there, and `dbPassword` has none), and all
names in every language (these are the ones that texts of programs hold).
"""

from convmem.redact.pieces import EITHER, EQUALS, GAP, SIGN


def _full_width(name: str) -> str:
    """A name in full-width letters: small, capital, and with one capital."""
    wide = ("".join(chr(ord(letter) + 0xFEE0) for letter in one) for one in (name, name.upper(), name.capitalize()))
    return "|".join(wide).replace("＿", "[＿_ -]?")


# A `pwd` that holds a path is the working directory; `pad_token` and its like belong to language models, and the token
# that is expected, or comes next, to parsers.
_KEY = "(?i:[_. -]?key)"
_OTHER_TOKENS = (
    r"(?<!(?:pad|eos|bos|unk|sep|cls|max|min|per|num)[_-]token)(?<!(?:total|input)[_-]token)"
    r"(?<!output[_-]token)(?<!completion[_-]token)(?<!(?:next|last) token)(?<!expected token)(?<!current token)"
)
# What may stand behind the name and still belong to it.
_WHICH = (
    "(?:(?i:[_-]?(?:[0-9]{1,2}|prod|live|staging|dev|test|old|new|b64|base64)|[_-](?:for|of)[_-][a-z0-9_-]{1,24}(?![a-z0-9_-]))"
    "|For[A-Z][A-Za-z0-9]{0,24}(?![A-Za-z0-9]))?"
)
_API = r"[Aa](?i:pi)[ _-]?(?:キー|키|密钥|密鑰|金鑰|คีย์)"
# Tokens are also counted, and these languages have no plural for that.
_NO_NUMBER = rf"(?! ?{EITHER} ?[0-9][0-9,.]{{0,16}}(?![{SIGN}]))"
_OF_OTHERS = "|".join(
    (
        *(
            "[Пп]ароль",
            "密码",
            "密碼",
            "口令",
            "パス(?:ワード|フレーズ)",
            "暗証番号",
            "비밀(?:번호|키)",
            "암호",
            "รหัส(?:ผ่าน|ลับ)",
        ),
        *(name + _NO_NUMBER for name in ("トークン", "令牌", "토큰", "โทเค็?น")),
        *("シークレット", "アクセスキー", "密钥", "密鑰", "私钥", "私鑰", "金鑰", "시크릿", r"คีย์ ?(?i:api)"),
        rf"秘密(?:鍵|(?={GAP}{EQUALS}))",
        *map(_full_width, ("password", "passwd", "token", "secret", "api_key", "pwd")),
    )
)
# No name begins with other letters than these two: most of a text is passed over by them.
_BEGUN = "[PpSsTtAaCcEeMmDdLlOoGgKk_][AaWwRrEeHhUuTtIiOoPpCcNnLl]"
_LATIN = (
    r"(?:[Pp](?i:ass(?:word|phrase|code|wd|wort|(?<=[_-]pass))|w(?<![a-z0-9]pw)|rivate[_. -]?key"
    r"|wd(?![\"']?[ \t]{0,4}[:=]{1,2}[ \t]{0,4}[\"']?(?:[/~.$]|[a-z]:)))"
    r"|[Ss](?i:ecret(?:[_. -]?(?:access[_. -]?)?key(?:_base)?)?|enha)"
    rf"|[Ss](?i:igning|hared|ervice|ubscription|tripe){_KEY}"
    rf"|[Tt](?i:oken{_OTHER_TOKENS})"
    rf"|[Aa](?i:pi|ccess|uth|ccount|pp|nthropic){_KEY}|[Cc](?i:lient|onsumer){_KEY}|[Cc](?i:redential|ontrase\u00f1a)"
    rf"|[EeMmDdLlOoGg](?i:ncryption|aster|istral|eploy|icense|penai|emini|roq){_KEY}|[Kk](?i:ennwort)"
    rf"|_(?i:auth(?<![a-z0-9]_auth))){_WHICH}"
)
LATIN = f"(?={_BEGUN}){_LATIN}"
NAME = rf"(?:(?={_BEGUN})(?:{_LATIN}|{_API})|(?![\x00-\x7f])(?:{_OF_OTHERS}))"
NAME_CUES = (
    *("passw", "passphrase", "passcode", "_pass", "-pass", "pwd", "pw", "secret", "credential", "token", "_auth"),
    *("key", "kennwort", "contraseña", "senha", "пароль", "密码", "密碼", "口令", "パスワード", "パスフレーズ"),
    *("暗証番号", "비밀번호", "암호", "รหัส", "キー", "키", "密钥", "密鑰", "金鑰", "คีย์", "トークン", "令牌", "토큰"),
    *(
        "โทเค",
        "シークレット",
        "秘密",
        "私钥",
        "私鑰",
        "시크릿",
        "ｐａｓｓｗ",
        "ｔｏｋｅｎ",
        "ｓｅｃｒｅｔ",
        "ｋｅｙ",
        "ｐｗｄ",
    ),
)
