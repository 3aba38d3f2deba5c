"""The table of secrets: what each looks like, and the order they are looked for in.

A pattern is a regular expression; what its first group holds stays, the rest of the match becomes the placeholder. What
a vendor gives a shape is found by that, wherever it stands; the rest by the name it stands behind.

Rejected: one table a vendor's documentation (they change; prefixes stay), checksums (a key with a typing error is still
one to keep quiet), and public halves such as `pk_live_`.
"""

from convmem.redact import spoken
from convmem.redact.named import FLAG_CUES, FLAGGED, NAMED
from convmem.redact.names import NAME_CUES
from convmem.redact.pieces import BASE64, BREAK, HEX, ID, NOT_IN_WORD, PLACED, STOP, WORD, exact, open_ended, rest

# PEM and the files that are like it. Without an end, the lines that can be part of a key are taken.
_BEGIN = r"(?:-{5}|-{4} )BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?(?: -{4}|-{5})"
_TO_END = r"[^-]*(?:-(?!---)[^-]*){0,4096}(?:-{5}|-{4} )END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?(?: -{4}|-{0,5})"
_INDENTED = r"(?:[ \t\r\n>|]|\\{1,4}[nrt]){1,40}"
_HEADERS = rf"(?:{_INDENTED}[A-Za-z-]{{1,40}}: [^\r\n\\]{{0,200}}){{0,6}}"
_LAST_LINE = rf"{_INDENTED}[{BASE64}]{{1,15}}(?=[ \t\r\n\"'\\]|{STOP})"
_LINES = rf"(?:(?:{_INDENTED}[{BASE64}]{{16,}}){{1,2000}}(?:{_LAST_LINE})?|{_INDENTED}[{BASE64}]{{1,15}}{STOP})"
_PEM_IN_BASE64 = "LS0tLS1CRUdJTi(?:BSU0EgUFJJ|BQUklWQVRF|BFQyBQUklW|BPUEVOU1NI|BFTkNSWVBU|BEU0EgUFJJ)"

# URLs with a password. One that holds a slash is taken too, unless it looks like a port.
_USER_SIGN = r"A-Za-z0-9._~%!$&()*+,;=|^{}\[\]-"
_URL_SIGN = r"!#-&(-.0-;=A-Z\[\]^_a-~\u00c0-\u00ff"
_REFERENCE = (
    r"(?:\$\{[A-Za-z_][A-Za-z0-9_.]{0,64}\}|\$[A-Z_][A-Z0-9_]{0,64}|\{\{?[A-Za-z_. ]{1,64}\}?\}|%[A-Z_]{1,64}%)"
)
_URL = (
    rf"(:(?://|\\/\\/)(?!{PLACED}@)[{_USER_SIGN}]{{0,128}}:)(?!//|[0-9]{{1,5}}[,;/?#)]|{PLACED}@|{_REFERENCE}@)"
    rf"(?:[{_URL_SIGN}]{{1,256}}(?:@[{_URL_SIGN}]{{1,256}}){{0,4}}|[/?{_URL_SIGN}]{{1,128}})(?=@[A-Za-z0-9\[_$({{%-])"
)
# Alone before the host, a token: capital and small letters with a digit among them, or a long one.
_USER_ALONE = "A-Za-z0-9_~-"
_URL_USER = (
    rf"(:(?://|\\/\\/))(?=(?=[{_USER_ALONE}]{{0,63}}[0-9][{_USER_ALONE}]{{0,63}}[A-Za-z])(?=[^A-Z@/]{{0,63}}[A-Z])"
    rf"(?=[^a-z@/]{{0,63}}[a-z])|(?=[A-Za-z_~-]{{0,63}}[0-9])[{_USER_ALONE}]{{24}})"
    rf"[{_USER_ALONE}]{{12,}}(?=@[A-Za-z0-9\[])"
)
_URL_IN_URL = (
    r"((?i:%3A%2F%2F)[A-Za-z0-9._~-]{0,128}(?i:%3A))"
    r"(?:[A-Za-z0-9._~!*()+-]|%(?!40|2[0Ff]|0[Aa])[0-9A-Fa-f]{2}){1,256}(?=%40)"
)
_DATA_SOURCE = (
    rf"((?<![A-Za-z0-9_.\[-])[A-Za-z0-9_.-]{{1,64}}:)(?!{PLACED})[^\x00-\x20\x7f@\"'<>]{{1,128}}(?=@(?:tcp|unix)\()"
)

