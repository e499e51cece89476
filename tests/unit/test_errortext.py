import random
import time
from types import TracebackType

import psycopg
import pytest

from stopline import redact
from stopline.errortext import clean, describe
from stopline.failure import Failure
from stopline.limits import ERROR_BYTES
from stopline.states import Outcome


def raised(exc: BaseException) -> BaseException:
    try:
        raise exc
    except type(exc) as caught:
        return caught


def test_nul_and_lone_surrogates_are_shown_as_escapes() -> None:
    """FI-01: what PostgreSQL and UTF-8 refuse is replaced visibly and the rest stays readable."""
    assert clean("bad \x00 byte") == "bad \\x00 byte"
    assert clean("half \ud800 emoji") == "half \\ud800 emoji"
    assert clean("bell \x07, next line \x85, reversed \u202e") == "bell \\x07, next line \\x85, reversed \\u202e"
    assert clean("tab\tand\r\nline") == "tab\tand\nline"


def test_an_exception_whose_text_raises_is_described_by_its_class() -> None:
    """FI-01: a broken __str__ does not lose the outcome."""

    class Rude(Exception):
        def __str__(self) -> str:
            raise SystemExit("no")

    name, text = describe(raised(Rude()))
    assert name == "Rude"
    assert "its __str__ raised SystemExit" in text


def test_an_exception_whose_name_raises_is_still_described() -> None:
    """FI-01: not even a metaclass loses the outcome."""

    class Meta(type):
        @property
        def __name__(cls) -> str:  # type: ignore[override]
            raise RuntimeError

        @property
        def __module__(cls) -> str:  # type: ignore[override]
            raise RuntimeError

    class Nameless(Exception, metaclass=Meta):
        pass

    assert describe(Nameless("x")) == ("Exception", "Exception: x")


def test_an_exception_without_a_message_is_not_an_empty_text() -> None:
    name, text = describe(ValueError())
    assert (name, text) == ("ValueError", "ValueError")


def test_ten_megabytes_are_cut_on_a_character_boundary_with_a_mark() -> None:
    """FI-02: the stored text has a fixed cap, and says how much is missing."""
    text = clean("é" * 5_000_000)
    assert len(text.encode()) <= ERROR_BYTES
    kept, mark = text.split("… ")
    assert set(kept) == {"é"}
    assert mark == f"[cut: {10_000_000 - len(kept.encode())} bytes]"


