"""The outage: the connector answers 503 to everything while several exports are due, and the breaker rides it out."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from stopline.policy import Policy
from stopline.states import State
from stopline_cli.demo import application
from stopline_cli.demo.breaker import CLOSED, Plan, plan
from stopline_cli.demo.clock import MINUTE
from stopline_cli.demo.compare import Difference
from stopline_cli.demo.invocations import results
from stopline_cli.demo.narrator import Narrator, since_start
from stopline_cli.demo.scenario import EXPORT, OUTAGE, OUTAGE_BATCHES
from stopline_cli.demo.stage import Stage
from stopline_cli.demo.work import Fault
from stopline_cli.words import instant, span

SCENE = "the outage"
EVERYTHING = "*"


@dataclass(frozen=True, slots=True)
class Outage:
    """What came of it. `calls` are by the minute of their poll, from the outage's start; `taken` are those that the
    connector carried out; `paused` are polls that found the kind paused and made none; `attempts` are the database's.
    """

    policy: Policy
    expected: Plan
    calls: Mapping[int, int]
    taken: int
    paused: int
    states: Mapping[str, int]
    attempts: int
    events: tuple[str, ...]

    @property
    def wasted(self) -> int:
        """Calls while nothing worked."""
        return sum(count for minute, count in self.calls.items() if minute * MINUTE < self.expected.down)

    @property
    def working(self) -> str:
        """Why so few calls."""
        pauses = ", ".join(span(pause.total_seconds()) for pause in self.expected.pauses)
        probes = len(self.expected.pauses) - 1
        return (
            f"{self.expected.jobs} jobs x 1 call + {probes} probes that failed = {self.expected.wasted} calls in "
            f"{span(self.expected.down.total_seconds())}; pauses of {pauses}"
        )

    @property
    def uncapped_working(self) -> str:
        """What a loop would have made of it."""
        looks = self.expected.uncapped // self.expected.jobs
        every = span(self.policy.run.every.total_seconds())
        return f"{self.expected.jobs} jobs x {looks} polls (every {every}) = {self.expected.uncapped} calls"


def differences(found: Outage) -> list[Difference]:
    """Everything that is not as the breaker's rules say it must be."""
    must = found.expected
    pairs: list[tuple[str, object, object]] = [
        ("calls by minute", _by_minute(must.calls), _by_minute(found.calls)),
        ("calls while nothing worked", must.wasted, found.wasted),
        ("calls that the connector carried out", must.jobs, found.taken),
        ("attempts", must.total, found.attempts),
        ("states", f"{must.jobs} succeeded", ", ".join(f"{n} {state}" for state, n in found.states.items())),
        ("events", ", ".join(must.events), ", ".join(found.events) or "none"),
        ("polls that found the kind paused", must.paused, found.paused),
    ]
    return [Difference(SCENE, what, str(this), str(that)) for what, this, that in pairs if this != that]


