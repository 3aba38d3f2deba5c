"""Named credentials: how a name and its value stand together in prose, code, settings, markup and commands.

A value is taken whatever it is after `=`. After a colon it is taken in quotes, or if it is telling: six characters, and
not one plain lower-case word. The name is the whole last part: not tokens, tokenizer, token_count, secretary.

Rejected: taking names without a value's shape (prose is full of them), and reading each language by its own grammar
(texts of agents are pieces of five languages, cut anywhere).
"""

from convmem.redact.pieces import BREAK, NEWLINE, PLACED, STOP, rest

# A `pwd` that holds a path is the working directory; `pad_token` and its like belong to language models. First letters
# stand outside `(?i:…)`: the matcher skips an alternative by its first letter only if that has one case.
_KEY = "(?i:[_. -]?key)"
_NAME = (
    r"(?:(?:[Pp](?i:ass(?:word|phrase|code|wd|wort|(?<=[_-]pass))|w(?<![a-z0-9]pw)|rivate[_. -]?key"
    r"|wd(?![\"']?[ \t]{0,4}[:=]{1,2}[ \t]{0,4}[\"']?(?:[/~.$]|[a-z]:)))"
    r"|[Ss](?i:ecret(?:[_. -]?(?:access[_. -]?)?key(?:_base)?)?|enha)"
    rf"|[Ss](?i:igning|hared|ervice|ubscription|tripe){_KEY}"
    r"|[Tt](?i:oken(?<!(?:pad|eos|bos|unk|sep|cls|max|min|per|num)[_-]token)(?<!expected token))"
    rf"|[Aa](?i:pi|ccess|uth|ccount|pp|nthropic){_KEY}|[Cc](?i:lient|onsumer){_KEY}|[Cc](?i:redential|ontrase\u00f1a)"
    rf"|[EeMmDdLlOoGg](?i:ncryption|aster|istral|eploy|icense|penai|emini|roq){_KEY}|[Kk](?i:ennwort)"
    r"|_(?i:auth(?<![a-z0-9]_auth)))(?i:[_-]?(?:[0-9]{1,2}|prod|live|staging|dev|test|old|new|b64|base64))?"
    r"|[Пп]ароль|密码|密碼|口令|パスワード|暗証番号|비밀번호|รหัสผ่าน)"
)
NAME_CUES = (
    *("passw", "passphrase", "passcode", "_pass", "-pass", "pwd", "pw", "secret", "credential", "token", "_auth"),
    *("key", "kennwort", "contraseña", "senha", "пароль", "密码", "密碼", "口令", "パスワード", "暗証番号"),
    *("비밀번호", "รหัสผ่าน"),
)
FLAG_CUES = ("--", " -pass", " -token", " -secret", " -api", " -access", "env ", "env\t", "setx")

# A value without quotes: signs, and such marks as stand between signs. An ampersand, a comma or a semicolon ends it if
# another name with a value follows. Letters of other scripts end it, unless it is Latin or Cyrillic or begins with one.
_SIGN = r"A-Za-z0-9!#$%*+/=?@^_~\u00c0-\u00ff-"
_MARK = r".,;:()\[\]{}&|"
_ONE = rf"(?:[{_SIGN}]|(?![;&,][A-Za-z_])[{_MARK}](?=[{_MARK}]{{0,3}}[{_SIGN}]))"
_BETWEEN = (
    rf"(?:{PLACED}|(?!{PLACED}|[;&,][A-Za-z_][A-Za-z0-9_. %-]{{0,40}}[=:]|&(?:quot|lt|gt|#3[49]);)"
    rf"[{_MARK}](?=[{_MARK}]{{0,3}}[{_SIGN}])|[\u0100-\u052f]|[\"'](?=[A-Za-z0-9])|\\(?![nrtu\"'`\\])(?=[{_SIGN}]))"
)
_LETTER = r"(?![\u2000-\u206f])(?![\u3000-\u3011])(?![\uff00-\uff0f])(?![\uff1a-\uff20])[^\x00-\u00ff]"
_BARE = (
    rf"(?!{PLACED}(?!{_ONE}))(?:(?:{PLACED}|{_ONE})[{_SIGN}]*(?:{_BETWEEN}[{_SIGN}]*){{0,256}}"
    rf"|(?:(?<==)|(?<=＝)|(?<= = )){_LETTER}(?:[{_SIGN}]|{_LETTER}){{0,64}})"
)
# No object, no reference, no plain word, no call and no generic type; and none of the words that say what a value is.
_WORDS = (
    "(?:String|SecretStr|Optional|Required|Undefined|Boolean|Unknown|Missing|Invalid|Expired|Incorrect|read-only"
    "|write-only|short-lived|long-lived|case-sensitive|case-insensitive|base64-encoded|auto-generated"
    "|[A-Z][A-Za-z]{0,40}Token)"
)
_TELLING = (
    rf"(?![\[{{(]|\$[\[{{(]|[a-z]{{1,64}}[!?]{{0,3}}(?![{_SIGN}]|[{_MARK}]{{1,4}}[{_SIGN}])"
    rf"|[A-Za-z_][A-Za-z_.]{{0,60}}[(\[<]|{_WORDS}(?![{_SIGN}])){_ONE}{{6}}"
)

