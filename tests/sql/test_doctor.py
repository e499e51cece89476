"""The doctor names what is wrong with a database, and says nothing of one that is well."""

import json
from datetime import timedelta
from pathlib import Path
from typing import LiteralString

import pytest

from stopline.migrate.doctor import diagnose
from stopline.migrate.findings import Finding, Level
from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import SQL
from tests.support.application import SOURCE
from tests.support.database import Database, fresh_database
from tests.support.deploys import SqlCopy, deploy, policies
from tests.support.poller import Poller, sweep
from tests.support.rows import insert_job

MOVABLE = ("clock", "source of time")
"""Every test database has the movable clock, and the doctor says so."""


def findings(db: Database, sql_dir: Path = SQL, more: str = "", sources: dict[str, str] | None = None) -> list[Finding]:
    """All findings against a checkout whose kind is `work`."""
    kinds = policies("work", more=more)
    return diagnose(db.connect("stopline_owner"), sql_dir, kinds, sources or {}, identity=db.identity)


def wrong(db: Database, **options: object) -> dict[tuple[str, str], Finding]:
    """What is not ok, but for the clock."""
    found = findings(db, **options)  # type: ignore[arg-type]
    return {(f.part, f.name): f for f in found if f.level != Level.OK and (f.part, f.name) != MOVABLE}


@pytest.fixture
def well(db: Database) -> Database:
    """A database in use: jobs in every state, a poller and a sweeper at work."""
    deploy(db, kinds=policies("work"))
    for _ in range(4):
        db.enqueue()
    poller = Poller(db)
    db.connect().execute("select stopline.tick('work')")
    poller.succeed(poller.one())
    poller.fail(poller.one())
    poller.one()
    sweep(db)
    return db


def test_a_database_that_is_well_has_nothing_but_ok_lines_and_none_of_them_asks_for_anything(well: Database) -> None:
    assert wrong(well) == {}
    found = findings(well)
    assert len(found) > 30
    assert [f for f in found if f.level == Level.OK and f.fix is not None] == []
    assert len({(f.part, f.name) for f in found}) == len(found)


def test_the_movable_clock_is_reported_with_how_far_it_was_moved(well: Database) -> None:
    well.move("1h")
    (found,) = (f for f in findings(well) if (f.part, f.name) == MOVABLE)
    assert (found.level, found.found) == (Level.WARN, "the movable clock of `stopline local` (moved by 01:00:00)")


def test_an_operator_reads_the_databases_part_and_changes_nothing(well: Database) -> None:
    before = well.rows("select to_jsonb(j) as job from stopline.job j order by id")
    rows = well.connect("stopline_operator").execute("select level from stopline.doctor()").fetchall()
    assert {level for (level,) in rows} == {"ok", "warn"}
    assert well.rows("select to_jsonb(j) as job from stopline.job j order by id") == before


BROKEN: list[tuple[LiteralString, str, str, Level, str]] = [
    ("alter role stopline_worker superuser", "roles", "hold no power over the server", Level.FAIL, "stopline_worker"),
    ("alter role stopline_worker nologin", "roles", "log in as meant", Level.FAIL, "stopline_worker"),
    (
        "grant stopline_owner to stopline_worker",
        "roles",
        "are members of nothing more",
        Level.FAIL,
        "stopline_worker in stopline_owner",
    ),
    (
        "alter role stopline_worker set lock_timeout = 0",
        "roles",
        "bound statements, locks and idle transactions",
        Level.WARN,
        "stopline_worker: lock_timeout",
    ),
    (
        "revoke pg_read_all_stats from stopline_owner",
        "roles",
        "see other sessions",
        Level.WARN,
        "stopline_owner",
    ),
]


@pytest.mark.parametrize(("change", "part", "name", "level", "found"), BROKEN)
def test_a_role_that_was_changed_by_hand_is_named(
    well: Database, change: LiteralString, part: str, name: str, level: Level, found: str
) -> None:
    """Roles belong to the server, so the change is taken back with its transaction."""
    with well.connect("postgres", autocommit=False) as admin:
        admin.execute(change)
        row = admin.execute(
            "select level, found, fix is not null from stopline.doctor() where part = %s and name = %s", [part, name]
        ).fetchone()
        admin.rollback()
    assert row == (level, found, True)


