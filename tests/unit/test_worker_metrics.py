"""EMF lines: one bad value costs only itself, and every blob has exactly its own dimensions."""

import json
from decimal import Decimal
from typing import Any

import pytest

from stopline.monitor.emf import emit_health


def emitted(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if "_aws" in line]


def names(blob: dict[str, Any]) -> set[str]:
    return {metric["Name"] for metric in blob["_aws"]["CloudWatchMetrics"][0]["Metrics"]}


def test_values_that_are_no_finite_numbers_are_left_out_and_the_rest_is_sent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """MO-04: None, NaN and infinity lose neither the zeros beside them nor the heartbeat."""
    totals: dict[str, Any] = {
        "Due": 0,
        "OldestDueAge": None,
        "Stuck": float("nan"),
        "Claimed": float("inf"),
        "Uncertain": 3,
    }
    emit_health(totals | {"SpendToday": Decimal("1.5")}, [{"kind": "a", "due": float("nan"), "own_metrics": False}])
    (blob,) = emitted(capsys)
    assert names(blob) == {"Due", "Uncertain", "Heartbeat", "SpendToday"}
    assert (blob["Due"], blob["Uncertain"], blob["Heartbeat"]) == ([0.0], [3.0], [1.0])
    assert blob["kinds"] == [{"kind": "a", "due": None}]


def test_a_number_that_no_float_can_hold_and_an_exact_one_in_a_kinds_row_do_not_cost_the_reading(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """MO-04: whatever type the driver gives a number."""
    emit_health({"Due": 10**400, "Claimed": 1}, [{"kind": "a", "spend_today": Decimal("1.5"), "own_metrics": False}])
    (blob,) = emitted(capsys)
    assert names(blob) == {"Claimed", "Heartbeat"}
    assert blob["kinds"] == [{"kind": "a", "spend_today": 1.5}]


def test_a_kinds_own_blob_has_its_numbers_by_name_and_a_kind_dimension(capsys: pytest.CaptureFixture[str]) -> None:
    """MO-01: the next blob does not inherit the kind."""
    row = {"kind": "a", "owner": "team", "due": 2, "oldest_due_age": 5.5, "late": True, "own_metrics": True}
    emit_health({"Due": 2}, [row])
    own, totals = emitted(capsys)
    assert names(own) == {"Due", "OldestDueAge"}
    assert own["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["kind", "service"]]
    assert (own["kind"], own["service"], own["OldestDueAge"]) == ("a", "stopline", [5.5])
    assert totals["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service"]]
    assert totals["kinds"] == [{"kind": "a", "owner": "team", "due": 2, "oldest_due_age": 5.5, "late": True}]
