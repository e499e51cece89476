-- exposure: what open jobs may still cost, with everything that the arithmetic needs, so that whoever reads the figure can
-- work it out again. The figure is the one that health() reports as WorstCaseSpend.
--
-- An attempt that is running is paid already: its money is reserved in the job and in today's spend.

-- One line for each number of attempts left, of each state. Reads one partial index for each state: terminal rows cost
-- nothing.
create or replace function stopline.open_rounds(k stopline.kind)
returns table (state text, attempts_left integer, rows bigint, steps_left bigint, usd numeric, usd_within_caps numeric, ended_by_cap bigint)
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  with open as (
    select state, max_attempts, attempts, steps, cost_usd from stopline.job where kind = k.name and state = 'pending'
    union all
    select state, max_attempts, attempts, steps, cost_usd from stopline.job where kind = k.name and state = 'claimed'
    union all
    select state, max_attempts, attempts, steps, cost_usd from stopline.job where kind = k.name and state = 'uncertain'
  ), left_of as (
    select o.state, o.cost_usd,
           greatest(least(o.max_attempts, k.max_attempts) - o.attempts, 0) as attempts_left,
           greatest(coalesce(k.max_steps, 0) - o.steps, 0) as steps_left
      from open o
  ), priced as (
    select l.*,
           l.attempts_left * coalesce(k.per_attempt_usd, 0) + l.steps_left * coalesce(k.per_step_usd, 0) as usd,
           case when k.per_job_usd is not null then greatest(k.per_job_usd - l.cost_usd, 0) end as cap
      from left_of l
  )
  select p.state, p.attempts_left, count(*), sum(p.steps_left)::bigint, sum(p.usd), sum(least(p.usd, p.cap)),
         count(*) filter (where p.cap < p.usd)
    from priced p
   group by p.state, p.attempts_left
$$;

create or replace function stopline.kind_exposure(k stopline.kind, p_now timestamptz)
returns jsonb
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  with rounds as materialized (
    select * from stopline.open_rounds(k)
  ), by_left as (
    select attempts_left, sum(rows) as rows from rounds group by attempts_left
  ), total as (
    select coalesce(sum(rows), 0) as rows, coalesce(sum(rows * attempts_left), 0) as attempts, coalesce(sum(steps_left), 0) as steps,
           coalesce(sum(usd), 0) as usd, coalesce(sum(usd_within_caps), 0) as usd_within_caps, coalesce(sum(ended_by_cap), 0) as ended_by_cap
      from rounds
  ), today as (
    select s.usd, case when k.daily_budget_usd is not null then greatest(k.daily_budget_usd - s.usd, 0) end as budget_left
      from (select coalesce((select usd from stopline.spend where kind = k.name and day = stopline.utc_day(p_now)), 0) as usd) s
  )
  select jsonb_build_object(
    'kind', k.name,
    'owner', k.owner,
    'retired', k.retired_at is not null,
    'paused', stopline.is_paused(k, p_now),
    'open', (select coalesce(jsonb_object_agg(s.state, s.rows), '{}')
               from (select state, sum(rows) as rows from rounds group by state) s),
    'open_rows', t.rows,
    'by_attempts_left', (select coalesce(jsonb_agg(jsonb_build_object('attempts_left', b.attempts_left, 'rows', b.rows)
                                                   order by b.attempts_left desc), '[]') from by_left b),
    'attempts_left', t.attempts,
    'steps_left', t.steps,
    'calls_left', t.attempts * k.calls_per_attempt + t.steps,
    'calls_per_attempt', k.calls_per_attempt,
    'per_attempt_usd', k.per_attempt_usd,
    'per_step_usd', k.per_step_usd,
    'per_job_usd', k.per_job_usd,
    'uncapped_usd', t.usd,
    'rows_ended_by_per_job', t.ended_by_cap,
    'worst_case_usd', t.usd_within_caps)
  || jsonb_build_object(
    'spent_today_usd', d.usd,
    'daily_budget_usd', k.daily_budget_usd,
    'budget_left_today_usd', d.budget_left,
    'worst_case_today_usd', least(t.usd_within_caps, d.budget_left))
    from total t, today d
$$;

-- The kinds that are deployed, or that have open rows or spend today; or the one that is named.
create or replace function stopline.exposure(p_kind text default null)
returns jsonb
language plpgsql
stable
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  v_now timestamptz := stopline.clock();
  v_kinds jsonb;
begin
  if p_kind is not null and not exists (select from stopline.kind where name = p_kind) then
    raise exception using
      errcode = 'SL001',
      message = format('kind: %s is not known', quote_literal(p_kind)),
      hint = format('Known kinds: %s.', coalesce((select string_agg(name, ', ' order by name) from stopline.kind), 'none'));
  end if;
  with e as materialized (
    select stopline.kind_exposure(k, v_now) as line from stopline.kind k where p_kind is null or k.name = p_kind
  )
  select coalesce(jsonb_agg(e.line order by e.line ->> 'kind'), '[]')
    into v_kinds
    from e
   where p_kind is not null
      or not (e.line ->> 'retired')::boolean
      or (e.line ->> 'open_rows')::bigint > 0
      or (e.line ->> 'spent_today_usd')::numeric > 0;
  return jsonb_build_object(
    'now', stopline.iso(v_now),
    'day', stopline.utc_day(v_now),
    'kinds', v_kinds,
    'totals', (
      select jsonb_build_object(
        'open_rows', coalesce(sum((l ->> 'open_rows')::bigint), 0),
        'attempts_left', coalesce(sum((l ->> 'attempts_left')::bigint), 0),
        'calls_left', coalesce(sum((l ->> 'calls_left')::bigint), 0),
        'worst_case_usd', coalesce(sum((l ->> 'worst_case_usd')::numeric), 0),
        'worst_case_today_usd', coalesce(sum((l ->> 'worst_case_today_usd')::numeric), 0),
        'spent_today_usd', coalesce(sum((l ->> 'spent_today_usd')::numeric), 0))
        from jsonb_array_elements(v_kinds) l));
end
$$;