# A value in quotes: what may stand before the quote, which quotes there are, and where a placeholder fills them.
_CALL = r"(?:(?:[A-Za-z_][A-Za-z0-9_.]{0,60})?[(\[][ \t]{0,4})?(?:[bBfFrRuUL@$]{1,2}(?=[\"']))?"
_OTHER_QUOTES = r"[\u2018-\u201f]|[\u300c-\u300f]"
_ENTITY = "&(?:quot|#3[49]);"
_QUOTE = rf"(?:\\{{0,8}}(?:\"{{3}}|'{{3}}|[\"'`])|{_OTHER_QUOTES}|{_ENTITY})"
_QUOTED = _CALL + _QUOTE
_FILLED = rf"{PLACED}(?:\\{{1,8}}n){{0,2}}(?:\\{{0,8}}[\"'`]|{_OTHER_QUOTES}|[\r\n&]|{STOP})"
# Looked at before it is taken: a value that stays is then not read again as if it had no quote. Group 3 is the quote.
_TAKEN = rf"(?=((?:{_CALL}({_QUOTE}))?))\2"


def _inside(quote: str) -> str:
    """What stands between two quotes of a kind; backslashes escape, and one line break may split it."""
    return (
        rf"(?<=[^\\]{quote})(?!{_FILLED})(?:[^\\\r\n{quote}]|\\[^\r\n])[^\\\r\n{quote}]*"
        rf"(?:\\[^\r\n][^\\\r\n{quote}]*){{0,4096}}(?:{BREAK}[^\\\"' \t\r\n]{{1,512}}(?={quote}))?"
    )


# Which of these a value is, its last sign before it says.
_VALUE = "|".join(
    (
        _inside('"'),
        _inside("'"),
        rf"(?<=`)(?!{_FILLED})[^`\r\n]{{1,4096}}",
        # JSON inside a string: the value ends at the quote with as many backslashes as the first one had.
        rf"(?<=\\[\"'])(?!{_FILLED}|\3|[\"'\r\n])[^\\\r\n\"]*(?:(?!\3)\\{{1,8}}[\"']?[^\\\r\n\"]*){{0,4096}}",
        rf"(?:(?<=[\u2018-\u201f])|(?<=[\u300c-\u300f]))(?!{_FILLED})(?:(?![\u2018-\u201f])(?![\u300c-\u300f])[^\r\n]){{1,512}}",
        rf"(?<=;)(?!{_FILLED}|&)[^&\r\n]*(?:(?!{_ENTITY})&[^&\r\n]*){{0,64}}",
        rf"(?<=[^=]>)(?!{PLACED}<)[^<>\r\n]{{1,512}}(?=</)",
        rf"(?<![\"'`;])(?<![\u2018-\u201f])(?<![\u300c-\u300f])(?<![^=]>){_BARE}"
        rf"(?:{rest('A-Za-z0-9_+/-', 8)}(?=[ \t]{{0,8}}(?:[\r\n\"'`\\]|{STOP})))?",
    )
)

