"""Credentials that a language or a command of its own way holds: defaults, lists, here-documents, SQL, flags.

Each of these has cues of its own, so that a text without them does not pay for it.

Rejected: putting them among the signs between a name and its value (every text with a name would pay for all).
"""

from convmem.redact.named import CLOSED
from convmem.redact.names import LATIN, NAME
from convmem.redact.pieces import EITHER, GAP, LINE_END, PLACED, SIGN
from convmem.redact.values import BARE, FILLED, TELLING

_QUOTE = r"\\{0,8}[\"'`]"
# What such a quote holds, if group 2 is the quote.
_TEXT = r"(?!\2)[^\\\"'`\r\n]*(?:(?!\2)(?:\\[^\r\n]|[\"'`])[^\\\"'`\r\n]*){0,64}"
_SPACES = r"(?:[ \t\r\n]|\\{1,4}[rnt]){0,40}"

# The default of something that is only referred to: in a shell's `${…:-…}`, in the second argument of a call, or behind
# an operator that falls back to it. Group 2 is the quote.
_SIGN_BEFORE = (
    rf"{CLOSED}{GAP}(?:(?::[ \t]{{0,4}}[A-Za-z][A-Za-z0-9_.\[\]| ]{{0,40}}|:|\|\||\?\?)?=>?(?![=~])|{EITHER}){GAP}"
)
_EXPRESSION = (
    rf"(?:(?:{_QUOTE})?{PLACED}(?:{_QUOTE})?|[A-Za-z_$][A-Za-z0-9_$.?!]{{0,80}})"
    r"(?:(?:\([^()\r\n]{0,80}\)|\[[^\[\]\r\n]{0,80}\])[A-Za-z0-9_.?!]{0,40}){0,3}"
)
_OPERATOR = (
    r"[ \t]{1,4}(?:or|\|\||\?\?|\?:?|\+|if[ \t][^\r\n]{1,80}?[ \t]else"
    rf"|\?[ \t]{{1,4}}(?:(?:{_QUOTE})?{PLACED}(?:{_QUOTE})?|[^:\r\n]{{1,80}}?)[ \t]{{0,4}}:)[ \t]{{1,4}}"
)
_FIRST_ARGUMENT = (
    rf"(?:{_QUOTE}[^\\\"'`\r\n]{{0,80}}{_QUOTE}|[^\\\"'`(),\r\n]{{1,80}}),{_SPACES}(?:[A-Za-z_]{{1,20}} ?[=:] ?)?"
)
DEFAULT_CUES = (
    *("${", ":-", " or ", " || ", " ?? ", " ? ", " ?: ", " else ", " + "),
    *("env(", "get(", "pop(", "default(", "property(", "config(", "lookup("),
)
DEFAULTED = (
    rf"({LATIN}(?:{_SIGN_BEFORE}(?:(?:{_QUOTE})?\$\{{[A-Za-z0-9_]{{1,64}}:?[-=]"
    rf"|(?:[A-Za-z_$][A-Za-z0-9_$.:>-]{{0,80}}\({_SPACES}{_FIRST_ARGUMENT}|{_EXPRESSION}{_OPERATOR})({_QUOTE}))|:-))"
    rf"(?:(?<=[=-])(?!{PLACED}|\$|[0-9]{{1,9}}\}})[^{{}}\r\n\"'`]{{1,256}}(?=\}})"
    rf"|(?<=[\"'`])(?!{FILLED}){_TEXT})"
)
# A list of quoted values, the whole of it.
LIST_CUES = ('": [', '":[', "=[", "= [", ": [", "=>[", "=> [")
LISTED = (
    rf"({NAME}(?:s(?={GAP}={GAP}\[{_SPACES}{_QUOTE}[^\"'\r\n]{{0,63}}[0-9]))?(?:{_QUOTE})?{GAP}(?:=>|{EITHER}){GAP}"
    rf"\[{_SPACES}({_QUOTE}))(?!{FILLED}){_TEXT}(?:\2{_SPACES},{_SPACES}\2{_TEXT}){{1,64}}(?=\2{_SPACES},?{_SPACES}\])"
)
# A here-document: the lines up to its end, or the first. Group 2 is the word that ends it, group 3 is looked at before
# it is taken, so that no part of it is tried in its place.
_LINE = r"[^\\\r\n]*(?:\\(?!\\{0,3}[rn])[^\\\r\n]*){0,16}"
HERE = (
    rf"({LATIN}{CLOSED}{GAP}(?::?=>?|{EITHER}){GAP}[\"']?(?:\$\(cat[ \t]{{1,4}})?<{{2,3}}[~-]?(?:{_QUOTE})?"
    rf"([A-Za-z_][A-Za-z0-9_]{{0,31}})(?:{_QUOTE})?[^\\\r\n]{{0,80}}{LINE_END}[ \t]{{0,40}})"
    rf"(?!{PLACED}|\2[\r\n\\]|[ \t\r\n\\])"
    rf"(?=({_LINE}(?:{LINE_END}(?![ \t]{{0,40}}\2(?![A-Za-z0-9_])){_LINE}){{0,16}}))"
    rf"(?:\3(?={LINE_END}[ \t]{{0,40}}\2)|{_LINE})"
)
# `value` before the `name` it belongs to.
VALUE_CUES = ('value"', "value'", "value\\")
VALUED = (
    rf"((\\{{0,8}}[\"'])(?i:value)\2{_SPACES}:{_SPACES}\2)(?!{FILLED}){_TEXT}"
    rf"(?=\2{_SPACES},{_SPACES}\2(?i:name|key)\2{_SPACES}:{_SPACES}\2[A-Za-z0-9_.-]{{0,40}}?{LATIN}\2)"
)
# Both encoded for a URL, once or more often.
ENCODED = (
    rf"({LATIN}(?:%22|%27)?%(?:25){{0,3}}3[AaDd](?:%20|\+)?(?:%22|%27)?)(?![\[%])(?:[A-Za-z0-9!$()*+._~@/-]"
    r"|%(?!(?:25){0,3}(?:2[0267]|0[AaDd]|3[BbCc]|7[Dd]))(?:25){0,3}[0-9A-Fa-f]{2}|%20(?=[^ ]{0,256}%22)){1,512}"
)
# As SQL, .netrc, sshpass and the user of curl say it; and the short flags of commands that ask for a password.
_SPACE = r"[ \t]{1,4}"
SPOKEN = (
    rf"([Ii](?i:dentified{_SPACE}by{_SPACE}(?:password{_SPACE})?)['\"]"
    rf"|[Ll](?i:ogin{_SPACE}[!-~]{{1,128}}[ \t\r\n]{{1,8}}password{_SPACE})"
    rf"|[Ss](?i:shpass){_SPACE}-p[ \t]?['\"]?|PASSWORD(?<![A-Za-z0-9_]PASSWORD){_SPACE}')"
    rf"(?!{PLACED}|\$[A-Za-z_{{])[^'\" \t\r\n]{{1,256}}"
)
USER = (
    r"((?<![A-Za-z0-9-])-(?:u|-user|-proxy-user)[ \t=]{0,2}[\"']?[A-Za-z0-9._@%+-]{1,64}:)"
    rf"(?![0-9]{{1,9}}(?![{SIGN}])|\$[A-Za-z_{{])(?={TELLING}){BARE}"
)
COMMAND_CUES = (
    *("mysql", "mariadb", "mongo", "redis-cli", "docker", "podman", "nerdctl", "registry"),
    *("az login", "oc login", "cf login"),
)
_ARGUMENTS = rf"(?:{_SPACE}[^ \t\r\n|;&]{{1,128}}){{0,8}}?{_SPACE}"
COMMANDS = (
    rf"((?<![A-Za-z0-9_-])(?:(?:mysql(?:dump|admin|import|show|sh)?|mariadb(?:-dump|-admin)?){_ARGUMENTS}-p"
    rf"|(?:(?:docker|podman|nerdctl|registry|az|oc|cf){_SPACE}login|mongo(?:sh|dump|restore|import|export)?){_ARGUMENTS}-p{_SPACE}"
    rf"|redis-cli{_ARGUMENTS}-a{_SPACE})[\"']?)(?![-$<\[{{(=]|{PLACED})[^ \t\r\n\"'|;&]{{1,256}}"
)