@pytest.mark.parametrize(
    ("change", "part", "name", "level", "found"),
    [
        (
            "grant execute on function stopline.sweep(integer) to public",
            "rights",
            "nothing is everybody's",
            Level.FAIL,
            "function stopline.sweep",
        ),
        (
            "grant update on stopline.job to stopline_worker",
            "rights",
            "tables are closed",
            Level.FAIL,
            "update to stopline_worker on stopline.job",
        ),
        (
            "alter function stopline.health() reset all",
            "rights",
            "functions look into no foreign schema",
            Level.FAIL,
            "stopline.health",
        ),
        ("drop index stopline.job_key", "structure", "one open job a key", Level.FAIL, "index job_key"),
        (
            "alter table stopline.job drop constraint claimed_row_has_a_lease",
            "structure",
            "the database refuses what it must",
            Level.FAIL,
            "claimed_row_has_a_lease",
        ),
        (
            "alter table stopline.event disable trigger event_is_append_only",
            "structure",
            "triggers are on",
            Level.FAIL,
            "event_is_append_only",
        ),
        (
            "create or replace function stopline.clock() returns timestamptz language sql as 'select now()'",
            "clock",
            "source of time",
            Level.FAIL,
            "stopline.clock() is neither the production clock nor the movable one",
        ),
        ("delete from stopline.installation", "installation", "belongs to", Level.FAIL, "nobody"),
    ],
)
def test_a_right_or_a_guard_that_was_changed_by_hand_is_named(
    well: Database, change: LiteralString, part: str, name: str, level: Level, found: str
) -> None:
    well.admin.execute(change)
    seen = {(f.part, f.name): f for f in findings(well)}[part, name]
    assert (seen.level, seen.found) == (level, found)
    assert seen.fix


def test_an_invalid_index_is_named(well: Database) -> None:
    with pytest.raises(Exception, match="could not create unique index"):
        well.admin.execute("create unique index concurrently job_extra on stopline.job (kind)")
    assert wrong(well)["structure", "indexes are valid"].found == "job_extra"


def test_rows_that_rest_for_ever_are_named_with_the_reason(well: Database) -> None:
    """CL-03: what somebody wrote past the engine, with the guards taken down."""
    well.admin.execute("alter table stopline.job disable trigger all")
    for constraint in ("pending_row_is_below_its_cap", "claimed_row_has_a_lease"):
        well.admin.execute(f"alter table stopline.job drop constraint {constraint}")
    capped = insert_job(well, attempts=5)
    leaseless = insert_job(well, "claimed", lease_until=None)
    unknown = insert_job(well, kind="never_deployed")
    lost = insert_job(well, "uncertain", attempts=1)
    found = wrong(well)
    assert found["rows", "waiting rows are below their cap"].found == f"job {capped}"
    assert found["rows", "claimed rows have a lease"].found == f"job {leaseless}"
    assert found["rows", "waiting rows have a kind"].found == f"job {unknown} (never_deployed)"
    assert found["rows", "uncertain rows have a next step"].found == f"job {lost}"
    # The row at its cap is also one that the sweeper should have ended, if it could.
    warned = {name for (part, name), finding in found.items() if part == "rows" and finding.level == Level.WARN}
    assert warned == {"limits that passed were applied"}


def test_a_row_that_no_claim_can_pay_is_named(db: Database) -> None:
    kinds = policies("work", more='[cost]\nper_attempt_usd = "1"\nper_job_usd = "2"\n')
    deploy(db, kinds=kinds)
    job = insert_job(db, cost_usd="1.5")
    found = {(f.part, f.name): f for f in findings(db)}["rows", "waiting rows can be paid"]
    assert (found.level, found.found) == (Level.FAIL, f"job {job}")


def test_rows_of_a_retired_kind_and_of_a_kind_that_is_paused_for_good_are_told_as_warnings(well: Database) -> None:
    well.admin.execute(
        "update stopline.kind set retired_at = stopline.clock(), paused_at = stopline.clock(), paused_by = 'ada',"
        " paused_why = 'the receiver moves'"
    )
    found = wrong(well)
    assert found["rows", "retired kinds have run dry"].level == Level.WARN
    assert found["rows", "pauses have an end"].found.endswith("by ada: the receiver moves)")
    assert found["policies", "work"].found == "is retired in the database"