# Behind the name, what closes it. If no quote does, a quote behind the colon may end a text that the name stands in.
_CLOSED = (
    rf"(?:(?:\\{{0,8}}[\"'`]|{_OTHER_QUOTES}|{_ENTITY})\]?|(?:\](?=[ \t]{{0,4}}=>)|\*{{1,2}})?"
    rf"(?![ \t]{{0,4}}[:=]{{1,2}}[ \t]{{0,4}}\\{{0,8}}[\"'`](?:[ \t\r\n,;)\]}}:.+]|{STOP})))"
)
_GAP = r"[ \t]{0,16}\u3000?"
# A quoted name may have its value on the next line; behind any other, a quote there begins something else.
_AFTER = rf"(?:(?<=[\"']:){NEWLINE}[ \t]{{0,40}}(?=\\{{0,8}}[\"']))?{_GAP}(?:(?:\*{{1,2}}|</[a-z]{{1,8}}>){_GAP})?"
# Then what makes the value one of the name: an equals sign, also behind a type; a colon; an arrow; a comma of a call.
_TYPE = r"(?::[ \t]{0,4}[A-Za-z&*_][A-Za-z0-9_.\[\]|<>?&*, ]{0,40}=(?![=>])|string[ \t]{0,4}:?=)"
_SIGNS = "|".join(
    (
        r"(?:\?|\+|\|\||\?\?)?=(?![=>]|~ )|:=|＝",
        rf"{_TYPE}(?={_GAP}{_QUOTED})",
        rf"(?::(?![:=])|：|=>(?={_GAP}(?:{_QUOTED}|[^ \t\r\n]{{0,63}}[0-9])))(?={_AFTER}(?:{_QUOTED}|{_TELLING}))",
        rf"(?<=[\"']),(?={_GAP}[\"'](?=[^\"'\r\n]{{0,63}}[0-9])[^\"'\r\n]{{6}})",
    )
)
_ASSIGNED = rf"{_CLOSED}{_GAP}(?:{_SIGNS}){_AFTER}"
# Or the value stands below the name: in a block of YAML, behind a backslash, or alone on its line.
_ALONE = (
    rf"(?:{NEWLINE}[ \t]{{0,40}}){{1,2}}(?:```[a-z]{{0,16}}{NEWLINE})?(?![./])(?=[^\r\n]{{0,512}}[0-9])"
    rf"(?=[^\r\n]{{0,512}}[A-Za-z])(?=[A-Za-z0-9+/_.~!@#$%^&*-]{{8,512}}={{0,2}}[ \t]{{0,8}}(?:[\r\n]|{STOP}))"
)
_BELOW = rf"{_GAP}(?:[:=]|：|＝){_GAP}(?:(?:[|>][+-]?|\\){NEWLINE}[ \t]{{1,40}}(?=[!-~])|{_ALONE})"
# Or in an element of that name, or as `value` beside `name`.
_ELEMENT = r"(?:</key>[ \t\r\n]{0,40}<string)?>(?=[^<>\r\n]{1,512}</)"
_PAIRED = r"[\"']?,?[ \t\r\n]{1,40}(?:- )?[\"']?(?i:value)[\"']?[ \t]{0,4}(?:[:=]|=>)[ \t]{0,4}"
NAMED = rf"({_NAME}(?:{_ASSIGNED}|{_BELOW}|{_ELEMENT}|{_PAIRED}){_TAKEN})(?:{_VALUE})"

# Behind the flag of a command, behind a space.
_FLAG = (
    r"(?:(?<![A-Za-z0-9_-])--|(?<= )-(?=[Pp]ass|[Tt]oken|[Ss]ecret|[Aa]pi|[Aa]ccess)"
    r"|(?<![A-Za-z0-9])(?:ENV|setx)[ \t]{1,4})[A-Za-z0-9_-]{0,40}?"
)
FLAGGED = rf"({_FLAG}{_NAME}[ \t]{{1,4}}(?=(?!-)(?:{_QUOTED}|{_TELLING})){_TAKEN})(?:{_VALUE})"
# Both encoded for a URL, once or more often.
ENCODED = (
    rf"({_NAME}(?:%22|%27)?%(?:25){{0,3}}3[AaDd](?:%20|\+)?(?:%22|%27)?)(?![\[%])(?:[A-Za-z0-9!$()*+._~@/-]"
    r"|%(?!(?:25){0,3}(?:2[0267]|0[AaDd]|3[BbCc]|7[Dd]))(?:25){0,3}[0-9A-Fa-f]{2}|%20(?=[^ ]{0,256}%22)){1,512}"
)
# As languages of their own say it: SQL, .netrc, sshpass, and the user of curl.
_SPACE = r"[ \t]{1,4}"
SPOKEN = (
    rf"((?i:identified{_SPACE}by{_SPACE}(?:password{_SPACE})?['\"]|login{_SPACE}[!-~]{{1,128}}[ \t\r\n]{{1,8}}"
    rf"password{_SPACE}|sshpass{_SPACE}-p[ \t]?['\"]?)|(?<![A-Za-z0-9_])PASSWORD{_SPACE}')"
    rf"(?!{PLACED})[^'\" \t\r\n]{{1,256}}"
)
USER = (
    r"((?<![A-Za-z0-9-])-(?:u|-user|-proxy-user)[ \t=]{0,2}[\"']?[A-Za-z0-9._@%+-]{1,64}:)"
    rf"(?![0-9]{{1,9}}(?![{_SIGN}]))(?={_TELLING}){_BARE}"
)