class OutageScene:
    """Plays it, on the stage that the main scene left. `check` is called often and raises when the run is to end."""

    def __init__(self, stage: Stage, policy: Policy, narrator: Narrator, check: Callable[[], None]) -> None:
        self._stage = stage
        self._clock = stage.database.clock
        self._policy = policy
        self._narrator = narrator
        self._check = check
        self._told = 0

    def play(self) -> Outage:
        """Polls and sweeps at each of the poller's times until all jobs are done."""
        expected = plan(self._policy, len(OUTAGE_BATCHES), OUTAGE)
        self._begin()
        every = self._policy.run.every // MINUTE
        start = self._first_minute(every)
        made = self._calls()["total"], self._calls()["accepted"]
        calls: dict[int, int] = {}
        paused = 0
        seen = made[0]
        # One poll more than the model needs shows that nothing is called any more.
        for minute in range(0, max(expected.calls) + every + 1, every):
            if minute * MINUTE >= OUTAGE > (minute - every) * MINUTE:
                self._stage.connector.script({})
                self._narrator.say(f"{since_start(start + minute):>7}  the connector works again", "green")
            poll = self._look(start + minute)
            total = self._calls()["total"]
            if total > seen:
                calls[minute] = total - seen
            elif poll["status"] == "paused":
                paused += 1
            seen = total
        jobs = self._jobs()
        return Outage(
            policy=self._policy,
            expected=expected,
            calls=calls,
            taken=self._calls()["accepted"] - made[1],
            paused=paused,
            states=dict(sorted(Counter(str(State(job["state"])) for job in jobs).items())),
            attempts=sum(job["attempts"] for job in jobs),
            events=tuple(event["action"] for event in self._events()),
        )

    def _begin(self) -> None:
        breaker = self._policy.breaker
        self._narrator.say()
        self._narrator.say(
            f"An outage: for {span(OUTAGE.total_seconds())} the accounting connector answers 503 to everything, and "
            f"{len(OUTAGE_BATCHES)} exports are due.",
            "bold",
        )
        self._narrator.say(
            f"The breaker of {EXPORT}: when {breaker.share:.0%} of what {breaker.jobs} or more jobs did within "
            f"{_span(breaker.window)} failed alike, the kind pauses for {_span(breaker.cooldown)}, and twice as long "
            f"after each probe that fails, up to {_span(breaker.max_cooldown)}. All of it is as shipped."
        )
        self._narrator.say()

    def _first_minute(self, every: int) -> int:
        """The outage begins when the poller looks and the breaker's window holds nothing of before."""
        database = self._stage.database
        after = self._clock.minute + self._policy.breaker.window // MINUTE + 1
        start = -(-after // every) * every
        self._clock.jump(start)
        self._stage.connector.script({EVERYTHING: [Fault("unavailable").as_step()]})
        application.bill(database.admin, OUTAGE_BATCHES)
        application.hand_over_exports(database.server, self._clock.now(), OUTAGE_BATCHES)
        return start

    def _look(self, minute: int) -> dict[str, Any]:
        self._check()
        self._clock.jump(minute)
        self._narrator.clock(minute)
        functions = self._stage.functions
        (answer,) = results([functions.pollers[EXPORT]], self._check)
        poll: dict[str, Any] = answer["kinds"][EXPORT]
        self._narrator.polled(EXPORT, poll)
        (swept,) = results([functions.sweeper], self._check)
        self._narrator.swept(swept["sweep"])
        if swept["sweep"]:
            self._tell(self._events())
        return poll

    def _tell(self, events: list[dict[str, Any]]) -> None:
        for event in events[self._told :]:
            until = (event["after"] or {}).get("paused_until")
            paused = "" if until is None else f"; no call before {since_start(self._clock.minute_of(instant(until)))}"
            style = "green" if event["action"] == CLOSED else "yellow"
            self._narrator.say(f"         event {event['action']}: {event['reason']}{paused}", style)
        self._told = len(events)

    def _calls(self) -> dict[str, Any]:
        return self._stage.connector.calls()

    def _jobs(self) -> list[dict[str, Any]]:
        keys = {f"batch:{batch}" for batch in OUTAGE_BATCHES}
        return [job for job in self._stage.database.reads.jobs(EXPORT, limit=1000) if job["key"] in keys]

    def _events(self) -> list[dict[str, Any]]:
        """Those of the kind in the life of the job that lived longest."""
        return max(self._lives(), key=len, default=[])

    def _lives(self) -> Iterator[list[dict[str, Any]]]:
        for job in self._jobs():
            shown = self._stage.database.reads.job(job["id"])
            if shown is not None:
                yield shown["kind_events"]


def _by_minute(calls: Mapping[int, int]) -> str:
    return ", ".join(f"{count} at {since_start(minute)}" for minute, count in sorted(calls.items()))


def _span(length: timedelta) -> str:
    return span(length.total_seconds())