# What HTTP carries: a scheme and its credentials, cookies, signed URLs, and tokens that are JSON.
_CREDENTIALS = "A-Za-z0-9._~+/-"
_AUTHORIZATION = (
    r"((?i:authorization)\\{0,8}[\"'`]?\]?[ \t]{0,4}(?:[:=,]|：)[ \t]{0,4}\\{0,8}[\"'`]?[ \t]{0,4}"
    r"(?i:bearer|basic|token|bot|apikey|negotiate|digest)[ \t]{1,4})(?!(?i:token|auth|scheme|authentication|header)"
    rf"(?![A-Za-z0-9_-])|(?i:your)[_-])[|:{_CREDENTIALS}]{{1,}}={{0,2}}(?:{rest(_CREDENTIALS)})?"
)
_BEARER = (
    rf"({NOT_IN_WORD}(?i:bearer)(?:[ \t]{{1,4}}|%20|\+))(?=[{_CREDENTIALS}]{{0,63}}[0-9]|[{_CREDENTIALS}]{{24}})"
    rf"{open_ended(_CREDENTIALS, 8)}={{0,2}}"
)
_BASIC = rf"({NOT_IN_WORD}(?i:basic)[ \t]{{1,4}})(?=[a-z]{{0,63}}[A-Z0-9])[A-Za-z0-9+/]{{8,}}={{1,2}}"
_COOKIE = rf"((?i:cookie)\"?(?::|：)[ \t]{{0,4}}\"?)(?!{PLACED})(?=[A-Za-z0-9_.%$-]{{1,64}}=)[^\r\n\"'`]{{1,}}"
_SIGNATURE = r"((?i:[?&;]sig|(?:x-amz-|x-goog-|[?&])signature)=)[A-Za-z0-9%+/=_-]{16,}"
_JWT_PART = rf"[{ID}]{{6,}}(?:{BREAK}[{ID}]{{1,}}){{0,8}}"
_JWT = rf"(?<![{ID}])eyJ{_JWT_PART}\.(?:{BREAK})?{_JWT_PART}(?:\.[{ID}]{{1,}}){{0,3}}(?:{rest(ID)})?"
_WEBHOOK = r"(hooks\.slack\.com/(?:services|workflows|triggers)/|/api/webhooks/|/webhookb2/)[A-Za-z0-9/@_-]{16,}"

