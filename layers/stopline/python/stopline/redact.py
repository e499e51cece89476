"""Takes secrets out of text before it is stored or logged: passwords, tokens, keys and signatures.

Errs on the side of taking too much: a harmless word lost costs a look at the logs, a password kept costs a rotation.
Every pattern is bounded, so that hostile text of any shape is done in time proportional to its length.
"""

import re
from collections.abc import Callable
from urllib.parse import quote, quote_plus

MARK = "[redacted]"
LONGEST_SECRET = 4096
"""Characters. Text that was cut may end inside a secret; whoever cuts drops this much of the end as well."""

_SHORTEST_REGISTERED = 4
_SHORTEST_PIECE = 5

_NAMES = (
    r"(?:pg|ssl|db|user)?passw(?:or)?d|pwd|passphrase|passcode|(?:client[_-]?)?secret(?:[_-]?(?:access[_-]?)?key)?"
    r"|aws[_-]secret[_-]access[_-]key|private[_-]?key|x-amz-(?:signature|security-token|credential)|x-api-key|api[_-]?key"
    r"|(?:access|refresh|id|auth|session|security)[_-]?token|oauth_client_secret"
)
_QUOTED = r"""'(?:[^'\\\n]|\\.){0,4096}'?|"(?:[^"\\\n]|\\.){0,4096}"?"""
_BARE = r"[^\s'\"&,;<>(){}\[\]]{1,4096}"

# What libpq and psycopg quote when they could not read a connection string is whatever stood where the password was.
_ECHOES = (
    r'(missing "=" after )"[^\n]{0,4096}"(?= in connection info)',
    r'(percent-encoded (?:token|value): )"[^\n]{0,4096}"',
    r'(unexpected spaces found in )"[^\n]{0,4096}"',
    r'(invalid (?:connection option|URI query parameter|port number)[: ] {0,2})"[^\n]{0,4096}"',
    r'(invalid integer value )"[^\n]{0,4096}"(?= for connection option)',
    r'((?:in URI(?: \(expected [^\n()]{1,40}\))?|separator "=" in URI query parameter): )"[^\n]{0,4096}"',
)
# A URI whose password holds "@" leaves part of it where a host belongs; only what is plainly a host is kept.
_HOST_ECHO = re.compile(
    r"((?:failed to resolve host|could not translate host name|connection to server at) )(['\"])"
    r"(?!(?:localhost|(?:[a-z0-9-]{1,63}\.){2,8}[a-z]{2,24}|[0-9.]{7,15}|[0-9a-f:]{2,45}|/[a-z0-9_./-]{1,200})\2)"
    r"[^\n]{0,4096}?\2(?=[ :,]|$)",
    re.MULTILINE,
)


def _kept_name(match: re.Match[str]) -> str:
    """The text before the secret, its quotes if it had any, and the mark."""
    value = match.group(2)
    mark = value[0] if value[:1] in {"'", '"'} else ""
    return f"{match.group(1)}{mark}{MARK}{mark}"


_RULES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (
        re.compile(
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL
        ),
        MARK,
    ),
    # A password in a web address ends at the last "@" of the word, a database's may even hold spaces.
    (
        re.compile(r"(\bhttps?://[^\s:/?#@]{0,200}:)(?!\d{1,5}(?:[/?#\s'\"]|$))[^\s]{0,2000}@", re.IGNORECASE),
        rf"\1{MARK}@",
    ),
    (
        re.compile(r"(\b(?!https?:)[a-z][a-z0-9+.-]{1,20}://[^\s:/?#@]{0,200}:)[^\n]{0,2000}@", re.IGNORECASE),
        rf"\1{MARK}@",
    ),
    *((re.compile(pattern), rf'\1"{MARK}"') for pattern in _ECHOES),
    (_HOST_ECHO, rf"\1\2{MARK}\2"),
    (
        re.compile(
            rf"""(\b(?:authorization|(?:set-)?cookie)["']?\s{{0,8}}[:=]\s{{0,8}})({_QUOTED}|[^\n'"]{{1,4096}})""",
            re.IGNORECASE,
        ),
        _kept_name,
    ),
    # Whoever forgets the quotes around a password with a space has the rest of it read as another word: take both.
    (
        re.compile(
            rf"""((?<![?&\w-])(?:ssl)?password\s{{0,8}}=\s{{0,8}})({_QUOTED}|(?:(?!\s{{1,8}}[a-z_]{{2,30}}\s{{0,8}}=)[^\n'"]){{1,2000}})""",
            re.IGNORECASE,
        ),
        _kept_name,
    ),
    (
        re.compile(
            rf"""((?<![a-z0-9])(?:{_NAMES})\\?["']?\s{{0,8}}[:=]\s{{0,8}}\\?)({_QUOTED}|{_BARE})""", re.IGNORECASE
        ),
        _kept_name,
    ),
    # A command line's option, also in the list of words that subprocess quotes.
    (
        re.compile(
            rf"""((?<![\w-])--?(?:{_NAMES}|token)(?:\s{{1,8}}|['"],\s{{0,8}}['"]))([^\s'"]{{1,4096}})""", re.IGNORECASE
        ),
        rf"\1{MARK}",
    ),
    (
        re.compile(
            r"""((?<![a-z0-9])(?:token|signature|credential)["']?\s{0,8}[:=]\s{0,8}["']?)[A-Za-z0-9+/=_.~%-]{16,4096}""",
            re.IGNORECASE,
        ),
        rf"\1{MARK}",
    ),
    (
        re.compile(
            r"(\b(?:bearer|basic)\s{1,8})(?=[^\s]{0,200}[0-9=]|[^\s]{24})[A-Za-z0-9._~+/=-]{8,4096}", re.IGNORECASE
        ),
        rf"\1{MARK}",
    ),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{8,4096}(?:\.[A-Za-z0-9_-]{0,4096})?"), MARK),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), MARK),
    (re.compile(r"\b(?:IQoJ|FwoG|FQoG)[A-Za-z0-9+/=]{40,4096}"), MARK),
    (re.compile(r"\b(?:sk-|[sr]k_(?:live|test)_|gh[pousr]_|github_pat_|xox[abprs]-)[A-Za-z0-9_-]{16,4096}"), MARK),
)

_registered: set[str] = set()
_registered_pattern: re.Pattern[str] | None = None


def register_secret(value: str) -> None:
    """Make `redact` take this value out wherever it occurs, and its pieces too: a parser that stumbles over a password
    echoes a part of it. Values under four characters are ignored, they would shred ordinary text."""
    global _registered_pattern
    if len(value) < _SHORTEST_REGISTERED:
        return
    pieces = {piece for piece in re.split(r"[\s@:/?#'\"%&=,;]+", value) if len(piece) >= _SHORTEST_PIECE}
    encoded = value.encode("utf-8", "replace")
    _registered.update({value, quote(encoded, safe=""), quote_plus(encoded), *pieces})
    longest_first = sorted(_registered, key=len, reverse=True)
    _registered_pattern = re.compile("|".join(re.escape(secret) for secret in longest_first))


def redact(text: str) -> str:
    """The text with every secret that can be recognised replaced by `[redacted]`."""
    if _registered_pattern is not None:
        text = _registered_pattern.sub(MARK, text)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
