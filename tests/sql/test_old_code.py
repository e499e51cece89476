"""The library of this checkout, as older code, on the schema of a release to come that only added things."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from stopline.states import ClaimStatus, FinishAnswer
from stopline.store.reads import ReadStore
from stopline.store.upkeep import UpkeepStore
from stopline_cli.explain import explain
from tests.support.contract import broken, functions
from tests.support.database import Database
from tests.support.deploys import SqlCopy, deploy, policies
from tests.support.poller import Poller, sweep
from tests.support.rows import insert_job

COLUMNS = """
alter table kind add column max_wait interval not null default '1 hour';
alter table job add column waited integer not null default 0;
alter table job_data add column format integer;
alter table attempt add column host text;
alter table event add column ticket text;
create table note (n integer);
"""


def edit(path: Path, old: str, new: str) -> None:
    """One change in an engine file; the text must be there."""
    text = path.read_text()
    assert old in text, f"{path.name}: {old!r} is not there"
    path.write_text(text.replace(old, new))


@pytest.fixture
def newer(db: Database, tmp_path: Path) -> SqlCopy:
    """The release to come: new columns, a new last argument with a default, new result columns, keys and a function."""
    copy = SqlCopy(tmp_path)
    engine = copy.path / "engine"
    copy.migration("0002_additions", COLUMNS)
    copy.engine(
        "05_drops",
        "drop function if exists stopline.claim(text, text, uuid, integer, double precision, text);\n"
        "drop function if exists stopline.sweep(integer);\n"
        "drop view if exists stopline.support_job;\n",
    )
    claim = engine / "30_claim.sql"
    edit(claim, "  p_installation text)", "  p_installation text,\n  p_region text default null)")
    edit(claim, "lease_seconds double precision)", "lease_seconds double precision, region text)")
    text = claim.read_text()
    claim.write_text(
        re.sub(r"null::double precision;", "null::double precision, null::text;", text).replace(
            "           stopline.seconds(j.lease_until - v_now)\n",
            "           stopline.seconds(j.lease_until - v_now), p_region\n",
        )
    )
    edit(
        engine / "21_tick.sql",
        "      'max_steps', k.max_steps));",
        "      'max_steps', k.max_steps, 'max_wait', 5), 'queue', 7);",
    )
    edit(
        engine / "50_health.sql", "    'own_metrics', k.own_metrics)", "    'own_metrics', k.own_metrics, 'waited', 0)"
    )
    edit(engine / "50_health.sql", "        'Due', coalesce(", "        'Waited', 0,\n        'Due', coalesce(")
    edit(
        engine / "70_reads.sql",
        "'review_by', stopline.iso(j.review_by), ",
        "'review_by', stopline.iso(j.review_by), 'waited', 0, ",
    )
    edit(engine / "80_support.sql", "next_check_at, review_by\n", "next_check_at, review_by, waited\n")
    edit(
        engine / "40_sweep.sql",
        "returns table (transition text, jobs integer)",
        "returns table (transition text, jobs integer, oldest bigint)",
    )
    edit(
        engine / "40_sweep.sql",
        "return query select c.key, c.value::integer from",
        "return query select c.key, c.value::integer, 0::bigint from",
    )
    edit(
        engine / "90_grants.sql", "stopline.claim(text, text, uuid, integer, double precision, text)", "stopline.claim"
    )
    return copy


def test_old_code_works_through_a_jobs_whole_life_on_a_newer_schema(db: Database, newer: SqlCopy) -> None:
    """MI-02: what was deployed before runs until the deploy is done, and again after a roll back."""
    before = functions(db)
    deploy(db, newer.path, policies("work"))
    assert (
        broken(
            {"functions": before, "relations": {}, "json": {}},
            {"functions": functions(db), "relations": {}, "json": {}},
        )
        == []
    )
    for _ in range(4):
        assert db.enqueue(payload={"n": 1}).answer == "created"
    poller = Poller(db)
    tick = poller.store.tick("work", None)
    assert (tick.status, tick.run.timeout_s, tick.counts["created"]) == (ClaimStatus.OK, 30, 0)
    done, failed, released, crashed = poller.claim(batch=4).jobs
    poller.store.start_effect(done.id, done.fence)
    assert poller.store.count_step(failed.id, failed.fence, 1).status == "ok"
    poller.store.save_checkpoint(failed.id, failed.fence, '{"step": 1}')
    assert poller.succeed(done, result='"ok"').answer == FinishAnswer.RECORDED
    assert poller.fail(failed).state == "pending"
    assert poller.release(released).state == "pending"
    db.move("10m")
    assert sweep(db) == {"crashed_to_pending": 1}
    assert poller.claim(batch=4).jobs[0].payload == {"n": 1}
    assert crashed.id in {job["id"] for job in ReadStore(db.session("stopline_operator")).jobs()}


def test_old_readers_read_a_newer_schema(db: Database, newer: SqlCopy) -> None:
    deploy(db, newer.path, policies("work"))
    job = insert_job(db, "abandoned", finished_at=timedelta(minutes=-1))
    monitor, operator = db.session("stopline_monitor"), db.session("stopline_operator")
    health = UpkeepStore(monitor).health()
    assert (health.totals["Abandoned"], [kind["kind"] for kind in health.kinds]) == (1, ["work"])
    assert UpkeepStore(monitor).reasons()[0]["example_job"] == job
    shown = ReadStore(operator).job(job)
    assert shown is not None
    assert explain(shown)[0].startswith("Abandoned")
    assert [kind["name"] for kind in ReadStore(operator).kinds()] == ["work"]
    assert UpkeepStore(db.session("stopline_sweeper")).purge(10)["jobs"] == 0


def test_an_old_deploy_syncs_its_policies_on_a_newer_schema_and_changes_nothing_else(
    db: Database, newer: SqlCopy
) -> None:
    """MI-02, MI-06: a roll back calls the old migrator."""
    deploy(db, newer.path, policies("work", "old"))
    db.admin.execute("update stopline.kind set max_wait = '2 hours'")
    after = functions(db)
    report = deploy(db, kinds=policies("work", more="[retry]\nbase = '1m'\n"))
    assert "newer than 0001 of this code" in report.lines[0]
    assert report.lines[1:] == ["policy of work changed: retry_base", "policy of old retired"]
    assert functions(db) == after
    assert db.rows("select distinct max_wait::text from stopline.kind") == [{"max_wait": "02:00:00"}]
    assert "policy of old returned" in deploy(db, newer.path, policies("work", "old")).lines
