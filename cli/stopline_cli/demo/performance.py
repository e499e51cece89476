"""One performance of the demo, from the policies to what came of it."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from stopline.durations import format_duration
from stopline.policy import Policy, load_policies, overlay
from stopline_cli.demo.cast import the_works
from stopline_cli.demo.compare import Difference, differences
from stopline_cli.demo.driver import Driver
from stopline_cli.demo.expect import Ending, expected_endings
from stopline_cli.demo.figures import Figures, figures
from stopline_cli.demo.found import find
from stopline_cli.demo.narrator import Narrator
from stopline_cli.demo.outage import Outage, OutageScene
from stopline_cli.demo.outage import differences as outage_differences
from stopline_cli.demo.scenario import CLOSE, EXPORT, INTRODUCTION, OVERLAY
from stopline_cli.demo.stage import Stage, fresh_database, only_demo, set_up
from stopline_cli.demo.work import Work, script
from stopline_cli.demo.year import Year, YearScene
from stopline_cli.demo.year import differences as year_differences
from stopline_cli.local.prepare import JOBS
from stopline_cli.words import instant


@dataclass(frozen=True, slots=True)
class Performance:
    """What came of it. `since` is the time from the start to an ISO time; `lasted` is the main scene's simulated time
    and `passed` that of all scenes, `seconds` are real."""

    kinds: list[Figures]
    expected: Mapping[Work, tuple[Ending, ...]]
    differing: list[Difference]
    since: Callable[[str], timedelta]
    lasted: timedelta
    seconds: float
    outage: Outage
    year: Year
    passed: timedelta


def changes(cap: int | None) -> dict[str, dict[str, dict[str, Any]]]:
    """What the demo changes in the shipped policies, by kind."""
    changed = {kind: {section: dict(keys) for section, keys in sections.items()} for kind, sections in OVERLAY.items()}
    if cap is not None:
        changed[CLOSE]["limits"] = {"max_attempts": cap}
    return changed


def perform(cap: int | None, narrator: Narrator, check: Callable[[], None]) -> Performance:
    """Runs the demo. `check` is called often, and raises when the run is to end."""
    started = time.monotonic()
    loaded = load_policies(JOBS)
    shipped = {kind: loaded[kind] for kind in OVERLAY}
    changed = changes(cap)
    policies = {kind: overlay(policy, changed[kind]) for kind, policy in shipped.items()}
    works = the_works()
    expected = {work: expected_endings(work, policies[work.kind]) for work in works}
    narrator.say_all(INTRODUCTION)
    narrator.say("Policies as shipped in lambdas/jobs, except:")
    narrator.say_all(_changes_in_words(shipped, policies, changed))
    with ExitStack() as stack:
        stack.enter_context(only_demo())
        narrator.say("Starting PostgreSQL on an empty database")
        database = stack.enter_context(fresh_database(policies))
        check()
        narrator.say_all(f"  {line}" for line in database.migration.lines)
        narrator.say(f"  loaded {' and '.join(f'{count} {what}' for what, count in database.samples.items())}")
        stage = stack.enter_context(set_up(database, policies))
        _hand_out(stage, works)
        narrator.say(f"Stand-in for Bedrock at {stage.bedrock.url}")
        narrator.say(f"Stand-in for the accounting connector at {stage.connector.url}")
        Driver(stage, policies, narrator, check).run()
        lasted = database.clock.elapsed
        found = find(stage, works)
        outage = OutageScene(stage, policies[EXPORT], narrator, check).play()
        year = YearScene(stage, policies[CLOSE], works, found, narrator, check).play()
        passed = database.clock.elapsed
        begin = database.clock.started
    return Performance(
        kinds=[figures(policy, works, found, lasted) for policy in policies.values()],
        expected=expected,
        differing=[*differences(expected, found), *outage_differences(outage), *year_differences(year)],
        since=lambda text: instant(text) - begin,
        lasted=lasted,
        seconds=time.monotonic() - started,
        outage=outage,
        year=year,
        passed=passed,
    )


def _hand_out(stage: Stage, works: list[Work]) -> None:
    """Tells each stand-in which of its calls go wrong."""
    stage.bedrock.script(script(work for work in works if work.kind == CLOSE))
    stage.connector.script(script(work for work in works if work.kind == EXPORT))


def _changes_in_words(
    shipped: Mapping[str, Policy],
    policies: Mapping[str, Policy],
    changed: Mapping[str, Mapping[str, Mapping[str, Any]]],
) -> list[str]:
    lines = []
    for kind, sections in changed.items():
        for section, keys in sections.items():
            for key in keys:
                before, now = (_shown(some[kind].value(section, key)) for some in (shipped, policies))
                lines.append(f"  {kind}: {section}.{key} = {now} (shipped: {before})")
    return lines


def _shown(value: object) -> str:
    return format_duration(value) if isinstance(value, timedelta) else str(value)