def chained(frames: int) -> BaseException:
    """An exception whose traceback and chain of causes both have `frames` entries, without recursing to make it."""
    error = ValueError("root")
    for number in range(frames):
        following = ValueError(f"step {number}")
        following.__cause__ = error
        error = following
    try:
        raise error
    except ValueError as caught:
        entry = caught.__traceback__
        assert entry is not None
        for _ in range(frames):
            entry = TracebackType(entry, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
        return caught.with_traceback(entry)


def test_fifty_thousand_frames_and_causes_and_ten_megabytes_take_less_than_a_second() -> None:
    """FI-02: the failure is described in bounded time and size."""
    error = chained(50_000)
    error.add_note("x" * 10_000_000)
    started = time.process_time()
    name, text = describe(error)
    failure = Failure(Outcome.TRANSIENT, name, text)
    assert failure.fingerprint
    assert time.process_time() - started < 1
    assert len(failure.error.encode()) <= ERROR_BYTES
    assert failure.error.startswith("ValueError: step 49999")
    assert "caused by ValueError: step 49998" in failure.error
    assert "caused first by (996 more between)" in failure.error
    assert "test_errortext.py" in failure.error.splitlines()[-1]


def test_causes_and_the_place_are_told() -> None:
    def send() -> None:
        raise TimeoutError("no answer")

    def handler() -> None:
        try:
            send()
        except TimeoutError as late:
            raise RuntimeError("export failed") from late

    with pytest.raises(RuntimeError) as caught:
        handler()
    lines = describe(caught.value)[1].splitlines()
    assert lines[0] == "RuntimeError: export failed"
    assert lines[1] == "caused by TimeoutError: no answer"
    assert lines[-1].startswith("at unit/test_errortext.py:")
    assert lines[-1].endswith(" in handler")


def test_a_chain_that_bites_its_tail_ends() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert describe(first)[1].count("caused by") == 1


def test_members_of_a_group_are_told() -> None:
    assert "contains KeyError: 'a'" in describe(ExceptionGroup("both", [KeyError("a"), ValueError("b")]))[1]


def test_cleaned_text_always_fits_a_row() -> None:
    """FI-01: any text, of any characters, at any limit."""
    alphabet = "ab1 =:@'\"\\\n\r\t\x00\x1b\x9f\ud800\udfff\u202eé\U0001f600"
    words = ("password=", "://u:", "Bearer ", "token", "[redacted]", "… [cut: 1 bytes]")
    for seed in range(500):
        chance = random.Random(seed)
        text = "".join(chance.choice([*alphabet, *words]) for _ in range(chance.randrange(80)))
        limit = chance.randint(64, 200)
        cleaned = clean(text, limit)
        assert len(cleaned.encode("utf-8")) <= limit
        assert "\x00" not in cleaned
        assert len(clean(clean(text)).encode("utf-8")) <= ERROR_BYTES


FRAGMENTS = ("Sup3r", "Secret", "zz3cret")


@pytest.mark.parametrize(
    "conninfo",
    [
        "host=127.0.0.1 port=1 password=Sup3r Secret! dbname=x",
        "password='Sup3r Secret! host=127.0.0.1",
        "postgresql://u:Sup3r@Secret/db@127.0.0.1/x",
        "postgresql://u:S%zz3cret@127.0.0.1/x",
        "postgresql://u:Sup3r Secret!@127.0.0.1/x",
        "host=127.0.0.1 port=Secret",
        "host=127.0.0.1 Secret=1",
        "postgresql://127.0.0.1/x?Secret=1",
    ],
)
def test_what_psycopg_echoes_of_a_bad_connection_string_holds_no_secret(conninfo: str) -> None:
    """CO-10: measured with the real driver: it quotes 'Secret!', host 'Secret', and the whole token of a URI."""
    with pytest.raises(psycopg.Error) as caught:
        psycopg.connect(conninfo, connect_timeout=1)
    text = describe(caught.value)[1]
    assert not [piece for piece in FRAGMENTS if piece in text]


@pytest.mark.parametrize(
    "text",
    [
        "connect(host='db', password='Sup3r Secret!', user='u')",
        "tried postgresql://u:Sup3r@Secret/db@db.example.com:5432/x and gave up",
        "tried postgresql://u:Sup3r Secret!@db/x",
        "tried postgres://u:S%zz3cret@db/x",
        "tried https://u:Sup3rSecret@api.example.com/v1",
        'conninfo "user=u password=Sup3r Secret! host=db" is bad',
        '{"user": "u", "password": "Sup3r\\"Secret"}',
        "{'client_secret': 'Sup3rSecret', 'id': 7}",
        '{\\"password\\": \\"Sup3rSecret\\"}',
        "GET /export?api_key=Sup3rSecret&page=2",
        "Authorization: Bearer Sup3rSecret.zz3cret",
        "headers {'Authorization': 'Basic U3VwM3JTZWNyZXQ6Sup3r=', 'Accept': '*/*'}",
        "AWS4-HMAC-SHA256 Credential=ASIASup3r/20260101, SignedHeaders=host, Signature=Sup3rSecretSup3rSecret",
        "https://db:5432/?Action=connect&X-Amz-Security-Token=Sup3rSecret%2F&X-Amz-Signature=Sup3rSecret",
        "PGPASSWORD=Sup3rSecret psql",
        "ACCOUNTING_API_TOKEN=Sup3rSecretSup3rSecret of the environment",
        "Command '['curl', '--api-key', 'Sup3rSecret']' returned non-zero exit status 1",
        "usage: export --password Sup3rSecret --to db",
        "Cookie: lang=en; session=Sup3rSecret",
        "aws_secret_access_key = Sup3rSecret/zz3cret+abc",
        'could not translate host name "Secret" to address',
        "-----BEGIN RSA PRIVATE KEY-----\nSup3rSecret\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nSup3rSecret cut",
    ],
)
def test_secrets_in_text_are_taken_out(text: str) -> None:
    """CO-10: no fragment of a secret in a stored error or a log."""
    cleaned = clean(text)
    assert "[redacted]" in cleaned
    assert not [piece for piece in FRAGMENTS if piece in cleaned]


@pytest.mark.parametrize(
    "token",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abc-_9",
        "IQoJb3JpZ2luX2Vj" + "A1" * 40,
        "sk-ant-api03-abcdefghij0123456789",
        "ghp_" + "a1" * 18,
    ],
)
def test_tokens_of_known_form_are_taken_out_without_a_name(token: str) -> None:
    """CO-10: a key is a key wherever it stands."""
    assert clean(f"sent {token} to it") == "sent [redacted] to it"


