-- reasons: why jobs stopped, grouped so that a batch answers "one bug, five bugs, or one thing upstream?".

create or replace function stopline.reasons(p_kind text default null, p_since timestamptz default null)
returns table (
  kind text, stop_reason text, fingerprint text, jobs bigint, unacknowledged bigint,
  error_class text, error text, first_at text, last_at text, example_job bigint)
language sql
stable
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
  select j.kind, j.stop_reason, j.last_fingerprint, count(*), count(*) filter (where j.acknowledged_at is null),
         (array_agg(j.last_error_class order by j.id desc))[1],
         (array_agg(j.last_error order by j.id desc))[1],
         stopline.iso(min(j.finished_at)), stopline.iso(max(j.finished_at)), max(j.id)
    from stopline.job j
   where j.state = 'abandoned'
     and (p_kind is null or j.kind = p_kind)
     and (p_since is null or j.finished_at >= p_since)
   group by j.kind, j.stop_reason, j.last_fingerprint
   order by count(*) desc, j.kind, j.stop_reason
$$;