# Keys that a vendor's prefix gives away: the prefix, what may follow it, and how much of that at least.
_PREFIXES = (
    *(("sk-ant-", ID, 8), ("sk-proj-", ID, 8), ("sk-or-", ID, 8), ("sk-svcacct-", ID, 8), ("sk-admin-", ID, 8)),
    *(("sk-lf-", ID, 16), ("sk-live-", ID, 8), ("sk-test-", ID, 8), ("gsk_", WORD, 20), ("xai-", ID, 32)),
    *(("pplx-", WORD, 24), ("tvly-", ID, 20), ("nvapi-", ID, 24), ("r8_", WORD, 30), ("dapi", HEX, 32)),
    *(("lin_api_", WORD, 24), ("ntn_", WORD, 30), ("secret_", WORD, 40), ("PMAK-", "0-9a-f-", 32)),
    *(("glsa_", "A-Za-z0-9_", 24), ("glc_", BASE64, 24), ("NRAK-", "A-Z0-9", 20), ("sntrys_", "A-Za-z0-9_=+/", 24)),
    *(("sntryu_", HEX, 24), ("sbp_", HEX, 32), ("sb_secret_", ID, 16), ("hvs.", ID, 20), ("hvb.", ID, 20)),
    *(("dckr_pat_", ID, 20), ("fm2_", BASE64, 32), ("shpat_", WORD, 32), ("shpca_", WORD, 32), ("shppa_", WORD, 32)),
    *(("shpss_", WORD, 32), ("sq0atp-", ID, 20), ("sq0csp-", ID, 20), ("key-", HEX, 32), ("figd_", ID, 24)),
    *(("AGE-SECRET-KEY-1", "A-Z0-9", 40), ("ATATT3", "A-Za-z0-9_=-", 32), ("ATBB", WORD, 28), ("rubygems_", HEX, 32)),
    *(("dp.pt.", WORD, 32), ("dp.st.", "A-Za-z0-9._-", 32), ("pscale_tkn_", "A-Za-z0-9_.-", 24)),
    *(("pscale_pw_", "A-Za-z0-9_.-", 24), ("pul-", HEX, 40), ("tskey-", ID, 20), ("LTAI", WORD, 16)),
    *(("AKID", WORD, 32), ("EAA", WORD, 60), ("phc_", WORD, 32), ("phx_", WORD, 32)),
    *(("bkua_", HEX, 40), ("HRKU-", ID, 30), ("v1.0-", "0-9a-f-", 30), ("ABSK", BASE64, 60), ("dop_v1_", HEX, 48)),
    *(("doo_v1_", HEX, 48), ("dor_v1_", HEX, 48), ("pypi-AgE", ID, 16), ("whsec_", BASE64, 16), ("cvm_", ID, 32)),
)
_PREFIX_CUES = tuple(prefix.lower() for prefix, _, _ in _PREFIXES)
_PREFIXED = "|".join(prefix.replace(".", r"\.") + f"[{of}]{{{least},}}" for prefix, of, least in _PREFIXES)
# Those of them that mean nothing else, so that a key which is split soon behind them is one.
_SPLIT_CUES = (
    *("sk-ant-", "sk-proj-", "sk-or-", "sk-svcacct-", "sk-admin-", "sk-live-", "sk-test-", "gsk_"),
    *("xai-", "pplx-", "glsa_", "dop_v1_", "shpat_", "hvs.", "dckr_pat_", "lin_api_", "ntn_", "cvm_"),
)
_SPLIT = "|".join(_SPLIT_CUES).replace(".", r"\.")
_TWILIO = r"AC(?<![A-Za-z0-9]AC)[0-9a-f]{32}\\{0,8}[\"']?[ \t]{0,4}[,:][ \t]{0,4}\\{0,8}[\"']?[0-9a-f]{32}(?![0-9a-f])"
_GITLAB = rf"{NOT_IN_WORD}gl(?:pat|dt|ft|rt|cbt|ptt|agent|imt|soat|oas)-{exact(ID, 20, 12)}(?:\.[{ID}]{{2,}}){{0,3}}"
_GITLAB_CUES = ("glpat-", "gldt-", "glft-", "glrt-", "glcbt-", "glptt-", "glagent-", "glimt-", "glsoat-", "gloas-")


class Pattern:
    """How one kind of secret looks. One of its `cues` is in every text, put in lower case, that holds such a secret."""

    __slots__ = ("cues", "kind", "source")

    def __init__(self, kind: str, cues: tuple[str, ...], *source: str) -> None:
        self.kind = kind
        self.cues = cues
        self.source = "".join(source)


