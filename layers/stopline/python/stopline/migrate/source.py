"""Wraps a kind's source.sql in a function that reads only what the application granted to `stopline_source`."""

from stopline.migrate.files import checksum


def wrap_source(kind: str, source: str) -> str:
    """The `create function` statement for one source. Raises nothing: a broken query is the database's to report.

    The function is owned by `stopline_source`, runs with its rights, and finds no table without a schema name, so that
    a source cannot be redirected by a search path.
    """
    query = source.strip().rstrip(";").rstrip()
    tag = f"source_{checksum(query)[:12]}"
    return f"""create or replace function stopline_source.{kind}(p_limit integer)
returns table (key text, payload jsonb)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as ${tag}$
select s.key::text, s.payload::jsonb
  from (
{query}
  ) s
 limit p_limit
${tag}$"""