def test_a_sweeper_and_a_poller_that_stand_still_are_told_by_what_they_left_undone(well: Database) -> None:
    insert_job(well, deadline_at=timedelta(minutes=5))
    well.move("1h")
    found = wrong(well)
    assert found["rows", "leases that ended were swept"].level == Level.FAIL
    assert found["rows", "limits that passed were applied"].level == Level.WARN
    assert found["sweeper", "runs"].level == Level.WARN
    assert found["pollers", "work"].level == Level.FAIL
    assert "due" in found["pollers", "work"].found
    sweep(well)
    well.connect().execute("select stopline.tick('work')")
    assert wrong(well) == {}


def test_an_attempt_that_was_deleted_is_a_hole_in_the_log(well: Database) -> None:
    well.admin.execute("delete from stopline.attempt where outcome = 'succeeded'")
    assert wrong(well)["rows", "no claim is missing from the log"].level == Level.FAIL


def test_a_policy_that_differs_is_told_by_key_and_both_values(well: Database) -> None:
    found = wrong(well, more='[retry]\nbase = "1m"\n')
    assert list(found) == [("policies", "work")]
    assert found["policies", "work"].found == 'retry_base is "00:00:30" in the database and "00:01:00" in the code'


def test_a_kind_that_only_the_database_knows_is_told(well: Database) -> None:
    well.policy("other")
    well.admin.execute("update stopline.kind set retired_at = null")
    assert wrong(well)["policies", "other"].found == "is in the database and not in the code"


def test_a_source_that_differs_or_was_never_wrapped_is_told(well: Database) -> None:
    assert wrong(well, sources={"work": SOURCE})["sources", "work"].level == Level.FAIL
    deploy(well, kinds=policies("work"), sources={"work": SOURCE})
    kept = wrong(well, sources={"work": SOURCE})["sources", "work"]
    assert (kept.level, "kept although" in kept.found) == (Level.WARN, True)


def test_a_schema_that_is_behind_or_ahead_and_an_engine_that_differs_are_told(well: Database, tmp_path: Path) -> None:
    copy = SqlCopy(tmp_path)
    copy.migration("0002_note", "alter table job add column note text;")
    copy.engine("95_more", "select 1;")
    behind = wrong(well, sql_dir=copy.path)
    assert behind["schema", "version"].found == "at 0001; this code needs 0002"
    assert behind["schema", "engine"].level == Level.FAIL
    deploy(well, copy.path, policies("work"))
    assert wrong(well, sql_dir=copy.path) == {}
    ahead = wrong(well)
    assert {key: f.level for key, f in ahead.items()} == {("schema", "version"): Level.WARN}
    copy.migration("0002_note", "alter table job add column note varchar;")
    assert "0002_note" in wrong(well, sql_dir=copy.path)["schema", "migrations"].found


def test_a_database_of_another_deployment_is_told_with_the_way_to_adopt_it(well: Database) -> None:
    well.identity = "the copy"
    deploy(well, kinds=policies("work"))
    found = wrong(well)
    assert found["installation", "this deployment"].found == "claims as the copy; the database is test's"
    assert "stopline adopt" in (found["installation", "this deployment"].fix or "")
    assert found["installation", "no other deployment uses it"].found.startswith("the copy (first seen ")


def test_a_database_that_was_never_migrated_is_one_finding(server: EmbeddedPostgres) -> None:
    with fresh_database(server, "template1") as empty:
        found = diagnose(empty.admin, SQL, {}, {}, identity="test")
    assert [(f.part, f.name, f.level) for f in found] == [("schema", "version", Level.FAIL)]


def test_a_part_that_cannot_be_checked_is_a_finding_that_names_the_sqlstate_and_the_others_go_on(
    well: Database,
) -> None:
    well.admin.execute("drop function stopline.policy_drift(jsonb); drop function stopline.doctor()")
    found = wrong(well)
    assert found["policies", "could be checked"].found.startswith("42883 ")
    assert found["database", "doctor"].level == Level.FAIL
    assert ("schema", "version") not in found


def test_findings_are_json(well: Database) -> None:
    rows = json.loads(json.dumps([f.to_row() for f in findings(well)]))
    assert [Finding.from_row(row) for row in rows] == findings(well)
