-- A clock that the administrator can move, for `stopline local` and the tests only: it takes the place of the production
-- clock. Leases and due times move with it, real timeouts do not. Move it with
--   update stopline_local.clock set shift = shift + interval '1 hour';

create or replace function stopline.clock()
returns timestamptz
language sql
volatile
parallel safe
set search_path = pg_catalog, pg_temp
as $$ select coalesce(c.frozen_at, pg_catalog.clock_timestamp()) + c.shift from stopline_local.clock c $$;
