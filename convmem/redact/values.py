"""Values of named credentials: with and without quotes, which of them are telling, and which only refer to one.

A reference (`${DB_PASSWORD}`, `$1`, `%NAME%`, `{{ name }}`, `process.env.X`, `os.environ["X"]`, `getpass()`) and a
filler (`YOUR_API_KEY`, `xxxx`, `***`) say nothing and stay. Everything else that stands behind `=` is a value.

Rejected: reading each language by its own grammar (texts of agents are pieces of five languages, cut anywhere), and
asking how random a value is (people choose theirs).
"""

from convmem.redact.pieces import BREAK, MARK, ONE, PLACED, SIGN, STOP, rest

# A value without quotes: signs, and such marks as stand between signs. An ampersand, a comma or a semicolon ends it if
# another name with a value follows. Letters of other scripts end it, unless it is Latin or Cyrillic or begins with one.
_BETWEEN = (
    rf"(?:{PLACED}|(?!{PLACED}|[;&,][A-Za-z_][A-Za-z0-9_. %-]{{0,40}}[=:]|&(?:quot|lt|gt|#3[49]);)"
    rf"[{MARK}](?=[{MARK}]{{0,3}}[{SIGN}])|[\u0100-\u052f]|[\"'](?=[A-Za-z0-9])|\\(?![nrtu\"'`\\])(?=[{SIGN}]))"
)
_LETTER = r"(?![\u2000-\u206f])(?![\u3000-\u3011])(?![\uff00-\uff0f])(?![\uff1a-\uff20])[^\x00-\u00ff]"
# Full-width letters and digits, six or more, and not one plain lower-case word.
_WIDE = r"(?![\uff1a-\uff20\uff3b-\uff3e])[\uff01-\uff5a]"
WIDE = rf"(?=(?:{_WIDE}){{0,63}}(?:[\uff10-\uff19]|[\uff21-\uff3a]))(?:{_WIDE}){{6,64}}"
BARE = (
    rf"(?![(\[{{]?{PLACED}(?!{ONE}))(?:(?:{PLACED}|{ONE})[{SIGN}]*(?:{_BETWEEN}[{SIGN}]*){{0,256}}"
    rf"|(?:(?<==)|(?<=＝)|(?<= = )){_LETTER}(?:[{SIGN}]|{_LETTER}){{0,64}}|{WIDE})"
)
# No object, no reference, no plain word, no call and no generic type; and none of the words that say what a value is.
_WORDS = (
    "(?:String|SecretStr|Optional|Required|Undefined|Boolean|Unknown|Missing|Invalid|Expired|Incorrect|read-only"
    "|write-only|short-lived|long-lived|case-sensitive|case-insensitive|base64-encoded|auto-generated"
    "|[A-Z][A-Za-z]{0,40}Token)"
)
TELLING = (
    rf"(?:(?![\[{{(]|\$[\[{{(]|[a-z]{{1,64}}[!?]{{0,3}}(?![{SIGN}]|[{MARK}]{{1,4}}[{SIGN}])"
    rf"|[A-Za-z_][A-Za-z_.]{{0,60}}[(\[<]|{_WORDS}(?![{SIGN}])){ONE}{{6}}|{WIDE})"
)
# One word of letters and digits in brackets.
WRAPPED = rf"[(\[<\u00ab](?=[{SIGN}.]{{0,63}}[0-9])(?=[{SIGN}.]{{6,128}}[)\]>\u00bb])"

# A value in quotes: what may stand before the quote, which quotes there are, and where a placeholder fills them.
CALL = r"(?:(?:[A-Za-z_][A-Za-z0-9_.]{0,60})?[(\[][ \t]{0,4})?(?:[bBfFrRuUL@$]{1,2}(?=[\"']))?"
OTHER_QUOTES = r"[\u2018-\u201f]|[\u300c-\u300f]"
ENTITY = r"(?:&(?:quot|#3[49]);|\\{1,8}(?:u00|x)2[27])"
QUOTE = rf"(?:\\{{0,8}}(?:\"{{3}}|'{{3}}|[\"'`])|{OTHER_QUOTES}|{ENTITY})"
# The same, only looked at.
QUOTED = rf"{CALL}(?:\\{{0,8}}[\"'`]|{OTHER_QUOTES}|{ENTITY})"
FILLED = rf"{PLACED}(?:\\{{1,8}}n){{0,2}}(?:\\{{0,8}}[\"'`]|{OTHER_QUOTES}|{ENTITY}|[\r\n&]|{STOP})"
# A command whose output is the value.
COMMAND = r"\$\((?=(?:[^()\r\n]|\([^()\r\n]{0,200}\)){1,200}\))"
# Looked at before it is taken: a value that stays is then not read again as if it had no quote. Group 4 is the quote.
_TAKEN = rf"(?=((?:{CALL}({QUOTE}))?))\3"

