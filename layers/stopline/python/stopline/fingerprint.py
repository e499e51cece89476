"""One short name for every occurrence of one fault: a thousand stopped jobs group into the few faults behind them.

What differs between occurrences is taken out (ids, times, addresses, numbers, values in quotes); what tells faults
apart stays (classes, words, status and error codes, names of tables, columns and keys, the place in the code).
"""

import re
from collections.abc import Callable
from hashlib import blake2b

_HEX_DIGITS = 16
_READ_CHARS = 16_384
_SHAPE_CHARS = 4_000

_TELLING_KEYS = (
    r"__type|type|status|reason|title|message|msg|detail|description|code|errors?"
    r"|error_?(?:code|type|description|message)"
)
_NAMED_THINGS = (
    r"relation|column|table|constraint|index|function|schema|role|type|parameter|field|key|attribute|argument|property"
    r"|module(?: named)?|name|operation|object has no attribute|variable|setting|section|KeyError:|AttributeError:"
)
_REQUEST_NAMES = (
    r"(?:request|trace|correlation|transaction|span|session|log)[ _-]?id\b|x-amzn?-[a-z-]{1,40}|extended request id"
    r"|nonce|etag"
)
_CODE_NAMES = r"HTTP(?: error)?|status(?:[ _]?code)?|code|errno|exit(?:ed)?(?: with)?(?: code| status)?|signal|SQLSTATE"
_REASONS = (
    r"client error|server error|bad|unauthorized|forbidden|not found|conflict|gone|too many|unprocessable|internal"
    r"|service|gateway"
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DAY = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*"

_SPELLED = str.maketrans("0123456789", "abcdefghij")
"""Numbers that tell faults apart are spelled, out of the reach of the rules for numbers."""

Replacement = str | Callable[[re.Match[str]], str]


def _rule(pattern: str, replacement: Replacement, flags: int = re.IGNORECASE) -> tuple[re.Pattern[str], Replacement]:
    return re.compile(pattern, flags), replacement


def _json_pair(match: re.Match[str]) -> str:
    """`"code": "locked"` becomes words that count; the value of any other key does not."""
    key, value = match.group("key"), match.group("text")
    return f" {key}: {value} " if re.fullmatch(_TELLING_KEYS, key, re.IGNORECASE) else f" {key}: <v> "


def _spelled(match: re.Match[str]) -> str:
    return f"{match.group(1)} {match.group(3).translate(_SPELLED)}"


def _opaque(match: re.Match[str]) -> str:
    """A word of letters and digits is an id when the digits are not just a version or a size at its end."""
    word = match.group()
    digits = sum(character.isdigit() for character in word)
    return "<n>" if digits >= 2 and not re.fullmatch(r"[A-Za-z]+[\d.]{1,2}", word) else word


_RULES = (
    _rule(r"… \[cut: \d+ bytes\]", ""),
    _rule(r"\\?\n[ \t]*[\^~]+[ \t]*(?=\n|$)", ""),
    _rule(r'File "(?:[^"\n]*/)?([^"/\n]{1,200})", line \d+, in (\S+)', r"at \1 in \2"),
    _rule(
        r"(?P<q>\\?[\"'])(?P<key>[\w.-]{1,60})(?P=q)\s{0,4}:\s{0,4}(?P=q)(?P<text>(?:(?!(?P=q))[^\\\n]|\\[^\n]){0,2000}?)(?P=q)",
        _json_pair,
    ),
    # Values that change with every request, by what they are called.
    _rule(rf"({_REQUEST_NAMES})(['\"]?\s{{0,4}}[:= ]\s{{0,4}}['\"]?)[\w/+=.:-]{{4,}}", r"\1 <n>"),
    _rule(r"\barn:aws[\w-]*:([\w-]*):[\w-]*:\d*:([\w-]+)(?:[:/][^\s'\"),;]*)?", r"arn:\1:\2"),
    # Times.
    _rule(
        r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:?\d\d(?::?\d\d(?:[.,]\d+)?)?(?: ?(?:z|utc|gmt|[+-]\d\d(?::?\d\d)?))?)?(?![\w-])",
        "<time>",
    ),
    _rule(
        rf"\b(?:{_DAY},? )?\d{{1,2}}[ -]{_MONTH}[ -]\d{{2,4}}"
        r"(?:[ :]\d\d:\d\d(?::\d\d)?(?: ?(?:gmt|utc|z|[+-]\d{4}))?)?",
        "<time>",
    ),
    _rule(rf"\b(?:{_DAY} )?{_MONTH} {{1,2}}\d{{1,2}}(?: \d\d:\d\d:\d\d)?(?: (?:[a-z]{{3,4}} )?\d{{4}})?", "<time>"),
    _rule(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b", "<time>"),
    # Identities and addresses.
    _rule(r"\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b", "<n>"),
    _rule(r"[\w.+%-]{1,100}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}", "<email>"),
    _rule(r"(?<=\?)[\w%.~-]+=[^\s'\"()<>]*", "<query>"),
    _rule(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b", "<addr>"),
    _rule(r"(?<![\w:])(?:[0-9a-f]{1,4}:){2,7}[0-9a-f]{0,4}(?:::?[0-9a-f]{1,4})*(?![\w:])", "<addr>"),
    _rule(r"/(?:tmp|var/tmp|private/tmp)/[^\s'\"),;:]+", "<file>"),
    _rule(r"\b0x[0-9a-f]+\b", "<n>"),
    _rule(r"=\([^()\n]{0,500}\)", "=(<v>)"),
    _rule(r"Failing row contains \([^\n]*\)", "Failing row contains (<v>)"),
    _rule(rf"\b({_CODE_NAMES})(\W{{1,4}})(\d{{1,5}}|[0-9A-Z]{{5}})\b(?![\w-])", _spelled),
    _rule(rf"\b()()(\d{{3}})(?= (?:{_REASONS}))", _spelled),
    # Names of things in the code or the schema stay, all other quoted values go.
    _rule(rf"\b((?:{_NAMED_THINGS}) ?)(?P<q>[\"'`])([A-Za-z_][\w.]{{0,80}})(?P=q)", r"\1\3"),
    _rule(r"(?<!\w)\"[^\"\n]{0,2000}\"(?!\w)", "<v>", 0),
    _rule(r"(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){0,2000}'(?!\w)", "<v>", 0),
    _rule(r"(?<!\w)`[^`\n]{0,2000}`(?!\w)", "<v>", 0),
    # Ids: prefixed, hexadecimal, or letters and digits mixed.
    _rule(r"\b[a-z]{1,24}[-_](?=[\w-]*\d)[\w-]+(?!\.py)\b", "<n>"),
    _rule(r"\b(?=[a-f]*\d)[0-9a-f]{7,}\b", "<n>"),
    _rule(r"\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{5,}\b", _opaque),
    _rule(r"(?<=:)\d+(?= in )", ""),
    _rule(r"[-+]?\d[\d,._]*(?:e[-+]?\d+)?%?", "<n>"),
    _rule(r"<n>(?:(?:,|;|\.\.|-)? ?<n>)+", "<n>"),
    _rule(r"<v>(?:, ?<v>)+", "<v>"),
    _rule(r"\s+", " "),
)
_FRAME = re.compile(r"^at \S+:\d+ in .*$", re.MULTILINE)


def fingerprint(error_class: str, error: str) -> str:
    """Sixteen hexadecimal digits that are equal for two occurrences of one fault."""
    shape = f"{error_class}\n{normalise(error)}"
    return blake2b(shape.encode("utf-8", "backslashreplace"), digest_size=_HEX_DIGITS // 2).hexdigest()


def normalise(error: str) -> str:
    """The error text with everything taken out that differs between occurrences of one fault."""
    text = _innermost_frame_only(error[:_READ_CHARS])
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text.strip()[:_SHAPE_CHARS]


def _innermost_frame_only(text: str) -> str:
    """The way to a fault differs between callers; the place where it was raised does not."""
    frames = list(_FRAME.finditer(text))
    for frame in reversed(frames[:-1]):
        text = text[: frame.start()] + text[frame.end() :]
    return text
