"""The demo's model: what must come of each fault under a policy, without asking the database."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from stopline.policy import Policy, overlay
from stopline.states import Outcome, ReceiverAnswer, State, StopReason
from stopline_cli.demo.expect import Ending, expected_endings
from stopline_cli.demo.reactions import reaction
from stopline_cli.demo.scenario import CLOSE, EXPORT
from stopline_cli.demo.work import Fault, Work
from stopline_cli.standins.bedrock import ERRORS, BedrockService
from stopline_cli.standins.connector import ConnectorService
from tests.support.demo_reality import demo_expected, demo_policies

T, S, P, U = Outcome.TRANSIENT, Outcome.SUCCEEDED, Outcome.PERMANENT, Outcome.UNCERTAIN
APPLIED, NOT_APPLIED, UNKNOWN = ReceiverAnswer


def conversation(*faults: Fault, **fields: Any) -> Work:
    return Work(CLOSE, "conversation:1", "1", faults=faults, prompt_bytes=1000, **fields)


def export(*faults: Fault, **fields: Any) -> Work:
    return Work(EXPORT, "batch:x", "INV-1", faults=faults, **fields)


def only(work: Work, policy: Policy) -> Ending:
    (ending,) = expected_endings(work, policy)
    return ending


def outcomes(ending: Ending) -> list[Outcome]:
    return [attempt.outcome for attempt in ending.attempts]


def closing(cap: int | None = None, **sections: Any) -> Policy:
    return overlay(demo_policies(cap)[CLOSE], sections)


def test_work_without_a_fault_succeeds_in_one_attempt_with_one_call() -> None:
    ending = only(conversation(), closing())
    assert (ending.state, ending.stop_reason, ending.calls, ending.taken) == (
        State.SUCCEEDED,
        StopReason.COMPLETED,
        1,
        1,
    )


@pytest.mark.parametrize(
    ("cap", "ended"),
    [
        (1, (State.ABANDONED, StopReason.ATTEMPTS_EXHAUSTED, [T])),
        (2, (State.ABANDONED, StopReason.ATTEMPTS_EXHAUSTED, [T, T])),
        (3, (State.SUCCEEDED, StopReason.COMPLETED, [T, T, S])),
        (7, (State.SUCCEEDED, StopReason.COMPLETED, [T, T, S])),
    ],
)
def test_a_cap_below_what_is_needed_abandons_and_one_above_does_not(cap: int, ended: tuple[Any, ...]) -> None:
    ending = only(conversation(Fault("throttle", times=2, retry_after=1500)), closing(cap))
    assert (ending.state, ending.stop_reason, outcomes(ending)) == ended
    assert [attempt.usd.high for attempt in ending.attempts][:2] == [Decimal(0)] * min(cap, 2)


@pytest.mark.parametrize("cap", [1, 3, 5, 7])
def test_a_poison_conversation_takes_exactly_the_cap(cap: int) -> None:
    ending = only(conversation(Fault("empty")), closing(cap))
    assert (ending.stop_reason, outcomes(ending)) == (StopReason.ATTEMPTS_EXHAUSTED, [T] * cap)
    assert ending.calls == ending.taken == cap


@pytest.mark.parametrize(
    ("cap", "attempts", "reason"),
    [(4, 4, StopReason.ATTEMPTS_EXHAUSTED), (5, 5, StopReason.BUDGET_EXHAUSTED), (7, 5, StopReason.BUDGET_EXHAUSTED)],
)
def test_money_ends_it_first_where_every_attempt_keeps_its_reservation(
    cap: int, attempts: int, reason: StopReason
) -> None:
    ending = only(conversation(Fault("error", error="ModelErrorException")), closing(cap))
    assert (ending.stop_reason, len(ending.attempts), ending.taken) == (reason, attempts, 0)


def test_crashes_and_timeouts_end_it_at_max_crashes() -> None:
    ending = only(conversation(Fault("trickle")), closing())
    assert (ending.stop_reason, outcomes(ending)) == (StopReason.CRASHES_EXHAUSTED, [Outcome.TIMEOUT] * 2)


def test_a_killed_attempt_is_a_crash_and_the_next_one_goes_well() -> None:
    ending = only(conversation(Fault("hang", times=1), killed_in_call=1), closing())
    assert outcomes(ending) == [Outcome.CRASHED, S]
    assert ending.attempts[0].says == "SIGKILL"


def test_work_that_is_refused_before_it_calls_is_one_attempt_and_no_call() -> None:
    ending = only(Work(CLOSE, "conversation:x", None), closing())
    assert (ending.stop_reason, outcomes(ending), ending.calls) == (StopReason.PERMANENT_FAILURE, [P], 0)


LOST = ["hang", "drop", "server_error", "accept_then_hang", "accept_then_drop"]


def answers(ending: Ending) -> list[ReceiverAnswer]:
    return [check.answer for check in ending.checks]


@pytest.mark.parametrize("fault", LOST)
def test_a_lost_answer_of_a_kind_that_may_not_repeat_and_cannot_ask_is_uncertain_and_never_sent_again(
    fault: str,
) -> None:
    mute = replace(demo_policies()[EXPORT], reconciles=False)
    ending = only(export(Fault(fault, times=1)), mute)
    assert (ending.state, ending.stop_reason, outcomes(ending)) == (State.UNCERTAIN, None, [U])
    assert (ending.taken, ending.checks) == (fault.startswith("accept"), ())


@pytest.mark.parametrize("fault", LOST)
def test_the_receiver_is_asked_before_anything_is_sent_again(fault: str) -> None:
    ending = only(export(Fault(fault, times=1)), demo_policies()[EXPORT])
    assert (ending.state, ending.taken) == (State.SUCCEEDED, 1)
    if fault.startswith("accept"):
        assert (outcomes(ending), answers(ending)) == ([U], [APPLIED])
    else:
        assert (outcomes(ending), answers(ending)) == ([U, S], [NOT_APPLIED])


def test_every_unknown_outcome_is_asked_about_anew_and_the_attempts_are_capped_all_the_same() -> None:
    ending = only(export(Fault("drop")), demo_policies()[EXPORT])
    assert (ending.stop_reason, outcomes(ending)) == (StopReason.ATTEMPTS_EXHAUSTED, [U] * 4)
    assert answers(ending) == [NOT_APPLIED] * 4


@pytest.mark.parametrize(("times", "asked"), [(1, 2), (4, 5), (5, 5), (None, 5)])
def test_questions_that_nobody_answers_end_at_their_bound(times: int | None, asked: int) -> None:
    lookups = (Fault("unavailable", times=times),)
    ending = only(export(Fault("accept_then_drop", times=1), lookups=lookups), demo_policies()[EXPORT])
    settled = asked > (times or 99)
    assert answers(ending) == [UNKNOWN] * (asked - settled) + [APPLIED] * settled
    assert ending.state is (State.SUCCEEDED if settled else State.UNCERTAIN)
    assert ending.checks[0].says == "503"


@pytest.mark.parametrize(("minutes", "reason"), [(20, StopReason.DEADLINE_PASSED), (24 * 60, StopReason.COMPLETED)])
def test_a_deadline_before_the_pause_that_a_receiver_asks_for_ends_it_at_once(minutes: int, reason: StopReason) -> None:
    fault = Fault("unavailable", times=1, retry_after=1800)
    ending = only(export(fault, deadline=timedelta(minutes=minutes)), demo_policies()[EXPORT])
    assert ending.stop_reason is reason
    assert len(ending.attempts) == (1 if reason is StopReason.DEADLINE_PASSED else 2)


def test_a_lost_answer_of_an_idempotent_kind_is_tried_again() -> None:
    assert outcomes(only(conversation(Fault("drop", times=1)), closing())) == [T, S]


def test_a_batch_that_is_sent_twice_under_one_reference_is_stored_once() -> None:
    policy = overlay(demo_policies()[EXPORT], {"idempotent": True})
    ending = only(export(Fault("accept_then_hang", times=1)), policy)
    assert (outcomes(ending), ending.calls, ending.taken) == ([T, S], 2, 1)


@pytest.mark.parametrize(("kind", "service"), [(CLOSE, BedrockService), (EXPORT, ConnectorService)])
def test_the_model_knows_every_fault_of_the_stand_ins(
    kind: str, service: type[BedrockService] | type[ConnectorService]
) -> None:
    for fault in service.faults:
        assert reaction(kind, Fault(fault)) is not None
    for name in ERRORS:
        assert reaction(CLOSE, Fault("error", error=name)).says == name


def test_where_jitter_decides_every_right_ending_is_given() -> None:
    endings = expected_endings(conversation(Fault("empty")), closing(12))
    lengths = sorted({len(ending.attempts) for ending in endings})
    assert len(lengths) > 1
    assert lengths == list(range(lengths[0], 12 + 1))
    assert {ending.stop_reason for ending in endings} == {StopReason.ELAPSED_LIMIT, StopReason.ATTEMPTS_EXHAUSTED}


def test_a_limit_that_the_shortest_pause_already_passes_leaves_one_ending() -> None:
    policy = closing(limits={"max_elapsed": "31m"}, retry={"base": "2h"}, breaker={"max_cooldown": "30m"})
    ending = only(conversation(Fault("empty")), policy)
    assert (ending.stop_reason, len(ending.attempts)) == (StopReason.ELAPSED_LIMIT, 1)


def test_the_whole_demo_under_its_own_policies_has_one_right_ending_for_each_job() -> None:
    assert all(len(endings) == 1 for endings in demo_expected().values())
    reasons = {endings[0].stop_reason for endings in demo_expected().values()}
    assert reasons >= {
        StopReason.ATTEMPTS_EXHAUSTED,
        StopReason.BUDGET_EXHAUSTED,
        StopReason.CRASHES_EXHAUSTED,
        StopReason.DEADLINE_PASSED,
        StopReason.PERMANENT_FAILURE,
        None,
    }
    assert {answer for endings in demo_expected().values() for answer in answers(endings[0])} == {APPLIED, UNKNOWN}
