"""The statements of this kind, on the application's own tables. They run as the role close_conversation_app."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

_READ = """
    select c.id, c.business, c.channel, c.status, c.last_message_at
    from support.conversations c
    where c.id = %s
"""

_MESSAGES = """
    select m.role, m.body, m.sent_at
    from support.messages m
    where m.conversation_id = %s
    order by m.sent_at, m.id
"""

_CLOSE = """
    update support.conversations
    set status = 'closed',
        summary = %(summary)s,
        closed_at = now()
    where id = %(id)s
      and status = 'open'
      and last_message_at = %(last_message_at)s
"""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; `role` is customer or agent."""

    role: str
    body: str
    sent_at: datetime


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as it was read. `last_message_at` is what closing compares."""

    id: int
    business: str
    channel: str
    status: str
    last_message_at: datetime
    messages: tuple[Message, ...]


def read(connection: "Connection", conversation_id: int) -> Conversation | None:
    """The conversation with its messages in their order, or None."""
    row = connection.execute(_READ, [conversation_id]).fetchone()
    if row is None:
        return None
    # The row was read first: a message that arrives in between is read too, and last_message_at then refuses to close.
    messages = connection.execute(_MESSAGES, [conversation_id]).fetchall()
    identity, business, channel, status, last_message_at = row
    return Conversation(
        identity, business, channel, status, last_message_at, tuple(Message(*message) for message in messages)
    )


def close(connection: "Connection", conversation: Conversation, summary: str) -> bool:
    """Close it, if it is still open and no message came since it was read. Whether this call closed it."""
    values = {"id": conversation.id, "last_message_at": conversation.last_message_at, "summary": summary}
    return connection.execute(_CLOSE, values).rowcount == 1
