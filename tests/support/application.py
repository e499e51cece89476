"""A small application beside Stopline: one table of items, which its sources read."""

from typing import LiteralString

from tests.support.database import Database

ITEMS: LiteralString = """
create schema app;
create table app.item (
  id    integer primary key,
  key   text generated always as ('item ' || id) stored,
  open  boolean not null default true,
  body  jsonb not null default '{}'
);
grant usage on schema app to stopline_source;
grant select on app.item to stopline_source;
"""

SOURCE = """
select i.key, i.body as payload
  from app.item i
 where i.open
 order by i.id;
-- nothing after this
"""


def make_items(db: Database, number: int = 0) -> None:
    """The table, granted to the sources, with items 1 to `number`."""
    db.admin.execute(ITEMS)
    db.admin.execute("insert into app.item (id) select generate_series(1, %s)", [number])
