"""A database that resumes refuses connections for a while and then is there."""

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stopline.errors import InfrastructureError
from stopline.migrate.reach import reach
from stopline.store.target import Target
from stopline_cli.local.datadir import PORT
from tests.support.database import Database
from tests.support.real_poller import RealPoller


class Sleeper:
    """The way to the test's database, closed until it resumes."""

    def __init__(self, db: Database, folder: Path) -> None:
        self.host = str(folder)
        self._socket = folder / f".s.PGSQL.{PORT}"
        self._real = Path(db.target().host) / self._socket.name

    def resume(self) -> None:
        self._socket.symlink_to(self._real)


@pytest.fixture
def sleeper(db: Database) -> Iterator[Sleeper]:
    with tempfile.TemporaryDirectory(prefix="stopline-") as folder:
        yield Sleeper(db, Path(folder))


def test_a_poller_that_meets_a_paused_database_ends_at_once_charges_nothing_and_works_at_a_later_tick(
    db: Database, sleeper: Sleeper, tmp_path: Path
) -> None:
    """CO-13: the schedule comes again in a minute; only silence for several of them pages."""
    with RealPoller(db, tmp_path) as poller:
        poller.kind("work", "def run(job): return 'done'")
        job = db.enqueue().job_id or 0
        function = poller.start(STOPLINE_DB_HOST=sleeper.host)
        for _ in range(2):
            line = function.invoke({})
            assert (line["stopped"], line["kinds"]["work"]["status"]) == ("unreachable", "unreachable")
        assert (db.job(job)["state"], db.job(job)["attempts"], db.job(job)["fence"]) == ("pending", 0, 0)
        sleeper.resume()
        assert function.invoke({})["kinds"]["work"]["outcomes"] == {"succeeded": 1}
        assert db.job(job)["attempts"] == 1


def test_a_deploy_that_meets_a_paused_database_waits_until_it_is_there(db: Database, sleeper: Sleeper) -> None:
    """CO-13, MI-01: a new or resuming cluster answers some seconds after it is called available."""
    target = Target(sleeper.host, PORT, db.name, "stopline_owner")
    with pytest.raises(InfrastructureError, match=r"(?s)cannot connect to database .* \(tried for 0\.2 s\)"):
        reach(target, seconds=0.2, pause=0.05)
    timer = threading.Timer(0.3, sleeper.resume)
    timer.start()
    with reach(target, seconds=30, pause=0.05) as conn:
        assert conn.execute("select current_user").fetchone() == ("stopline_owner",)
    timer.join()