# In this order: what has a shape of its own is named by it, even where it is also the value of a name.
PATTERNS: tuple[Pattern, ...] = (
    Pattern("private_key", ("private key",), rf"{_BEGIN}(?:{_TO_END}|{_HEADERS}{_LINES})"),
    Pattern("private_key", ("private-lines",), rf"(Private-Lines: [0-9]{{1,4}}){_LINES}"),
    Pattern("private_key", ("ls0tls1crudjti",), rf"{_PEM_IN_BASE64}[{BASE64}]{{8,}}"),
    Pattern("url_password", ("://", r":\/\/"), _URL),
    Pattern("url_password", ("://", r":\/\/"), _URL_USER),
    Pattern("url_password", ("%3a%2f%2f",), _URL_IN_URL),
    Pattern("url_password", ("@tcp(", "@unix("), _DATA_SOURCE),
    Pattern("jwt", ("eyj",), _JWT),
    Pattern("authorization", ("authorization",), _AUTHORIZATION),
    Pattern("authorization", ("bearer",), _BEARER),
    Pattern("authorization", ("basic",), _BASIC),
    Pattern("cookie", ("cookie",), _COOKIE),
    Pattern("signature", ("sig=", "signature="), _SIGNATURE),
    Pattern("webhook", ("hooks.slack.com/", "/api/webhooks/", "/webhookb2/"), _WEBHOOK),
    Pattern("github_token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), NOT_IN_WORD, f"gh[opsur]_{exact(WORD, 36, 16)}"),
    Pattern("github_token", ("github_pat_",), NOT_IN_WORD, f"github_pat_{open_ended('A-Za-z0-9_', 16)}"),
    Pattern("gitlab_token", _GITLAB_CUES, _GITLAB),
    Pattern("aws_key", ("akia", "asia", "abia", "acca"), NOT_IN_WORD, f"A(?:KI|SI|BI|CC)A{exact('A-Z0-9', 16, 16)}"),
    Pattern("slack_token", ("xox",), NOT_IN_WORD, rf"xox[abceoprs](?:-|\.xox[bp]-){open_ended('A-Za-z0-9-', 10)}"),
    Pattern("slack_token", ("xapp-",), NOT_IN_WORD, f"xapp-{open_ended('A-Za-z0-9-', 10)}"),
    Pattern("google_key", ("aiza",), NOT_IN_WORD, f"AIza{exact(ID, 35, 28)}"),
    Pattern("google_key", ("ya29.",), NOT_IN_WORD, rf"ya29\.{open_ended('A-Za-z0-9._-', 16)}"),
    Pattern("google_key", ("gocspx-", "1//0"), NOT_IN_WORD, f"(?:GOCSPX-|1//0){open_ended(ID, 20)}"),
    Pattern("stripe_key", ("k_live_", "k_test_"), NOT_IN_WORD, f"[sr]k_(?:live|test)_{open_ended(WORD, 10)}"),
    Pattern("npm_token", ("npm_",), NOT_IN_WORD, f"npm_{exact(WORD, 36, 30)}"),
    Pattern("huggingface_token", ("hf_",), NOT_IN_WORD, f"hf_{exact(WORD, 34, 24)}"),
    Pattern("azure_key", ("q~",), r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    Pattern("sendgrid_key", ("sg.",), NOT_IN_WORD, rf"SG\.[{ID}]{{16,}}\.{open_ended(ID, 16)}"),
    Pattern("twilio_key", ("sk",), r"SK(?<![A-Za-z0-9]SK)[0-9a-f]{32}(?![A-Za-z0-9])"),
    Pattern("twilio_key", ("ac",), _TWILIO),
    Pattern("telegram_token", (":aa",), rf"(?<![0-9])[0-9]{{8,10}}:AA[{ID}]{{33}}"),
    Pattern("discord_token", (".",), rf"[MNO](?<![A-Za-z0-9_.-][MNO])[{ID}]{{23,27}}\.[{ID}]{{6}}\.[{ID}]{{27,}}"),
    Pattern("api_key", _PREFIX_CUES, NOT_IN_WORD, f"(?:{_PREFIXED})(?:{rest(ID)})?"),
    Pattern(
        "api_key", _SPLIT_CUES, NOT_IN_WORD, f"(?:{_SPLIT})(?:[{ID}]{{0,15}}{rest(ID, 12)}|[{ID}]{{16,63}}{rest(ID)})"
    ),
    Pattern("api_key", ("sk-",), NOT_IN_WORD, f"sk-(?=[{ID}]{{0,63}}[A-Z0-9]|[A-Za-z0-9]{{20}}){open_ended(ID, 16)}"),
    # What is whole in these would be taken in parts by the next.
    Pattern("credential", spoken.DEFAULT_CUES, spoken.DEFAULTED),
    Pattern("credential", spoken.LIST_CUES, spoken.LISTED),
    Pattern("credential", ("<<",), spoken.HERE),
    Pattern("credential", NAME_CUES, NAMED),
    Pattern("credential", FLAG_CUES, FLAGGED),
    Pattern("credential", spoken.VALUE_CUES, spoken.VALUED),
    Pattern("credential", ("%3d", "%3a", "%253", "%25253"), spoken.ENCODED),
    Pattern("credential", ("identified", "password", "sshpass"), spoken.SPOKEN),
    Pattern("credential", ("-u", "-user"), spoken.USER),
    Pattern("credential", spoken.COMMAND_CUES, spoken.COMMANDS),
)
