"""Wraps a kind's source.sql in a function that reads only what the application granted to `stopline_source`."""

from stopline.migrate.files import checksum


def wrap_source(kind: str, source: str) -> str:
    """The `create function` statement for one source. Raises nothing: a broken query is the database's to report.

    The function is owned by `stopline_source`, runs with its rights, and finds no table without a schema name, so that
    a source cannot be redirected by a search path. With `p_only_new` it passes over keys that a job holds, so that a
    row limit full of held keys cannot starve the rows behind them.
    """
    query = _without_end(source)
    tag = f"source_{checksum(query)[:12]}"
    return f"""create or replace function stopline_source.{kind}(p_limit integer, p_only_new boolean)
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
 where not (p_only_new and stopline.holds_key('{kind}', s.key::text))
 limit p_limit
${tag}$"""


def _without_end(source: str) -> str:
    """The query without the comment lines and semicolons that end the file: it becomes a subquery."""
    lines = source.splitlines()
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("--")):
        lines.pop()
    return "\n".join(lines).strip().rstrip("; \n")
