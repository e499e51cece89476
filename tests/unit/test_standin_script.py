"""The script of faults that a stand-in follows."""

import pytest

from stopline_cli.standins.script import Script, ScriptError


def script(document: object) -> Script:
    made = Script({"throttle", "hang"})
    made.replace(document)
    return made


def faults(made: Script, *markers: str, requests: int) -> list[str | None]:
    steps = [made.take(markers) for _ in range(requests)]
    return [step.fault if step else None for step in steps]


def test_steps_are_met_in_order_and_then_requests_are_answered_as_usual() -> None:
    made = script({"1004": [{"fault": "throttle", "times": 2}, {"fault": "hang", "times": 1}]})
    assert faults(made, "1004", requests=5) == ["throttle", "throttle", "hang", None, None]


def test_a_step_without_times_is_met_for_ever() -> None:
    assert faults(script({"1004": [{"fault": "hang"}]}), "1004", requests=4) == ["hang"] * 4


def test_a_marker_of_its_own_goes_before_the_marker_for_all_others() -> None:
    made = script({"1004": [], "*": [{"fault": "throttle", "times": 1}]})
    assert faults(made, "1004", "*", requests=2) == [None, None]
    assert faults(made, "1005", "*", requests=2) == ["throttle", None]


def test_rewinding_starts_the_steps_again() -> None:
    made = script({"a": [{"fault": "hang", "times": 1}]})
    faults(made, "a", requests=3)
    made.rewind()
    assert faults(made, "a", requests=2) == ["hang", None]


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ([], "the script must be an object"),
        ({"a": {"fault": "hang"}}, "a: must be a list"),
        ({"a": ["hang"]}, r"a\[0\]: must be an object"),
        ({"a": [{"fault": "explode"}]}, r"a\[0\].fault: must be one of hang, throttle, not 'explode'"),
        ({"a": [{"fault": "hang", "times": 0}]}, r"a\[0\].times: must be a whole number from 1"),
        ({"a": [{"fault": "hang", "times": True}]}, r"a\[0\].times"),
        ({"a": [{"fault": "hang", "retry_after": -1}]}, r"a\[0\].retry_after: must be seconds from 0"),
        ({"a": [{"fault": "hang", "seconds": float("nan")}]}, r"a\[0\].seconds"),
        ({"a": [{"fault": "hang", "error": 5}]}, r"a\[0\].error: must be text"),
        ({"a": [{"fault": "hang", "retry-after": 1}]}, r"a\[0\].retry-after: unknown"),
    ],
)
def test_a_wrong_script_is_refused_by_place_and_rule_and_the_old_one_stays(document: object, complaint: str) -> None:
    made = script({"a": [{"fault": "throttle"}]})
    with pytest.raises(ScriptError, match=complaint):
        made.replace(document)
    assert faults(made, "a", requests=1) == ["throttle"]
