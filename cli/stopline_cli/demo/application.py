"""What the sample application does: it hands batches over, enqueues by hand, and its customers fall silent."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import psycopg

from stopline import enqueue
from stopline_cli.demo.scenario import BATCHES, BY_HAND, BY_HAND_PAYLOAD, EXPORT, Script
from stopline_cli.local.database import DATABASE
from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import connect

ROLE = "billing_app"
PRODUCER = "stopline_producer"


def hand_over_exports(server: EmbeddedPostgres, now: datetime, batches: Mapping[str, Script] = BATCHES) -> int:
    """Marks each batch's invoices and enqueues its job in one transaction, as the application's own role. Deadlines
    count from `now`."""
    handed = 0
    with connect(server, DATABASE, ROLE) as app:
        for batch, script in batches.items():
            deadline_at = None if script.deadline is None else now + script.deadline
            with app.transaction():
                row = app.execute("select billing.take_batch(%s)", (batch,)).fetchone()
                payload = row[0] if row else None
                if payload is not None:
                    enqueue(app, EXPORT, payload, key=f"batch:{batch}", deadline_at=deadline_at)
                    handed += 1
    return handed


def bill(admin: psycopg.Connection[tuple[Any, ...]], batches: Iterable[str]) -> None:
    """Another week's batches, of one invoice each."""
    invoices = [
        {
            "id": f"INV-{number}",
            "batch": batch,
            "customer": "Fjordlys Kafé AS",
            "amount": "1240.00",
            "currency": "EUR",
            "issued_days_ago": 2,
        }
        for number, batch in enumerate(batches, 20_900)
    ]
    admin.execute("select billing.load_samples(%s::jsonb)", (json.dumps(invoices),))


def enqueue_by_hand(server: EmbeddedPostgres) -> None:
    """Somebody's script enqueues a conversation under an id of the system before."""
    with connect(server, DATABASE, PRODUCER) as script:
        enqueue(script, BY_HAND.kind, BY_HAND_PAYLOAD, key=BY_HAND.key)


def fall_silent(admin: psycopg.Connection[tuple[Any, ...]], conversation: int) -> None:
    """Nobody has written in this conversation for an hour: the application's clock does not move with ours."""
    admin.execute(
        "update support.conversations set last_message_at = last_message_at - interval '1 hour' where id = %s",
        (conversation,),
    )