# What refers to a value. In quotes only a name in capital letters is a variable: `'$ecret'` may well be a password.
_DEFAULT = rf"(?::?[?+][^{{}}\r\n]{{0,80}}|:?[=-](?:{PLACED}|\$\{{?[A-Za-z0-9_]{{1,64}}\}}?)?)"
_IN_BRACKETS = r"\[\\{0,8}[\"']?[A-Za-z_.-][A-Za-z0-9_.-]{0,60}\\{0,8}[\"']?\]"
_VARIABLES = "|".join(
    (
        rf"(?:\$\{{[A-Za-z0-9_.!#:>\[\]-]{{1,64}}?{_DEFAULT}?\}}){{1,4}}",
        r"\$?\{\{[^{}\r\n\"']{1,120}\}\}",
        r"#?\{[A-Za-z_][A-Za-z_.]{0,60}(?:![rsa])?\}",
        rf"\$(?:(?i:env):)?(?:[A-Z_][A-Z0-9_]{{0,63}}|(?<![\"'`]\$)[A-Za-z_]{{1,64}}|[0-9])"
        rf"(?:(?:->|\.)[A-Za-z_]{{1,64}}|{_IN_BRACKETS}){{0,4}}",
        r"%[A-Za-z_][A-Za-z0-9_]{0,63}%|%[sdvrq]|%\([A-Za-z_]{1,64}\)s",
        rf"\$\({PLACED}\)",
        r"(?:process\.env|import\.meta\.env|os\.environ|secrets|env|var)\.[A-Za-z_][A-Za-z0-9_]{0,63}!?",
        rf"[A-Za-z_][A-Za-z0-9_.]{{0,60}}(?=\[\\{{0,8}}[\"']){_IN_BRACKETS}",
        r"!(?:secret|env_var|vault|GetAtt|ImportValue)",
        r"<[A-Za-z][A-Za-z _.-]{0,60}>",
        r"<?(?i:your|insert|enter|replace)[_-](?:[A-Za-z]{1,16}[_-]){0,6}[A-Za-z]{1,16}>?",
        r"[xX]{3,64}|\*{3,64}|\u2022{3,64}|\.{3}|\u2026",
    )
)
_GETTER = (
    r"(?:[A-Za-z_$][A-Za-z0-9_$]{0,40}(?:\.|::|->)){0,4}(?:(?:get|lookup|Get|Lookup)(?:[_]?[Ee]nv|[Pp]ass|Property"
    r"|OrDefault|EnvironmentVariable)?|env|config|pop|setdefault|input|raw_input|prompt|ask|question|read_?line)\("
)
# None of this is a value. Group 2 is the quote that such a thing may stand in alone.
_NO_VALUE = rf"(?!((?:\\{{0,8}}[\"'`])?)(?:{_VARIABLES})(?=\2)(?!{ONE})|{_GETTER})"


def _inside(quote: str) -> str:
    """What stands between two quotes of a kind; backslashes and doubling escape, and one line break may split it."""
    return (
        rf"(?<=[^\\]{quote})(?:[^\\\r\n{quote}]|\\[^\r\n])[^\\\r\n{quote}]*"
        rf"(?:(?:\\[^\r\n]|{quote}{quote}(?=[^{quote}\r\n]{{1,512}}{quote}))[^\\\r\n{quote}]*){{0,4096}}"
        rf"(?:{BREAK}[^\\\"' \t\r\n]{{1,512}}(?={quote}))?"
    )


# Which of these a value is, its last sign before it says.
_KINDS = "|".join(
    (
        _inside('"'),
        _inside("'"),
        r"(?<=`)[^`\r\n]{1,4096}",
        # JSON inside a string: the value ends at the quote with as many backslashes as the first one had.
        r"(?<=\\[\"'])(?!\4|[\"'\r\n])[^\\\r\n\"]*(?:(?!\4)\\{1,8}[\"']?[^\\\r\n\"]*){0,4096}",
        r"(?:(?<=[\u2018-\u201f])|(?<=[\u300c-\u300f]))(?:(?![\u2018-\u201f])(?![\u300c-\u300f])[^\r\n]){1,512}",
        rf"(?:(?<=;)|(?<=[0x]2[27]))(?!&|{ENTITY})[^&\\\r\n]*(?:(?!{ENTITY})[&\\][^&\\\r\n]*){{0,64}}",
        rf"(?<=[^=]>)(?!{PLACED}<)[^<>\r\n]{{1,512}}(?=</)",
        rf"(?<=\$\()(?!{PLACED}\))(?:[^()\r\n]|\([^()\r\n]{{0,200}}\)){{1,200}}(?=\))",
        rf"(?<![\"'`;])(?<![\u2018-\u201f])(?<![\u300c-\u300f])(?<![^=]>)(?<![0x]2[27]){BARE}"
        rf"(?:{rest('A-Za-z0-9_+/-', 8)}(?=[ \t]{{0,8}}(?:[\r\n\"'`\\]|{STOP})))?",
    )
)


def value_of(kept: str) -> str:
    """A shape whose first group is `kept` and the quote of the value behind it, and whose rest is the value."""
    return rf"({kept}{_NO_VALUE}{_TAKEN})(?!{FILLED})(?:{_KINDS})"
