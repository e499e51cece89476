"""What must come of each piece of work, by its faults and the policies in effect.

A small model of the rules, independent of the SQL that enforces them: attempts, and questions to a receiver about an
outcome that nobody knows. Pauses are jittered and a token count is not
known beforehand, so where a limit of time or money lies within those bounds more than one ending is right.

Not modelled: a daily budget or a breaker that holds the whole kind up. The demo's work stays far below both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from itertools import count

from stopline.policy import Policy
from stopline.policy.sections import Retry
from stopline.states import Outcome, ReceiverAnswer, State, StopReason
from stopline_cli.demo.pauses import pause, start_delay
from stopline_cli.demo.prices import bill
from stopline_cli.demo.ranges import Range, exactly
from stopline_cli.demo.reactions import KILLED, REFUSED_UNSENT, Reaction, reaction
from stopline_cli.demo.scenario import EXPORT
from stopline_cli.demo.work import Fault, Work

UNANSWERED = frozenset({Outcome.CRASHED, Outcome.TIMEOUT})


@dataclass(frozen=True, slots=True)
class Attempt:
    """One expected attempt."""

    outcome: Outcome
    says: str
    usd: Range[Decimal]
    sent: bool
    taken: bool


@dataclass(frozen=True, slots=True)
class Check:
    """One expected question to the receiver. `says` must stand in its recorded reason."""

    answer: ReceiverAnswer
    says: str


@dataclass(frozen=True, slots=True)
class Ending:
    """One way in which a piece of work may rightly end."""

    state: State
    stop_reason: StopReason | None
    attempts: tuple[Attempt, ...]
    checks: tuple[Check, ...] = ()

    @property
    def calls(self) -> int:
        """Requests on the wire: one for each attempt that got that far."""
        return sum(attempt.sent for attempt in self.attempts)

    @property
    def taken(self) -> int:
        """How often the receiver did the work."""
        return sum(attempt.taken for attempt in self.attempts)


@dataclass(slots=True)
class _Round:
    """What the attempts so far have used up. `lasted` runs from the round's first claim."""

    lasted: Range[timedelta]
    spent: Range[Decimal]
    unanswered: int = 0


def expected_endings(work: Work, policy: Policy) -> tuple[Ending, ...]:
    """Every ending that is right for this work under this policy; nearly always one."""
    return tuple(_endings(work, policy))


def _endings(work: Work, policy: Policy) -> Iterator[Ending]:
    used = _Round(exactly(timedelta()), exactly(Decimal(0)))
    attempts: list[Attempt] = []
    checks: list[Check] = []
    for number in count(1):
        fault = work.fault_of_call(number)
        met = _reaction(work, fault, number)
        # The connector stores one reference once, however often it is sent.
        stored = work.kind == EXPORT and any(earlier.taken for earlier in attempts)
        attempt = Attempt(_outcome(met, policy), met.says, bill(met, work, policy), met.sent, met.taken and not stored)
        attempts.append(attempt)
        final = _final(attempt, policy)
        used.lasted += Range(timedelta(), policy.run.timeout)
        wait = pause(number, policy.retry, None if fault is None else fault.retry_after)
        if final == (State.UNCERTAIN, None) and policy.reconciles:
            asked, took = ask(work, policy, stored=stored or attempt.taken, before=len(checks))
            checks += asked
            used.lasted += took
            final = _settled(asked[-1].answer)
            wait = pause(number, policy.retry)
        if final is not None:
            yield Ending(*final, tuple(attempts), tuple(checks))
            return
        used.spent += attempt.usd
        used.unanswered += attempt.outcome in UNANSWERED
        used.lasted += wait
        for reason, must in _limits(used, number, work, policy):
            yield Ending(State.ABANDONED, reason, tuple(attempts), tuple(checks))
            if must:
                return
        used.lasted += start_delay(policy)


def _reaction(work: Work, fault: Fault | None, number: int) -> Reaction:
    if work.marker is None:
        return REFUSED_UNSENT
    if work.killed_in_call == number:
        return KILLED
    return reaction(work.kind, fault)


def _outcome(met: Reaction, policy: Policy) -> Outcome:
    if met.outcome is not None:
        return met.outcome
    return Outcome.TRANSIENT if policy.idempotent else Outcome.UNCERTAIN


def _final(attempt: Attempt, policy: Policy) -> tuple[State, StopReason | None] | None:
    """Where this outcome ends the work whatever is left of its limits."""
    if attempt.outcome is Outcome.SUCCEEDED:
        return State.SUCCEEDED, StopReason.COMPLETED
    if attempt.outcome is Outcome.PERMANENT:
        return State.ABANDONED, StopReason.PERMANENT_FAILURE
    # An attempt that died before it sent anything left its kind's stamp unset, if the kind stamps.
    maybe_done = attempt.outcome in UNANSWERED and (attempt.sent or policy.effect != "stamped")
    if attempt.outcome is Outcome.UNCERTAIN or (maybe_done and not policy.idempotent):
        return State.UNCERTAIN, None
    return None


def ask(work: Work, policy: Policy, *, stored: bool, before: int) -> tuple[list[Check], Range[timedelta]]:
    """The questions about one unknown outcome, until one is answered or none is left, and how long they take.

    `stored` is whether the receiver has the work, `before` how often it was asked about it earlier.
    """
    settle = policy.reconcile.settle
    pauses = Retry(base=settle, cap=max(settle, policy.retry.cap))
    checks: list[Check] = []
    took = exactly(settle)
    for number in range(1, policy.reconcile.max_checks + 1):
        took += start_delay(policy) + Range(timedelta(), policy.run.timeout)
        fault = work.fault_of_lookup(before + number)
        if fault is None:
            answer = ReceiverAnswer.APPLIED if stored else ReceiverAnswer.NOT_APPLIED
            return [*checks, Check(answer, answer)], took
        checks.append(Check(ReceiverAnswer.UNKNOWN, reaction(work.kind, fault).says))
        took += pause(number, pauses)
    return checks, took


def _settled(answer: ReceiverAnswer) -> tuple[State, StopReason | None] | None:
    """Where the last answer ends the work; None where it opens a retry."""
    if answer is ReceiverAnswer.APPLIED:
        return State.SUCCEEDED, StopReason.COMPLETED
    return (State.UNCERTAIN, None) if answer is ReceiverAnswer.UNKNOWN else None


def _limits(used: _Round, number: int, work: Work, policy: Policy) -> Iterator[tuple[StopReason, bool]]:
    """The limits that forbid another attempt, in their precedence. True with one that does so in any case."""
    limits, cost = policy.limits, policy.cost
    latest = used.lasted.high + start_delay(policy).high
    for reason, limit in (
        (StopReason.DEADLINE_PASSED, work.deadline or limits.deadline),
        (StopReason.ELAPSED_LIMIT, limits.max_elapsed),
    ):
        if limit is not None and latest >= limit:
            yield reason, used.lasted.low >= limit
    if cost.per_job_usd is not None:
        left = cost.per_job_usd - (cost.per_attempt_usd or 0)
        if used.spent.high > left:
            yield StopReason.BUDGET_EXHAUSTED, used.spent.low > left
    if used.unanswered >= limits.max_crashes:
        yield StopReason.CRASHES_EXHAUSTED, True
    if number >= limits.max_attempts:
        yield StopReason.ATTEMPTS_EXHAUSTED, True
