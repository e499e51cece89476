"""What calls read, on seeded rows: plans and pages, never times."""

from datetime import timedelta
from typing import LiteralString
from uuid import uuid4

import pytest

from tests.support.database import Database
from tests.support.plans import nested_plans, nodes, pages_read
from tests.support.rows import insert_job, insert_many

CLAIM: LiteralString = "select * from stopline.claim('work', 'w1', gen_random_uuid(), 10, 900, 'test')"
MANY = 20_000


def analyze(db: Database) -> None:
    db.admin.execute("vacuum analyze stopline.job")
    db.admin.execute("vacuum analyze stopline.job_data")


def claim_pages(db: Database) -> int:
    """What a claim that finds nothing reads."""
    return pages_read(db.connect("stopline_worker"), CLAIM)


def job_scans(db: Database, call: LiteralString) -> set[tuple[str, str | None]]:
    """How the statements of a call reach the table `job`: the kind of scan and the index."""
    conn = db.connect("postgres")
    conn.execute("set search_path = stopline")
    with nested_plans(conn) as plans:
        conn.execute(call)
    seen = [node for plan in plans for node in nodes(plan["Plan"])]
    assert seen
    return {
        (node["Node Type"], node.get("Index Name"))
        for node in seen
        if node.get("Relation Name") == "job" and node["Node Type"].endswith("Scan")
    }


def test_a_claim_walks_the_index_of_due_jobs_beside_20_000_ended_ones(db: Database) -> None:
    """CL-10: the index holds pending rows only, in claim order, so what is done costs a claim no page."""
    db.policy()
    before = claim_pages(db)
    insert_many(db, MANY)
    analyze(db)
    assert claim_pages(db) <= before + 10
    for _ in range(3):
        insert_job(db)
    scans = job_scans(db, CLAIM)
    assert ("Index Scan", "job_due") in scans
    assert {index for _, index in scans} <= {"job_due", "job_claimed", "job_pkey"}
    assert {kind for kind, _ in scans} <= {"Index Scan", "Index Only Scan"}
    assert len(db.rows("select id from stopline.job where state = 'claimed'")) == 3


def test_a_claim_keeps_its_plan_when_the_statistics_say_that_nothing_is_pending(db: Database) -> None:
    """CL-10: after a busy hour they do, and another index with a sort looks cheaper but reads the whole backlog."""
    db.policy()
    insert_many(db, 2_000)
    analyze(db)
    db.admin.execute("alter table stopline.job set (autovacuum_enabled = off)")
    insert_many(db, MANY, "pending")
    conn = db.connect("postgres")
    with nested_plans(conn) as plans:
        conn.execute("select * from stopline.claim('work', 'w1', %s, 10, 900, 'test')", [uuid4()])
    walked = [node for plan in plans for node in nodes(plan["Plan"]) if node.get("Index Name") == "job_due"]
    assert walked
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in walked) <= 50


def test_20_000_future_jobs_ahead_cost_a_claim_nothing(db: Database) -> None:
    """CL-10: each priority is walked from its oldest due row, so rows that are not due are never reached."""
    db.policy()
    insert_job(db, priority=3, due_at=timedelta(days=1))
    analyze(db)
    before = claim_pages(db)
    insert_many(db, MANY, "pending", due_in="1 day")
    db.admin.execute("update stopline.job set priority = id % 4")
    analyze(db)
    assert claim_pages(db) <= before + 20
    last = insert_job(db, priority=3)
    assert [row[1] for row in db.connect().execute(CLAIM).fetchall()] == [last]


def test_a_snapshot_that_was_held_leaves_no_lasting_cost(db: Database) -> None:
    """CL-09: dead rows pile up while somebody holds a snapshot; after its end and a vacuum a poll costs what it did."""
    db.policy()
    before = claim_pages(db)
    holder = db.connect("postgres", autocommit=False)
    holder.execute("set transaction isolation level repeatable read")
    holder.execute("select 1 from stopline.job")
    insert_many(db, 5_000, "pending")
    db.admin.execute(
        "update stopline.job set state = 'succeeded', finished_at = stopline.clock(), stop_reason = 'completed'"
    )
    db.admin.execute("vacuum stopline.job")
    held = claim_pages(db)
    holder.rollback()
    db.admin.execute("vacuum stopline.job")
    assert held > before + 10
    assert claim_pages(db) <= before + 10


@pytest.mark.parametrize(
    "call",
    [
        "select stopline.tick('work')",
        "select * from stopline.sweep(500)",
        "select * from stopline.purge(500)",
        "select * from stopline.enqueue('work', '{}', 'k')",
        "select * from stopline.reasons()",
    ],
)
def test_no_regular_call_reads_the_table_of_jobs_whole(db: Database, call: LiteralString) -> None:
    """CL-10, MO-11: 20,000 ended jobs, and every statement of the call goes by an index."""
    db.policy()
    insert_many(db, MANY)
    insert_job(db, "claimed", lease_until=timedelta(minutes=-1))
    insert_job(db, key="k", holds_key=True)
    analyze(db)
    assert [scan for scan in job_scans(db, call) if scan[0] == "Seq Scan"] == []


def test_a_finish_goes_by_the_primary_key_though_the_statistics_say_that_few_jobs_are_claimed(db: Database) -> None:
    """The index of claimed jobs looks cheaper then, and would be walked whole for every job of the batch."""
    db.policy()
    insert_many(db, MANY)
    jobs = [insert_job(db, "claimed")]
    analyze(db)
    jobs += [insert_job(db, "claimed") for _ in range(20)]
    finish = "select * from stopline.succeed(%s::bigint[], %s::bigint[], %s::jsonb[], %s::numeric[])"
    nothing = [None] * len(jobs)
    conn = db.connect("postgres")
    with nested_plans(conn) as plans:
        conn.execute(finish, [jobs, [1] * len(jobs), nothing, nothing])
    scans = [node for plan in plans for node in nodes(plan["Plan"]) if node.get("Relation Name") == "job"]
    assert {node.get("Index Name") for node in scans if node["Node Type"].endswith("Scan")} == {"job_pkey"}
    assert len(db.rows("select id from stopline.job where state = 'claimed'")) == 0


def test_tables_that_turn_over_are_cleaned_up_after_a_share_that_fits_them(db: Database) -> None:
    """CL-09: per-table autovacuum settings are present."""
    options = {
        row["name"]: dict(option.split("=") for option in row["options"])
        for row in db.rows(
            "select relname as name, coalesce(reloptions, '{}') as options from pg_class"
            " where relnamespace = 'stopline'::regnamespace and relkind = 'r'"
        )
    }
    assert float(options["job"]["autovacuum_vacuum_scale_factor"]) <= 0.01
    assert int(options["job"]["autovacuum_vacuum_cost_delay"]) == 0
    for table in ("job_data", "attempt"):
        assert float(options[table]["autovacuum_vacuum_scale_factor"]) <= 0.05
    for table in ("spend", "heartbeat"):
        assert int(options[table]["fillfactor"]) <= 50


def test_a_lease_is_in_no_index(db: Database) -> None:
    """An index on a column that every claim writes would cost every claim."""
    indexed = db.rows(
        "select a.attname as column from pg_index i join pg_attribute a on a.attrelid = i.indrelid"
        " and a.attnum = any (i.indkey) where i.indrelid = 'stopline.job'::regclass"
    )
    assert {"lease_until", "claimed_at", "cost_usd"}.isdisjoint(row["column"] for row in indexed)
