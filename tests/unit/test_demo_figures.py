"""The demo's arithmetic: what a loop without a stop line would have done, when a poller looks, and how errors read."""

import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from rich.console import Console

from stopline.states import Outcome
from stopline_cli.demo.cast import the_works
from stopline_cli.demo.clock import SimulatedClock
from stopline_cli.demo.figures import figures
from stopline_cli.demo.found import FoundAttempt
from stopline_cli.demo.narrator import since_start
from stopline_cli.demo.scenario import CLOSE, EXPORT
from stopline_cli.demo.scenes import outage_lines, year_lines
from stopline_cli.demo.tables import show, tables
from stopline_cli.demo.timetable import Timetable
from stopline_cli.demo.work import Fault, Work, script
from tests.support.demo_reality import START, as_expected, demo_expected, demo_policies, job_of, performed

FOUND = as_expected(demo_expected())
BEGIN = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


def test_uncapped_is_a_call_per_poll_for_every_job_that_never_succeeds() -> None:
    kind = figures(demo_policies()[CLOSE], the_works(), FOUND, timedelta(hours=2, seconds=59))
    poison = ("conversation:1008", "conversation:1012", "conversation:1019")
    others = sum((job.usd for job in FOUND.jobs if job.kind == CLOSE and job.key not in poison), Decimal(0))
    assert kind.uncapped.usd == 3 * 121 * Decimal("0.20") + others
    # 1 call for each of 16 that go well, 3 for the throttled one, 2 for each of two that fail once.
    assert kind.uncapped.calls == 3 * 121 + 16 + 3 + 2 * 2
    assert "3 jobs that never succeed × 121 polls (every 1 min) × $0.20" in kind.uncapped.working


def test_uncapped_at_recorded_prices_uses_what_each_poison_did_cost() -> None:
    kind = figures(demo_policies()[CLOSE], the_works(), FOUND, timedelta(minutes=9))
    empty, failing, endless = (job_of(FOUND, f"conversation:{number}") for number in (1008, 1012, 1019))
    others = kind.spent - empty.usd - failing.usd - endless.usd
    assert kind.uncapped.as_recorded == others + 10 * (empty.usd / 5 + failing.usd / 5 + endless.usd / 2)


def test_a_kind_without_a_price_has_calls_only() -> None:
    kind = figures(demo_policies()[EXPORT], the_works(), FOUND, timedelta(minutes=59))
    assert (kind.uncapped.usd, kind.worst_case) == (None, None)
    assert kind.uncapped.calls == 12 + 1 + 2 + 2 + 2 + 2


def test_attempts_without_a_call_are_those_that_called_nobody() -> None:
    kind = figures(demo_policies()[CLOSE], the_works(), FOUND, timedelta(hours=1))
    assert (kind.without_call, kind.attempts - kind.calls) == (1, 1)


def test_faults_are_met_in_their_order_and_then_none() -> None:
    work = Work(CLOSE, "k", "1", faults=(Fault("throttle", times=2), Fault("empty", times=1)))
    met = [work.fault_of_call(number) for number in range(1, 6)]
    assert [fault and fault.fault for fault in met] == ["throttle", "throttle", "empty", None, None]
    assert script([work]) == {"1": [{"fault": "throttle", "times": 2}, {"fault": "empty", "times": 1}]}


@pytest.mark.parametrize(
    ("error_class", "error", "reason"),
    [
        ("Transient", "stopline.errors.Transient: no text\n  at x", "Transient: no text"),
        ("HTTP 422", 'stopline.http.HttpError: HTTP 422: {"error": 1}', 'HTTP 422: {"error": 1}'),
        ("Timeout", "the attempt was killed", "Timeout: the attempt was killed"),
        (
            "ThrottlingException",
            "botocore.errorfactory.ThrottlingException: An error occurred (ThrottlingException) when calling the "
            "Converse operation (reached max retries: 0): Too many requests",
            "ThrottlingException: Too many requests",
        ),
        ("", "", ""),
    ],
)
def test_a_reason_is_one_line_that_names_its_class_once(error_class: str, error: str, reason: str) -> None:
    assert FoundAttempt(Outcome.TRANSIENT, error_class, error, Decimal(0), START).reason == reason


class StandingClock(SimulatedClock):
    """A clock that needs no database as long as nobody asks it what time it is."""

    def __init__(self) -> None:
        self.started = BEGIN


def waiting(kind: str, minutes: float) -> dict[str, Any]:
    return {"kind": kind, "state": "pending", "due_at": (BEGIN + timedelta(minutes=minutes)).isoformat()}


def test_the_next_stop_is_when_the_kinds_own_poller_looks() -> None:
    timetable = Timetable(demo_policies())
    assert timetable.due(0) == [CLOSE, EXPORT]
    timetable.looked([CLOSE, EXPORT], 0)
    assert timetable.due(4) == [CLOSE]
    late, soon = waiting(EXPORT, 0.5), waiting(CLOSE, 6.2)
    assert timetable.next_find([late, soon], StandingClock()) == (5, late)
    timetable.looked([EXPORT], 7)
    assert timetable.due(9) == [CLOSE]
    assert timetable.next_find([waiting(EXPORT, 8)], StandingClock()) is not None
    assert timetable.next_find([], StandingClock()) is None


def test_a_question_to_a_receiver_is_a_stop_too() -> None:
    timetable = Timetable(demo_policies())
    asked = {**waiting(EXPORT, 99), "state": "uncertain", "next_check_at": (BEGIN + timedelta(minutes=2)).isoformat()}
    timetable.looked([EXPORT], 0)
    assert timetable.next_find([asked, waiting(CLOSE, 7)], StandingClock()) == (5, asked)


def test_what_nobody_could_say_is_shown_with_every_answer_and_its_owner() -> None:
    out = io.StringIO()
    performance = performed(FOUND, [])
    show(Console(file=out, width=120), tables(performance.kinds, {}, performance.since))
    _, _, uncertain = out.getvalue().partition("Uncertain: nobody could say")
    section = uncertain.partition("\n\n")[0]
    assert "batch:fells-w48" in section
    assert section.count("unknown             503 was answered") == 5
    assert "waits for finance-systems, who should have looked by +0:00" in section


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_of_the_tables_is_wider_than_the_terminal(width: int) -> None:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    performance = performed(FOUND, [])
    show(console, tables(performance.kinds, {work.key: work.story for work in the_works()}, performance.since))
    show(console, [*outage_lines(performance.outage), *year_lines(performance.year)])
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    titles = [line for line in lines if line and not line.startswith(" ")]
    assert not any("…" in line for line in titles)


@pytest.mark.parametrize(
    ("minutes", "shown"), [(0, "+0:00"), (185, "+3:05"), (2879, "+47:59"), (2880, "+2 d"), (525600, "+365 d")]
)
def test_simulated_time_is_shown_in_hours_and_from_two_days_on_in_days(minutes: int, shown: str) -> None:
    assert since_start(minutes) == shown
