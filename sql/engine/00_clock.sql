-- Time is the database's, through clock(). This is the production clock: it reads no setting, so no session can move it.
-- `stopline local` and the tests put sql/local/clock.sql in its place.
--
-- Each function reads it once, after taking its locks, into a variable: a volatile call inside a WHERE clause is made
-- for every row and keeps the planner from using an index.

create or replace function stopline.clock()
returns timestamptz
language sql
volatile
parallel safe
set search_path = pg_catalog, pg_temp
as $$ select pg_catalog.clock_timestamp() $$;

-- One spelling of a time for everything that leaves the database as text.
create or replace function stopline.iso(p_at timestamptz)
returns text
language sql
stable
parallel safe
as $$ select pg_catalog.to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;

-- The UTC day that money is counted under.
create or replace function stopline.utc_day(p_at timestamptz)
returns date
language sql
immutable
parallel safe
as $$ select (p_at at time zone 'UTC')::date $$;

create or replace function stopline.seconds(p_span interval)
returns double precision
language sql
immutable
parallel safe
as $$ select extract(epoch from p_span)::double precision $$;
