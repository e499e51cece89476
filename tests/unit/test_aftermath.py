"""Every answer to a person's action says what happens next, in words of its own."""

from collections.abc import Callable

import pytest

from stopline.states import OperatorAnswer, State, StopReason
from stopline.store.operate import JobChange, KindChange
from stopline_cli import aftermath

DONE, REQUESTED, ALREADY = OperatorAnswer.DONE, OperatorAnswer.REQUESTED, OperatorAnswer.ALREADY_DONE
Words = Callable[[JobChange], str]


@pytest.mark.parametrize(
    ("words", "answer", "state", "stop", "said"),
    [
        (aftermath.cancelled, DONE, State.CANCELLED, StopReason.CANCELLED, "It will not run again unless"),
        (aftermath.cancelled, REQUESTED, State.CLAIMED, None, "the running attempt decides"),
        (aftermath.cancelled, ALREADY, State.CLAIMED, None, "requested before: the running attempt decides"),
        (aftermath.cancelled, ALREADY, State.CANCELLED, StopReason.CANCELLED, "nothing was added"),
        (aftermath.replayed, DONE, State.PENDING, None, "a poller claims it as soon as its kind may run"),
        (aftermath.replayed, REQUESTED, State.ABANDONED, StopReason.ELAPSED_LIMIT, "the receiver is asked first"),
        (aftermath.replayed, REQUESTED, State.CANCELLED, StopReason.CANCELLED, "the job stays cancelled meanwhile"),
        (aftermath.replayed, ALREADY, State.ABANDONED, StopReason.ELAPSED_LIMIT, "requested before: the receiver is"),
        (aftermath.replayed, ALREADY, State.CLAIMED, None, "its new round is claimed; nothing was added"),
        (aftermath.reconciled, DONE, State.SUCCEEDED, StopReason.COMPLETED, "so it is not run again"),
        (aftermath.reconciled, DONE, State.PENDING, None, "tried again after a backoff"),
        (aftermath.reconciled, DONE, State.CANCELLED, StopReason.CANCELLED, "a cancel had been requested"),
        (aftermath.reconciled, DONE, State.ABANDONED, StopReason.DEADLINE_PASSED, "abandoned (deadline_passed): its"),
        (
            aftermath.reconciled,
            ALREADY,
            State.SUCCEEDED,
            StopReason.COMPLETED,
            "it is succeeded (completed) and nothing",
        ),
        (aftermath.acknowledged, DONE, State.ABANDONED, StopReason.STEP_LIMIT, "a key that it holds stays held"),
        (aftermath.acknowledged, ALREADY, State.ABANDONED, StopReason.STEP_LIMIT, "already acknowledged"),
        (aftermath.key_released, DONE, State.ABANDONED, StopReason.STEP_LIMIT, "new work may have it"),
        (aftermath.key_released, ALREADY, State.ABANDONED, StopReason.STEP_LIMIT, "it holds no key"),
    ],
)
def test_an_action_on_a_job_says_what_happens_next(
    words: Words, answer: OperatorAnswer, state: State, stop: StopReason | None, said: str
) -> None:
    assert said in words(JobChange(7, answer, state, stop))


def test_a_pause_says_how_it_ends_and_what_goes_on_meanwhile() -> None:
    until = KindChange("close", DONE, "2026-03-01T12:00:00Z")
    assert aftermath.paused(until).startswith("paused until 2026-03-01 12:00:00 UTC. No attempt starts")
    assert "already paused until somebody resumes it" in aftermath.paused(KindChange("close", ALREADY, None))
    assert "the next poll claims what is due" in aftermath.resumed(KindChange("close", DONE, None))
    assert "was not paused" in aftermath.resumed(KindChange("close", ALREADY, None))
