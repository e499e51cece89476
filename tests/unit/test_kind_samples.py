"""The sample data: what the demo loads must be sound before a database sees it."""

import itertools
import json
import unicodedata
from decimal import Decimal
from typing import Any

from tests.unit.handmade_job import JOBS, SAMPLES

CONVERSATIONS: list[dict[str, Any]] = json.loads((SAMPLES / "conversations.json").read_text(encoding="utf-8"))
INVOICES: list[dict[str, Any]] = json.loads((SAMPLES / "invoices.json").read_text(encoding="utf-8"))


def test_ids_are_unique() -> None:
    for rows in (CONVERSATIONS, INVOICES):
        ids = [row["id"] for row in rows]
        assert len(set(ids)) == len(ids)


def test_every_conversation_has_four_to_twelve_messages_that_a_customer_begins() -> None:
    for conversation in CONVERSATIONS:
        roles = [message["role"] for message in conversation["messages"]]
        assert 4 <= len(roles) <= 12
        assert roles[0] == "customer"
        assert set(roles) == {"customer", "agent"}
        assert max(len(list(run)) for _, run in itertools.groupby(roles)) <= 2, conversation["id"]


def test_messages_are_in_the_order_of_their_ages_and_the_last_has_none() -> None:
    for conversation in CONVERSATIONS:
        ages = [message["minutes_before_last"] for message in conversation["messages"]]
        assert ages[-1] == 0
        assert all(earlier > later for earlier, later in itertools.pairwise(ages))
        assert all(message["body"].strip() for message in conversation["messages"])


def test_some_conversations_are_idle_some_are_not_and_one_is_closed() -> None:
    idle = [row for row in CONVERSATIONS if row["status"] == "open" and row["idle_minutes"] > 30]
    busy = [row for row in CONVERSATIONS if row["status"] == "open" and row["idle_minutes"] < 30]
    closed = [row for row in CONVERSATIONS if row["status"] == "closed"]
    assert (len(idle), len(busy), len(closed)) == (21, 2, 1)
    assert all(row["summary"] for row in closed)


def test_the_texts_have_accents_emoji_right_to_left_scripts_and_one_very_long_conversation() -> None:
    texts = {row["id"]: "".join(message["body"] for message in row["messages"]) for row in CONVERSATIONS}
    everything = "".join(texts.values())
    assert set("éół😬サ") <= set(everything)
    assert {unicodedata.bidirectional(character) for character in everything} >= {"L", "R", "AL"}
    assert [key for key, text in texts.items() if len(text) > 50_000] == [1008]


def test_money_is_text_with_two_places() -> None:
    for invoice in INVOICES:
        amount = Decimal(invoice["amount"])
        assert str(amount) == invoice["amount"]
        assert amount.as_tuple().exponent == -2
    assert len(INVOICES) == 18
    assert any(Decimal(invoice["amount"]) < 0 for invoice in INVOICES)


def test_every_batch_has_invoices_and_every_invoice_a_batch() -> None:
    sizes = [len(list(run)) for _, run in itertools.groupby(INVOICES, key=lambda invoice: invoice["batch"])]
    assert sizes == [3] * 6


def test_the_source_can_be_wrapped_in_another_query() -> None:
    source = (JOBS / "close_conversation" / "source.sql").read_text(encoding="utf-8")
    assert ";" not in source
    assert not source.rstrip().rpartition("\n")[2].lstrip().startswith("--")
    assert "from support.conversations" in source
