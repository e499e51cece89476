"""The incident for a year: a source returns what was stopped at every poll, and nobody calls anybody for it again.

Some polls are run, the others jumped over: no job is open, so between two polls nothing can come due.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from stopline.policy import Policy, worst_case
from stopline.policy.exposure import WorstCase
from stopline.states import OperatorAnswer, State
from stopline.store.operate import OperateStore
from stopline_cli.demo.clock import MINUTE
from stopline_cli.demo.compare import Difference
from stopline_cli.demo.found import Found, FoundJob
from stopline_cli.demo.invocations import results
from stopline_cli.demo.narrator import Narrator
from stopline_cli.demo.scenario import CLOSE, INCIDENT, YEAR
from stopline_cli.demo.stage import Stage
from stopline_cli.demo.work import Origin, Work
from stopline_cli.errors import CommandError
from stopline_cli.words import counted

SCENE = "the year"
SAMPLE = 5
"""Polls that are run one after the other, before somebody acknowledges and after."""
MONTHS = 12
_OPEN = (State.PENDING, State.CLAIMED, State.UNCERTAIN)


@dataclass(frozen=True, slots=True)
class Tick:
    """One poll and the sweep after it. `changed`: a job of the kind is not as it was before, or is new. `open`: jobs
    that are left to do something with."""

    minute: int
    created: int
    held: int
    claimed: int
    changed: bool
    open: int


@dataclass(frozen=True, slots=True)
class Year:
    """What came of it. `calls` are the incident's at the stand-in, from the demo's start to the year's end; `before`
    those of the main scene; `calls_since` are everybody's after it. `held` is how many stopped conversations the source
    returns."""

    policy: Policy
    key: str
    ticks: tuple[Tick, ...]
    held: int
    before: int
    calls: int
    calls_since: int
    spent: Decimal
    state: str
    stop_reason: str | None
    acknowledged: int
    said_again: int

    @property
    def polls(self) -> int:
        """Polls in a year, and calls of a loop that calls at each."""
        return YEAR // self.policy.run.every

    @property
    def bound(self) -> WorstCase:
        """The most that the incident could cost, known before it began: its job holds its key, so no other follows."""
        return worst_case(self.policy)

    @property
    def price(self) -> Decimal:
        """US dollars that the policy gives for an attempt."""
        return self.policy.cost.per_attempt_usd or Decimal(0)

    @property
    def uncapped(self) -> Decimal:
        """US dollars of the loop, at the policy's price."""
        return self.polls * self.price

    @property
    def uncapped_as_recorded(self) -> Decimal:
        """US dollars of the loop, at what a call of the incident did cost."""
        return self.polls * self.spent / self.calls if self.calls else Decimal(0)


def differences(found: Year) -> list[Difference]:
    """Everything that a stop line should have kept from happening."""
    return list(_differences(found))


def _differences(found: Year) -> Iterator[Difference]:
    for tick in found.ticks:
        must = Tick(tick.minute, created=0, held=found.held, claimed=0, changed=False, open=0)
        if tick != must:
            yield Difference(SCENE, f"poll at minute {tick.minute}", str(must), str(tick))
    pairs: list[tuple[str, object, object]] = [
        (f"calls for {found.key}", found.before, found.calls),
        ("calls after the main scene", 0, found.calls_since),
        (f"state of {found.key}", State.ABANDONED, found.state),
        ("acknowledged", found.held, found.acknowledged),
        ("acknowledged again", found.held * MONTHS, found.said_again),
    ]
    yield from (Difference(SCENE, what, str(this), str(that)) for what, this, that in pairs if this != that)
    if found.calls > found.bound.calls:
        yield Difference(SCENE, f"calls for {found.key}", f"at most {found.bound.calls}", str(found.calls))


def stopped_and_returned(works: Iterable[Work], jobs: Iterable[FoundJob]) -> list[FoundJob]:
    """The abandoned jobs whose conversations are as open as before, so that their source returns them."""
    from_source = {work.key for work in works if work.kind == CLOSE and work.origin is not Origin.BY_HAND}
    return [job for job in jobs if job.kind == CLOSE and job.state is State.ABANDONED and job.key in from_source]


