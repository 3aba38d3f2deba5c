"""Named credentials: how a name and its value stand together in prose, code, settings, markup and commands.

A value is taken whatever it is after `=`. After a colon it is taken in quotes, or if it is telling: six characters, and
not one plain lower-case word. After a comparison only a literal is, and after a name in the plural, which may be a
number of things, only what stands behind `=` and is no number.

Rejected: taking names without a value's shape (prose is full of them), and a shape for each notation (they share the
name and the value, and compiling those is what takes time).
"""

from convmem.redact.names import LATIN, NAME
from convmem.redact.pieces import COLON, EITHER, EQUALS, GAP, LINE_END, NEWLINE, SIGN, STOP
from convmem.redact.values import COMMAND, ENTITY, OTHER_QUOTES, QUOTED, TELLING, WRAPPED, value_of

FLAG_CUES = ("--", " -pass", " -token", " -secret", " -api", " -access", "env ", "env\t", "setx")

# Behind the name, an index, or a remark in parentheses: no type, and before what holds a digit or is quoted.
_TYPE_WORD = r"(?i:str|bytes|int|opt|req|bool|any|none|list|dict)"
_INDEX = rf"\[\\{{0,8}}[\"']?[A-Za-z0-9_.-]{{0,32}}\\{{0,8}}[\"']?\](?={GAP}{EQUALS})"
_REMARK = (
    rf"(?: ?\((?!{_TYPE_WORD})[^()\r\n]{{1,40}}\)|（(?:(?!）)[^\r\n]){{1,40}}）)"
    rf"(?=(?:\\{{0,8}}[\"'`])?{GAP}(?:{EQUALS}|{COLON}{GAP}(?:[\"'`]|[!-~]{{0,63}}[0-9])))"
)
# Then what closes it. If no quote does, a quote behind the colon may end a text that the name stands in.
CLOSED = (
    rf"(?:{_INDEX}|{_REMARK})?(?:(?:\\{{0,8}}[\"'`]|{OTHER_QUOTES}|{ENTITY})\]?|(?:\](?=[ \t]{{0,4}}=>)|\*{{1,2}})?"
    rf"(?![ \t]{{0,4}}[:=]{{1,2}}[ \t]{{0,4}}\\{{0,8}}[\"'`](?:[ \t\r\n,;)\]}}:.+]|{STOP})))"
)
# A quoted name may have its value on the next line; behind any other, a quote there begins something else.
_AFTER = rf"(?:(?<=[\"']:){NEWLINE}[ \t]{{0,40}}(?=\\{{0,8}}[\"']))?{GAP}(?:(?:\*{{1,2}}(?!\*)|</[a-z]{{1,8}}>){GAP})?"
# Then what makes the value one of the name: an equals sign, also behind a type; a colon; an arrow; a comma of a call; a
# comparison with a literal of three signs or more, if that is no word for a type.
_TYPE = r"(?::[ \t]{0,4}[A-Za-z&*_][A-Za-z0-9_.\[\]|<>?&*, ]{0,40}=(?![=>])|string[ \t]{0,4}:?=)"
_MEMBER = r"\{[ \t]{0,4}\\{0,8}[\"']?[A-Za-z_]{1,40}\\{0,8}[\"']?[ \t]{0,4}[:=][ \t]{0,4}(?=\\{0,8}[\"'])"
_TAG = r"(?:(?:!![a-z]{1,16}|&[A-Za-z0-9_-]{1,32})[ \t]{1,4}){1,2}"
_LITERAL = (
    r"(?=\\{0,8}[\"'`](?!(?:string|undefined|null|none|true|false)?\\{0,8}[\"'`])"
    r"[^A-Za-z0-9\"'`\r\n]{0,64}[A-Za-z0-9][^\"'`\r\n]{2})"
)
_SIGNS = "|".join(
    (
        r"(?:\?|\+|\|\||\?\?)?=(?![=>]|~ )|:=|＝",
        rf"(?:{_TYPE}|:(?![:=]|[+?-][^\r\n\"'{{}}]{{0,80}}\}})|：|=>(?={GAP}[^ \t\r\n]{{0,63}}[0-9\"'`]))"
        rf"(?={_AFTER}(?:{_TAG})?(?:{QUOTED}|{TELLING}|{WRAPPED}))",
        rf"(?<=[\"']),(?={GAP}[\"'](?=[^\"'\r\n]{{0,63}}[0-9])[^\"'\r\n]{{6}})",
        rf"[=!]==?{GAP}{_LITERAL}|\.equals\({_LITERAL}",
    )
)
_ASSIGNED = rf"{CLOSED}{GAP}(?:{_SIGNS}){_AFTER}(?:{COMMAND}|{_MEMBER}|{_TAG}|{WRAPPED})?"
# Or the value stands below the name: in a block of YAML, behind a comment or a backslash, or alone on its line.
_ALONE = (
    rf"(?:{LINE_END}[ \t]{{0,40}}){{1,2}}(?:```[a-z]{{0,16}}{LINE_END}|- )?(?![./])(?=[^ \\\r\n]{{0,512}}[0-9])"
    rf"(?=[^ \\\r\n]{{0,512}}[A-Za-z])(?=\\{{0,8}}[\"']?[A-Za-z0-9+/_.~!@#$%^&*-]{{8,512}}={{0,2}}"
    rf"(?:\\{{0,8}}[\"']|[ \t]{{0,8}}(?:[\r\n]|\\{{1,4}}[rn])|(?![\x00-\x7f])))"
)
_BELOW = (
    rf"{GAP}{EITHER}{GAP}(?:(?:[|>][+-]?{LINE_END}|\\{NEWLINE})[ \t]{{1,40}}(?=[!-~])"
    rf"|# [^#\\\r\n]{{0,80}}{LINE_END}[ \t]{{1,40}}(?=[\"']|[^ \t\r\n]{{0,63}}[0-9])|{_ALONE})"
)
# Or in an element of that name, or as `value` beside `name`.
_ELEMENT = r"(?:</key>[ \t\r\n]{0,40}<string)?>(?=[^<>\r\n]{1,512}</)"
_MARKED = r"\\{0,8}[\"']?"
_BREAKS = r"(?:,(?:[ \t\r\n]|\\{1,4}[rnt]){0,40}|(?:[ \t\r\n]|\\{1,4}[rnt]){1,40})"
_OTHER_MEMBER = (
    rf"{_MARKED}[A-Za-z_]{{1,20}}{_MARKED}[ \t]{{0,4}}[:=][ \t]{{0,4}}{_MARKED}[^\"'\\\r\n,]{{0,40}}{_MARKED}"
)
_PAIRED = (
    rf"{_MARKED}{_BREAKS}(?:- )?(?:(?!{_MARKED}(?:value|name|key)){_OTHER_MEMBER}{_BREAKS}){{0,2}}"
    rf"{_MARKED}(?i:value){_MARKED}[ \t]{{0,4}}(?:[:=]|=>)[ \t]{{0,4}}"
)
# Behind a name in the plural: no number, no word for nothing, no other such name, no list, and nothing that code
# works out.
_PLURAL = (
    rf"(?:[sS](?=(?:\\{{0,8}}[\"'`])?(?:{_INDEX})?{GAP}(?:=(?![=>~])|＝){GAP}"
    rf"(?![ \t]|[0-9][0-9.,_]{{0,16}}[kKmM%]?(?![{SIGN}])"
    r"|(?:[Nn]one|null|nil|[Tt]rue|[Ff]alse|[A-Za-z_]{0,40}(?:token|credential|password|secret|key)s)(?![A-Za-z0-9_])|[\[{(]|[A-Za-z_][A-Za-z0-9_]{0,60}(?:[(\[]|\.[A-Za-z_]))))?"
)
NAMED = value_of(rf"{NAME}{_PLURAL}(?:{_ASSIGNED}|{_BELOW}|{_ELEMENT}|{_PAIRED})")

# Behind the flag of a command, behind a space.
_FLAG = (
    r"(?:--(?<![A-Za-z0-9_-]--)|-(?<= -)(?=[Pp]ass|[Tt]oken|[Ss]ecret|[Aa]pi|[Aa]ccess)"
    r"|ENV(?<![A-Za-z0-9]ENV)[ \t]{1,4}|setx(?<![A-Za-z0-9]setx)[ \t]{1,4})[A-Za-z0-9_-]{0,40}?"
)
FLAGGED = value_of(rf"{_FLAG}{LATIN}[ \t]{{1,4}}(?=(?!-)(?:{QUOTED}|{TELLING}))")