@pytest.mark.parametrize(
    "text",
    [
        'FATAL:  password authentication failed for user "stopline_worker"',
        "failed to resolve host 'db.cluster-abc.eu-west-1.rds.amazonaws.com': [Errno -2] Name or service not known",
        'connection to server at "127.0.0.1", port 5432 failed: Connection refused',
        "http://127.0.0.1:8080/model/anthropic.claude-3/converse?mail=a@example.com",
        "max_tokens: 4096 is above the limit",
        "the option --password-file was not given",
        "Unexpected token: foo at line 3",
        "Basic authentication is required",
        "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude",
    ],
)
def test_harmless_text_stays_as_it_is(text: str) -> None:
    assert clean(text) == text


def test_a_registered_secret_is_taken_out_with_its_pieces_and_encodings(monkeypatch: pytest.MonkeyPatch) -> None:
    """CO-10: a parser that stumbles over a password echoes a part of it."""
    monkeypatch.setattr(redact, "_registered", set())
    monkeypatch.setattr(redact, "_registered_pattern", None)
    redact.register_secret("Sup3r@Secret/zz")
    redact.register_secret("abc")
    text = clean("host 'Secret' said Sup3r, then Sup3r@Secret/zz or Sup3r%40Secret%2Fzz; abc stays")
    assert not [piece for piece in FRAGMENTS if piece in text]
    assert text.endswith("abc stays")


def test_a_secret_that_the_cut_falls_into_is_not_left_in_part() -> None:
    """CO-10: text is looked at up to a bound; a secret across the bound is dropped with it."""
    for offset in range(0, 60, 7):
        padding = "password=x\n" * ((4 * ERROR_BYTES - offset) // 11)
        assert "Sup3r" not in clean(f"{padding} https://u:{'Sup3rSecret' * 20}@host/")


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "password=",
        "password ",
        " ",
        "'",
        "x://a:",
        "@",
        "eyJ-",
        "eyJaaaaaaaa.",
        '"',
        "\\",
        "http://a:b",
        "Bearer ",
        'in URI: "',
        "token=",
        'invalid integer value "',
        "a=b ",
    ],
)
def test_hostile_text_is_redacted_in_bounded_time(unit: str) -> None:
    """FI-02: no pattern runs away on a text made for it."""
    text = unit * (100_000 // len(unit))
    started = time.process_time()
    clean(text)
    clean("password=" + text)
    assert time.process_time() - started < 1


def test_a_stored_error_is_never_longer_than_its_column() -> None:
    """FI-02: message, causes and frames together stay under the cap."""
    error = RuntimeError("é" * 100_000)
    error.__cause__ = ValueError("ß" * 100_000)
    error.__cause__.__cause__ = KeyError("x" * 100_000)
    text = describe(raised(error))[1]
    assert len(text.encode()) <= ERROR_BYTES
    assert "caused by KeyError" in text
    assert "in raised" in text
