"""A restored copy may not run paid work until somebody says that it shall."""

from typing import Any

import psycopg
import pytest

from stopline.errors import InvalidInput
from stopline.migrate.adoption import Adoption, adopt
from tests.support.database import Database
from tests.support.deploys import deploy, policies
from tests.support.poller import Poller

COPY = "the copy"


class Copy:
    """The test's database as a copy of one that had three jobs: one was claimed, two were waiting."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.kinds = policies("work")
        deploy(db, kinds=self.kinds)
        self.inherited = [db.enqueue(payload={"n": n}).job_id or 0 for n in range(3)]
        self.original = Poller(db)
        job = self.original.one()
        self.keys = {job.id: job.effect_key}
        self.original.fail(job)
        # From here on the original lives elsewhere, and the pollers of this database name another identity.
        db.identity = COPY
        self.pollers = Poller(db, "w2")

    def deploy(self) -> None:
        """A deploy whose pollers claim with the copy's identity."""
        assert len(deploy(self.db, kinds=self.kinds).warnings) == 1

    def adopt(self, identity: str = COPY) -> Adoption:
        return adopt(self.db.connect("stopline_owner"), identity, "ada", "restored after the fire")

    def effect_keys(self) -> dict[int, str]:
        """Claims all that is due, as the copy's pollers."""
        self.db.move("1h")
        return {job.id: job.effect_key for job in self.pollers.claim(batch=100).jobs}

    def events(self) -> list[dict[str, Any]]:
        return self.db.rows("select * from stopline.event where action = 'adopted'")


@pytest.fixture
def copy(db: Database) -> Copy:
    return Copy(db)


def installation(key: str) -> str:
    return key.rpartition("-")[0]


def test_a_copy_runs_nothing_until_it_is_adopted_and_then_everything(copy: Copy) -> None:
    assert copy.pollers.claim(batch=10).status == "foreign"
    copy.deploy()
    assert copy.pollers.claim(batch=10).status == "foreign"
    assert [row["attempts"] for row in copy.db.rows("select attempts from stopline.job order by id")] == [1, 0, 0]
    assert copy.adopt().changed
    assert sorted(copy.effect_keys()) == copy.inherited


def test_the_originals_pollers_are_refused_once_the_copy_is_adopted(copy: Copy) -> None:
    copy.adopt()
    copy.db.identity = "test"
    assert copy.original.claim(batch=10).status == "foreign"


def test_jobs_from_before_the_copy_keep_their_effect_keys_and_later_ones_differ_from_the_originals(copy: Copy) -> None:
    """The original gives its next jobs the same numbers: a receiver must not take the one for the other."""
    before = {job: copy.db.rows("select stopline.effect_key(%s) as key", job)[0]["key"] for job in copy.inherited}
    next_of_the_original = copy.db.rows("select stopline.effect_key(%s) as key", copy.inherited[-1] + 1)[0]["key"]
    copy.deploy()
    adoption = copy.adopt()
    later = copy.db.enqueue().job_id or 0
    keys = copy.effect_keys()
    assert {job: keys[job] for job in copy.inherited} == before
    assert before[copy.inherited[0]] == copy.keys[copy.inherited[0]]
    assert keys[later] == f"{adoption.installation}-{later}"
    assert later == copy.inherited[-1] + 1
    assert installation(keys[later]) != installation(next_of_the_original)


def test_a_job_that_the_copy_made_before_it_was_adopted_has_a_key_of_its_own_too(copy: Copy) -> None:
    """The first deploy on the copy notes where its own jobs begin."""
    copy.deploy()
    between = copy.db.enqueue().job_id or 0
    copy.deploy()
    assert copy.adopt().first_job == between
    keys = copy.effect_keys()
    assert {installation(keys[job]) for job in copy.inherited} == {installation(copy.keys[copy.inherited[0]])}
    assert installation(keys[between]) != installation(copy.keys[copy.inherited[0]])


def test_whatever_has_been_claimed_keeps_its_effect_key_whenever_the_other_deployment_came(copy: Copy) -> None:
    """A deploy by mistake, then months of work, then a real move: an attempt's retry must not look like new work."""
    copy.deploy()
    later = copy.db.enqueue().job_id or 0
    copy.db.identity = "test"
    claimed = {job.id: job.effect_key for job in copy.original.claim(batch=10).jobs}
    assert later in claimed
    copy.db.identity = COPY
    assert copy.adopt().first_job == later + 1
    copy.db.move("1h")
    with copy.db.connect("stopline_sweeper") as sweeper:
        sweeper.execute("select * from stopline.sweep(10)")
    assert copy.effect_keys()[later] == claimed[later]


def test_adopted_twice_says_that_it_is_done_and_adds_nothing(copy: Copy) -> None:
    first = copy.adopt()
    again = copy.adopt()
    assert (first.changed, again.changed) == (True, False)
    assert (again.identity, again.installation, again.first_job) == (COPY, first.installation, first.first_job)
    assert len(copy.events()) == 1
    assert len(copy.db.rows("select * from stopline.installation")) == 2


def test_the_audit_says_who_why_and_what_it_was_before(copy: Copy) -> None:
    adoption = copy.adopt()
    (event,) = copy.events()
    assert (event["actor"], event["reason"], event["kind"], event["job_id"]) == (
        "ada",
        "restored after the fire",
        None,
        None,
    )
    assert event["before"]["identity"] == "test"
    assert event["after"] == {
        "identity": COPY,
        "installation": adoption.installation,
        "first_job": adoption.first_job,
    }


def test_going_back_to_an_earlier_identity_is_a_new_installation(copy: Copy) -> None:
    first = copy.adopt()
    made = copy.db.enqueue().job_id or 0
    keys = copy.effect_keys()
    back = copy.adopt("test")
    assert back.changed
    assert back.installation not in (first.installation, installation(copy.keys[copy.inherited[0]]))
    assert back.first_job == made + 1
    found = copy.db.rows("select stopline.effect_key(%s) as key", made)
    assert found[0]["key"] == keys[made]


def test_a_foreign_deploy_is_noted_once_for_each_identity_and_changes_no_claim(copy: Copy) -> None:
    copy.deploy()
    copy.deploy()
    noted = copy.db.rows("select after from stopline.event where action = 'foreign_identity'")
    assert [note["after"]["identity"] for note in noted] == [COPY]
    copy.db.identity = "test"
    assert len(copy.original.claim(batch=10).jobs) == 2


@pytest.mark.parametrize("values", [("", "ada", "why"), (" ", "ada", "why"), (COPY, "", "why"), (COPY, "ada", " ")])
def test_an_adoption_without_identity_actor_or_reason_is_refused(copy: Copy, values: tuple[str, str, str]) -> None:
    with pytest.raises(InvalidInput, match="identity, actor and reason must be given"):
        adopt(copy.db.connect("stopline_owner"), *values)
    assert copy.events() == []


@pytest.mark.parametrize("role", ["stopline_worker", "stopline_operator", "stopline_sweeper"])
def test_only_the_owner_adopts(copy: Copy, role: str) -> None:
    """Whoever deploys decides where paid work runs; no login role of a function or a person does."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        adopt(copy.db.connect(role), COPY, "ada", "why")


def test_a_claim_waits_for_no_adoption(copy: Copy) -> None:
    owner = copy.db.connect("stopline_owner", autocommit=False)
    owner.execute("select * from stopline.adopt(%s, 'ada', 'why')", [COPY])
    copy.db.identity = "test"
    assert copy.original.claim(batch=10).status == "ok"
    owner.rollback()
