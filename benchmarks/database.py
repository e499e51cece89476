"""A durable database with the benchmark's kinds, and real pollers as processes on it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stopline.policy import load_policies
from stopline_cli.local.functions import FunctionProcess
from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import connect, deploy, make_database

KINDS = Path(__file__).parent / "kinds"
DATABASE = "bench"
IDENTITY = "bench"
POLLER_SECONDS = 900


@contextmanager
def bench_database(*, durable: bool = True) -> Iterator[EmbeddedPostgres]:
    """A fresh server with PostgreSQL's own durability, removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="stopline-bench-"))
    folder.chmod(0o711)
    server = EmbeddedPostgres(folder / "pg", durable=durable)
    try:
        server.start()
        make_database(server, DATABASE)
        deploy(server, DATABASE, load_policies(KINDS), identity=IDENTITY)
        yield server
    finally:
        server.destroy()
        shutil.rmtree(folder, ignore_errors=True)


def poller(server: EmbeddedPostgres, kind: str, name: str) -> FunctionProcess:
    """The real poller for one kind, with a whole Lambda's time."""
    place = server.admin_conninfo(DATABASE)
    environment = {
        "AWS_REGION": "eu-central-1",
        "STOPLINE_DB_HOST": str(place["host"]),
        "STOPLINE_DB_PORT": str(place["port"]),
        "STOPLINE_DB_NAME": DATABASE,
        "STOPLINE_DB_USER": "stopline_worker",
        "STOPLINE_DB_AUTH": "none",
        "STOPLINE_INSTALLATION": IDENTITY,
        "STOPLINE_KINDS": kind,
        "STOPLINE_JOBS_DIR": str(KINDS),
    }
    return FunctionProcess(name, "lambdas/poller/handler.py", environment, POLLER_SECONDS)


def enqueue_noops(server: EmbeddedPostgres, kind: str, jobs: int) -> None:
    """Enqueue jobs with a small payload, a thousand a call."""
    with connect(server, DATABASE, "stopline_producer") as producer:
        for start in range(0, jobs, 1000):
            count = min(1000, jobs - start)
            producer.execute(
                "select count(*) from stopline.enqueue_many(%s, array_fill('{\"n\": 1}'::jsonb, array[%s]))",
                [kind, count],
            )
