import json
import math
import random
from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from stopline.errors import InvalidInput
from stopline.limits import KEY_BYTES, PAYLOAD_BYTES, RESULT_BYTES
from stopline.payload import MAX_DEPTH, check_key, check_time, decode, encode_payload, encode_result


def random_json(chance: random.Random, depth: int = 0) -> Any:
    """Any JSON value, odd ones more often than life has them."""
    kind = chance.choice(["leaf", "leaf", "list", "object"] if depth < 4 else ["leaf"])
    if kind == "list":
        return [random_json(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind == "object":
        return {random_text(chance): random_json(chance, depth + 1) for _ in range(chance.randrange(4))}
    exponent = chance.randint(-307, 307)
    return chance.choice(
        [
            None,
            True,
            False,
            chance.randint(-(10**30), 10**30),
            chance.uniform(-1, 1),
            float(f"{chance.uniform(-9, 9):.4f}e{exponent}"),
            random_text(chance),
        ]
    )


def random_text(chance: random.Random) -> str:
    return "".join(chance.choices('ab"\\/\n\t\x01\x1f\x7fé\u2028\U0001f600', k=chance.randrange(6)))


VALUES = [random_json(random.Random(seed)) for seed in range(200)]


def refusal(value: object, max_bytes: int = PAYLOAD_BYTES) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        encode_payload(value, max_bytes)
    return caught.value


def fits(value: object, max_bytes: int) -> bool:
    try:
        encode_payload(value, max_bytes)
    except InvalidInput:
        return False
    return True


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_what_can_be_stored_comes_back_equal() -> None:
    for value in VALUES:
        assert decode(encode_payload(value, PAYLOAD_BYTES)) == value


def test_the_limit_is_exact_for_every_value() -> None:
    """EN-05: a value fits its own size and not one byte less."""
    for value in VALUES:
        size = next(size for size in range(1, PAYLOAD_BYTES) if fits(value, size))
        text = encode_payload(value, size)
        assert size == len(text.encode()) or "e" in text


@pytest.mark.parametrize(
    ("value", "field", "rule"),
    [
        ({"a": "x\x00y"}, "payload.a", "NUL"),
        ({"a": ["ok", "\ud83d"]}, "payload.a[1]", "lone surrogate U+D83D"),
        ({"a": {"b\x00": 1}}, 'payload.a["b\\u0000"] (the key)', "NUL"),
        ({"\ud83d": 1}, 'payload["\\ud83d"] (the key)', "lone surrogate"),
    ],
)
def test_half_an_emoji_and_nul_are_refused_where_they_stand(value: object, field: str, rule: str) -> None:
    """EN-01: NUL and lone surrogates, in values and in keys, are refused before SQL with their path."""
    error = refusal(value)
    assert error.field == field
    assert rule in error.rule


def test_text_that_only_spells_a_nul_escape_is_stored() -> None:
    """EN-01: the six characters of an escape are ordinary text."""
    value = {"a": "\\u0000", "b\\u0000": "\\\\u0000"}
    assert decode(encode_payload(value, PAYLOAD_BYTES)) == value


@pytest.mark.parametrize(("number", "name"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_numbers_that_json_does_not_have_are_refused(number: float, name: str) -> None:
    """EN-02: NaN and Infinity never reach the driver."""
    error = refusal({"x": [{"score": number}]})
    assert error.field == "payload.x[0].score"
    assert error.rule.startswith(f"is {name}, which JSON does not have")


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 1, 1),  # noqa: DTZ001 - a naive time is what is refused
        date(2026, 1, 1),
        Decimal("1.5"),
        UUID(int=1),
        b"bytes",
        {1, 2},
        object(),
        1j,
    ],
)
def test_types_that_json_does_not_have_are_refused_by_name(value: object) -> None:
    error = refusal({"outer": {"odd key": value}})
    assert error.field == 'payload.outer["odd key"]'
    assert f"is a {type(value).__name__}, which JSON does not have" in error.rule


@pytest.mark.parametrize("key", [1, 1.5, True, None])
def test_keys_that_are_not_text_are_refused_rather_than_changed_into_text(key: str) -> None:
    error = refusal({"a": [{key: 1}]})
    assert error.field == "payload.a[0]"
    assert f"a key of type {type(key).__name__}" in error.rule


def test_a_key_of_a_type_that_json_cannot_write_is_refused_the_same_way() -> None:
    assert "a key of type tuple" in refusal({(1, 2): 1}).rule


def test_an_integer_of_five_thousand_digits_is_refused() -> None:
    """CL-01: a number that PostgreSQL stores and Python cannot read back does not get in."""
    for number in (10**5000, -(10**5000), 10**309):
        error = refusal({"n": number})
        assert error.field == "payload.n"
        assert "1e308" in error.rule
    encode_payload({"n": 10**308, "text": "9" * 400}, PAYLOAD_BYTES)


def test_one_level_too_deep_is_refused_and_one_less_is_stored() -> None:
    assert "deeper than 100" in refusal(nested(MAX_DEPTH + 1)).rule
    assert decode(encode_payload(nested(MAX_DEPTH), PAYLOAD_BYTES)) == nested(MAX_DEPTH)
    assert "deeper than 100" in refusal(nested(900)).rule


def test_a_value_that_contains_itself_is_refused_where_it_does() -> None:
    value: dict[str, list[Any]] = {"a": []}
    value["a"].append(value)
    assert refusal(value).field == "payload.a[0]"
    assert "contains itself" in refusal(value).rule


def test_a_value_that_doubles_at_every_level_is_refused_without_unfolding_it() -> None:
    value: list[Any] = ["x"]
    for _ in range(90):
        value = [value, value]
    assert "the limit is 262,144" in refusal(value).rule


def test_one_byte_over_the_limit_is_refused_with_the_limit_in_the_message() -> None:
    """EN-05: the limit is named, and counts bytes as PostgreSQL prints them."""
    fits = "é" * 49
    assert len(encode_payload(fits, 100).encode()) == 100
    error = refusal(fits + "a", 100)
    assert error.field == "payload"
    assert error.rule.startswith("is 101 bytes, the limit is 100;")


def test_a_payload_of_many_megabytes_is_refused_before_it_is_written_out() -> None:
    """EN-05: 300 MB is refused by its length alone."""
    chunk = "x" * 1_000_000
    assert "over 262,144 bytes, the limit is 262,144" in refusal([chunk] * 300).rule


def test_size_counts_the_digits_that_jsonb_writes_out() -> None:
    """EN-05: jsonb has no exponents, 1e300 takes 301 characters there."""
    assert "is 606 bytes" in refusal([1e300, 1e300], 605).rule
    encode_payload([1e300, 1e300], 606)
    assert "is 302 bytes" in refusal(1e-300, 301).rule


def test_subclasses_and_tuples_are_written_as_what_they_are() -> None:
    assert encode_payload(OrderedDict(a=(1, True)), 100) == '{"a": [1, true]}'


@pytest.mark.parametrize("value", [datetime(2026, 1, 1, tzinfo=UTC), Decimal(1), {1}, b"x", object(), nested(200)])
def test_a_result_that_cannot_be_stored_becomes_a_marker(value: object) -> None:
    """FI-08: the work is done, so its return value must not turn it into a failure."""
    stored = json.loads(encode_result({"value": value}))
    assert stored["stopline"] == "result not stored"
    assert stored["why"].startswith("result")


def test_a_result_with_a_cycle_becomes_a_marker() -> None:
    """FI-08: an object that contains itself."""
    value: dict[str, Any] = {}
    value["self"] = value
    assert "contains itself" in encode_result(value)


def test_a_result_with_nan_becomes_a_marker_that_names_the_place() -> None:
    """FI-09: one NaN does not lose a run that worked."""
    stored = json.loads(encode_result({"score": math.nan}))
    assert stored["why"].startswith("result.score: is NaN")


def test_a_result_that_is_too_large_becomes_a_small_marker() -> None:
    stored = encode_result(["x" * RESULT_BYTES])
    assert "the limit is 65,536" in stored
    assert len(stored) < 700


def test_a_result_that_raises_while_it_is_read_becomes_a_marker() -> None:
    """FI-08: a container of the handler's own may raise anything."""

    class Broken(dict[str, int]):
        def items(self) -> Any:
            raise KeyError("gone")

    assert "reading it raised KeyError" in encode_result(Broken(a=1))


def test_a_result_that_can_be_stored_is_stored_unchanged() -> None:
    assert encode_result({"summary": "größer", "n": 1}) == '{"summary": "größer", "n": 1}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"n": ' + "9" * 5000 + "}", "more digits than can be read"),
        ('{"n": ' + "9" * 400 + ".5}", "beyond 1e308"),
        ("[" * 200_000 + "]" * 200_000, "too deep"),
        ('{"a": ', "not JSON"),
        ('{"a": NaN}', "NaN is not JSON"),
    ],
)
def test_stored_text_that_cannot_be_read_says_why(text: str, why: str) -> None:
    """CL-01: an undecodable column names its fault, so that its job alone is ended."""
    with pytest.raises(ValueError, match=why):
        decode(text)


