"""`make bench`: jobs per second through the real poller, and what process isolation adds to an attempt.

Jobs are drained with one attempt row each, on a database with default durability on this machine.
"""

import argparse
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks.database import DATABASE, bench_database, enqueue_noops, poller
from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import connect

ISOLATED_JOBS = 200


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000, help="no-op jobs to drain (100000)")
    parser.add_argument("--pollers", type=int, nargs="*", default=[1, 2], help="how many pollers share them (1 2)")
    given = parser.parse_args()
    for pollers in given.pollers:
        with bench_database() as server:
            seconds = _drain(server, given.jobs, pollers)
        print(
            f"inline, {pollers} poller(s): {given.jobs:,} jobs in {seconds:.2f} s = {given.jobs / seconds:,.0f} jobs/s"
        )
    with bench_database() as server:
        inline, isolated = _per_attempt(server, "noop"), _per_attempt(server, "isolated")
    print(
        f"{ISOLATED_JOBS} jobs: one process after another {isolated:.2f} ms each, an inline batch {inline:.3f} ms each"
    )
    print(f"process isolation adds {isolated - inline:.1f} ms to an attempt, two commits included")


def _drain(server: EmbeddedPostgres, jobs: int, pollers: int) -> float:
    processes = [poller(server, "noop", f"poller-{n}") for n in range(pollers)]
    try:
        for process in processes:
            process.invoke({})
        enqueue_noops(server, "noop", jobs)
        started = time.perf_counter()
        with ThreadPoolExecutor(pollers) as pool:
            list(pool.map(lambda process: process.invoke({}), processes))
        seconds = time.perf_counter() - started
    finally:
        for process in processes:
            process.stop()
    with connect(server, DATABASE) as admin:
        row = admin.execute(
            "select (select count(*) from stopline.job where state = 'succeeded'), "
            "(select count(*) from stopline.attempt)"
        ).fetchone()
    if row != (jobs, jobs):
        raise SystemExit(f"drained {row} of {jobs} jobs and attempts")
    return seconds


def _per_attempt(server: EmbeddedPostgres, kind: str) -> float:
    """Milliseconds per attempt, the median of five drains."""
    process = poller(server, kind, f"poller-{kind}")
    figures = []
    try:
        process.invoke({})
        for _ in range(5):
            enqueue_noops(server, kind, ISOLATED_JOBS)
            started = time.perf_counter()
            process.invoke({})
            figures.append((time.perf_counter() - started) * 1000 / ISOLATED_JOBS)
    finally:
        process.stop()
    return statistics.median(figures)


if __name__ == "__main__":
    main()
