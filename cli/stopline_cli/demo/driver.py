"""Lets the demo happen: enqueues, moves the clock from one due time to the next, and invokes the functions."""

from collections.abc import Callable, Mapping
from typing import Any

from stopline.policy import Policy
from stopline_cli.demo import application, scenario
from stopline_cli.demo.invocations import results
from stopline_cli.demo.killer import Killer
from stopline_cli.demo.narrator import Narrator
from stopline_cli.demo.stage import Stage
from stopline_cli.demo.timetable import Timetable
from stopline_cli.errors import CommandError

MOST_STOPS = 500

Job = Mapping[str, Any]


class Driver:
    """One run of the demo. `check` is called often and raises when the run is to end."""

    def __init__(
        self, stage: Stage, policies: Mapping[str, Policy], narrator: Narrator, check: Callable[[], None]
    ) -> None:
        self._stage = stage
        self._clock = stage.database.clock
        self._narrator = narrator
        self._check = check
        self._policies = policies
        self._timetable = Timetable(policies)
        self._killer = Killer(stage.bedrock, str(scenario.SILENT_LATER))
        self._jobs: dict[int, Job] = {}

    def run(self) -> None:
        """Everything, from the first poll until no job is left that a poller could find, and one poll more."""
        application.hand_over_exports(self._stage.database.server, self._clock.now())
        application.enqueue_by_hand(self._stage.database.server)
        self._note_jobs()
        self._narrator.say("Pollers start. Timeouts take real time: the first poll needs some seconds.")
        self._narrator.say()
        minute: int | None = 0
        for _ in range(MOST_STOPS):
            if minute is None:
                # What stopped is still returned by its source: the loop would start again here.
                self._stop_at(self._clock.minute + 1)
                return
            self._stop_at(minute)
            minute = self._next_minute(minute)
        raise CommandError(
            "the demo", f"was not done after {MOST_STOPS} stops of its clock", "shorten the limits of the policies"
        )

    def _next_minute(self, minute: int) -> int | None:
        if minute < scenario.SILENT_AFTER_MINUTES:
            return scenario.SILENT_AFTER_MINUTES
        waiting = [job for job in self._jobs.values() if _open(job)]
        found = self._timetable.next_find(waiting, self._clock)
        if found is None:
            return None
        stop, job = found
        self._narrator.waits(job, stop - minute)
        return stop

    def _stop_at(self, minute: int) -> None:
        self._check()
        self._clock.jump(minute)
        self._narrator.clock(minute)
        if minute == scenario.SILENT_AFTER_MINUTES:
            application.fall_silent(self._stage.database.admin, scenario.SILENT_LATER)
        kinds = self._timetable.due(minute)
        functions = self._stage.functions
        pollers = [functions.pollers[kind] for kind in kinds]
        answers = results(pollers, self._meanwhile)
        self._timetable.looked(kinds, minute)
        for kind, answer in zip(kinds, answers, strict=True):
            self._narrator.polled(kind, answer["kinds"][kind])
        (swept,) = results([functions.sweeper], self._check)
        self._narrator.swept(swept["sweep"])
        (watched,) = results([functions.monitor], self._check)
        self._narrator.watched(watched["totals"])
        self._note_jobs()

    def _meanwhile(self) -> None:
        self._check()
        killed = self._killer.look(self._stage.functions.pollers[scenario.CLOSE].pid)
        if killed is not None:
            self._narrator.killed(killed, scenario.KILLED.key)

    def _note_jobs(self) -> None:
        """Tells which jobs came to a stop since the last look, and what became of those that were uncertain."""
        now: dict[int, Job] = {job["id"]: job for job in self._stage.database.reads.jobs(limit=1000)}
        for number, job in sorted(now.items()):
            before = self._jobs.get(number)
            if job["state"] in ("abandoned", "uncertain") and (before is None or before["state"] != job["state"]):
                self._narrator.stopped(job)
            elif before is not None and before["state"] == "uncertain":
                self._narrator.asked(before, job, self._policies[job["kind"]].owner)
        self._jobs = now


def _open(job: Job) -> bool:
    """Whether a poller has something left to do for it: an uncertain job is a person's once all questions are put."""
    return job["state"] in ("pending", "claimed") or (job["state"] == "uncertain" and job["next_check_at"] is not None)