def _only(jobs: Iterable[FoundJob], key: str) -> FoundJob:
    mine = [job for job in jobs if job.key == key]
    if len(mine) != 1:
        raise CommandError("the demo", f"made {counted(len(mine), 'job')} of {key}, not 1", "see above")
    return mine[0]


class YearScene:
    """Plays it, on the stage that the scenes before left. `check` is called often and raises when the run is to end."""

    def __init__(
        self,
        stage: Stage,
        policy: Policy,
        works: Iterable[Work],
        found: Found,
        narrator: Narrator,
        check: Callable[[], None],
    ) -> None:
        self._stage = stage
        self._clock = stage.database.clock
        self._policy = policy
        self._held = stopped_and_returned(works, found.jobs)
        self._before = found.calls[CLOSE]
        self._incident = _only(found.jobs, INCIDENT)
        self._narrator = narrator
        self._check = check
        self._operator = OperateStore(stage.database.reads.session)

    def play(self) -> Year:
        """Polls minute by minute, lets somebody acknowledge, and then polls month by month."""
        self._narrator.say()
        self._narrator.say(f"The rest of a year: {INCIDENT} is as open as before, so its source returns it.", "bold")
        self._narrator.say()
        ticks = self._minutes()
        acknowledged = self._acknowledge(OperatorAnswer.DONE)
        self._narrator.say(f"         {self._policy.owner} acknowledges {counted(acknowledged, 'job')}")
        ticks += self._minutes()
        said_again = 0
        for month in range(1, MONTHS + 1):
            ticks.append(self._tick(month * YEAR // MONTHS // MINUTE))
            said_again += self._acknowledge(OperatorAnswer.ALREADY_DONE)
        return self._year(ticks, acknowledged, said_again)

    def _year(self, ticks: list[Tick], acknowledged: int, said_again: int) -> Year:
        shown = self._stage.database.reads.job(self._incident.id)
        assert shown is not None
        calls = self._stage.bedrock.calls()
        return Year(
            policy=self._policy,
            key=INCIDENT,
            ticks=tuple(ticks),
            held=len(self._held),
            before=self._incident.calls,
            calls=calls["by_marker"].get(INCIDENT.partition(":")[2], {"calls": 0})["calls"],
            calls_since=calls["total"] - self._before,
            spent=sum((Decimal(str(attempt["cost_usd"])) for attempt in shown["attempts"]), Decimal(0)),
            state=shown["job"]["state"],
            stop_reason=shown["job"]["stop_reason"],
            acknowledged=acknowledged,
            said_again=said_again,
        )

    def _minutes(self) -> list[Tick]:
        return [self._tick(self._clock.minute + 1) for _ in range(SAMPLE)]

    def _tick(self, minute: int) -> Tick:
        self._check()
        self._clock.jump(minute)
        self._narrator.clock(minute)
        before = self._jobs()
        functions = self._stage.functions
        (answer,) = results([functions.pollers[CLOSE]], self._check)
        poll: dict[str, Any] = answer["kinds"][CLOSE]
        self._narrator.polled(CLOSE, poll)
        (swept,) = results([functions.sweeper], self._check)
        self._narrator.swept(swept["sweep"])
        after = self._jobs()
        return Tick(
            minute=minute,
            created=poll["tick"]["created"],
            held=poll["tick"]["held"],
            claimed=poll["claimed"],
            changed=after != before,
            open=sum(state in _OPEN for _, state, *_ in after),
        )

    def _jobs(self) -> list[tuple[Any, ...]]:
        """What a poll or a sweep could change of the kind's jobs."""
        return self._stage.database.admin.execute(
            "select id, state, attempts, fence, stop_reason, acknowledged_at, holds_key, cost_usd from stopline.job "
            "where kind = %s order by id",
            (CLOSE,),
        ).fetchall()

    def _acknowledge(self, answer: OperatorAnswer) -> int:
        """Says of each stopped job that it was seen. Returns how many were answered as they should be."""
        said = [
            self._operator.acknowledge(job.id, self._policy.owner, "the model cannot do it; a person has")
            for job in self._held
        ]
        return sum(change.answer is answer for change in said)
