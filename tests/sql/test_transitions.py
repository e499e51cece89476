"""The moves of a job that the lifecycle lists are the moves that the engine makes."""

import re
from pathlib import Path

from stopline.states import Outcome
from tests.support.database import Database
from tests.support.operator import Operator
from tests.support.poller import Poller, sweep

LIFECYCLE = Path(__file__).parents[2] / "docs" / "lifecycle.md"
RECORDER = """
create table public.move (old text, new text);
create function public.note_move() returns trigger language plpgsql as $$
begin
  insert into public.move values (old.state, new.state);
  return null;
end $$;
grant insert on public.move to public;
create trigger note_move after update of state on stopline.job
for each row when (old.state <> new.state) execute function public.note_move();
"""


def test_the_lifecycle_lists_every_move_and_no_other(db: Database) -> None:
    text = LIFECYCLE.read_text(encoding="utf-8").split("Every move that there is:")[1].split("\nA claim is")[0]
    listed = set(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", text, re.M))
    db.admin.execute(RECORDER)
    _live_every_life(db)
    moves = {(row["old"], row["new"]) for row in db.rows("select old, new from public.move")}
    assert moves == listed


def _live_every_life(db: Database) -> None:
    db.policy("safe", max_attempts=2, retry_base=1, retry_cap=1)
    db.policy("once", max_attempts=1)
    db.policy("unsure", idempotent=False, max_attempts=2, retry_base=1, retry_cap=1)
    db.policy("asks", reconciles=True, deadline=3600)
    poller, ada = Poller(db), Operator(db)

    def claimed(kind: str) -> int:
        job_id = db.enqueue(kind).job_id or 0
        assert poller.one(kind).id == job_id
        return job_id

    def ended(kind: str, outcome: Outcome) -> int:
        job_id = db.enqueue(kind).job_id or 0
        poller.fail(poller.one(kind), outcome)
        return job_id

    db.enqueue("safe")
    late = poller.one("safe")
    poller.fail(late)
    poller.succeed(late)
    db.enqueue("safe")
    poller.succeed(poller.one("safe"))
    cancelled = db.enqueue("safe").job_id or 0
    ada.cancel(cancelled)
    ada.replay(cancelled)
    ada.cancel(cancelled)
    running = db.enqueue("once").job_id or 0
    attempt = poller.one("once")
    ada.cancel(running)
    poller.fail(attempt)
    ada.replay(ended("once", Outcome.PERMANENT))
    poller.fail(poller.one("once"))
    ada.reconcile(ended("once", Outcome.PERMANENT), "applied")
    ada.reconcile(ended("unsure", Outcome.UNCERTAIN), "applied")
    ada.reconcile(ended("unsure", Outcome.UNCERTAIN), "not_applied")
    db.move("2s")
    again = poller.one("unsure")
    poller.fail(again, Outcome.UNCERTAIN)
    ada.reconcile(again.id, "not_applied")
    ada.cancel(ended("unsure", Outcome.UNCERTAIN), checked="the receiver was asked")
    asked = db.enqueue("asks").job_id or 0
    ada.cancel(asked)
    ada.replay(asked)
    with db.connect() as conn:
        conn.execute("select from stopline.due_checks('asks', 'w1', 1, 900, %s)", [db.identity])
        conn.execute("select from stopline.record_check(%s, 1, 1, 'applied', 'found')", [asked])
    claimed("once")
    db.enqueue("asks")
    db.move("2h")
    sweep(db)
