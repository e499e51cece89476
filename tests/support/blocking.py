"""Races are shown with two real sessions, one of them blocked at a real lock."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg

T = TypeVar("T")


def wait_until_blocked(watcher: psycopg.Connection[Any], pid: int, timeout: float = 10) -> list[int]:
    """Waits until the session `pid` waits for a lock, and returns the sessions that it waits for.

    Raises AssertionError with what the session does instead when that does not happen within `timeout` seconds.
    """
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        row = watcher.execute("select pg_blocking_pids(%s)", [pid]).fetchone()
        if row is not None and row[0]:
            return list(row[0])
        time.sleep(0.01)
    seen = watcher.execute(
        "select state, wait_event_type, wait_event, query from pg_stat_activity where pid = %s", [pid]
    ).fetchone()
    raise AssertionError(f"session {pid} is not blocked after {timeout} s; it is: {seen or 'gone'}")


@contextmanager
def in_background(call: Callable[[], T]) -> Iterator[Future[T]]:
    """Runs `call` in a thread meanwhile; its result is in the future. Leaving waits for it."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(call)


def until(condition: Callable[[], bool], what: str, timeout: float = 15) -> None:
    """Looks again and again until `condition` holds. Raises AssertionError naming `what` after `timeout` seconds."""
    give_up = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < give_up, f"not within {timeout} s: {what}"
        time.sleep(0.005)