def test_a_key_is_text_of_bounded_size_or_nothing() -> None:
    assert check_key(None) is None
    assert check_key("order-1") == "order-1"
    assert check_key("é" * (KEY_BYTES // 2)) is not None
    bad: Any
    for bad, rule in [
        ("", "must not be empty"),
        ("é" * (KEY_BYTES // 2) + "x", "is 513 bytes, the limit is 512"),
        ("a\x00", "NUL"),
        ("a\ud800", "lone surrogate"),
        (7, "got int"),
    ]:
        with pytest.raises(InvalidInput, match=rule) as caught:
            check_key(bad)
        assert caught.value.field == "key"


def test_a_time_is_returned_in_utc() -> None:
    east = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert check_time("due_at", east).isoformat() == "2026-01-01T10:00:00+00:00"


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (datetime(2026, 1, 1), "no time zone"),  # noqa: DTZ001 - a naive time is what is refused
        (datetime(1999, 12, 31, tzinfo=UTC), "2000 to 9998"),
        (datetime(9999, 1, 1, tzinfo=UTC), "2000 to 9998"),
        (datetime(9998, 12, 31, 23, tzinfo=timezone(timedelta(hours=-2))), "2000 to 9998"),
        ("2026-01-01", "got str"),
    ],
)
def test_a_time_that_the_database_could_not_give_back_is_refused(value: Any, rule: str) -> None:
    """CL-01: no timestamp gets in that cannot be read again."""
    with pytest.raises(InvalidInput, match=rule) as caught:
        check_time("deadline_at", value)
    assert caught.value.field == "deadline_at"
