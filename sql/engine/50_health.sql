-- health: what the monitor reads each minute. Each kind's thresholds are applied here, so that an alarm on a total needs
-- no knowledge of kinds. Reads partial indexes of open rows only: terminal rows cost nothing.

create or replace function stopline.kind_health(k stopline.kind, p_now timestamptz)
returns jsonb
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  with due as (
    select count(*) as n, min(j.due_at) as oldest
      from (values (0), (1), (2), (3)) as p(priority),
           lateral (select due_at
                      from stopline.job
                     where kind = k.name and state = 'pending' and priority = p.priority and due_at <= p_now) j
  ), last as (
    select count(*) as n from stopline.job where kind = k.name and state = 'pending' and attempts = max_attempts - 1
  ), waiting as (
    select created_at from stopline.job where kind = k.name and state = 'pending' order by created_at limit 1
  ), claimed as (
    select count(*) as n, min(created_at) as oldest,
           count(*) filter (where lease_until < p_now - k.stuck_grace) as stuck
      from stopline.job
     where kind = k.name and state = 'claimed'
  ), uncertain as (
    select count(*) as n, min(created_at) as oldest, count(*) filter (where review_by < p_now) as overdue
      from stopline.job
     where kind = k.name and state = 'uncertain'
  ), abandoned as (
    select (select count(*) from stopline.job
             where kind = k.name and state = 'abandoned' and acknowledged_at is null) as open,
           (select count(*) from stopline.job
             where kind = k.name and state = 'abandoned' and finished_at > p_now - interval '5 minutes') as recent
  ), money as (
    select coalesce((select usd from stopline.spend where kind = k.name and day = stopline.utc_day(p_now)), 0) as today,
           case when coalesce(k.per_attempt_usd, 0) + coalesce(k.per_step_usd, 0) = 0 then 0 else (
             select coalesce(sum(least(
                      greatest(least(max_attempts, k.max_attempts) - attempts, 0) * coalesce(k.per_attempt_usd, 0)
                        + greatest(coalesce(k.max_steps, 0) - steps, 0) * coalesce(k.per_step_usd, 0),
                      case when k.per_job_usd is not null then greatest(k.per_job_usd - cost_usd, 0) end)), 0)
               from (
                 -- One index each; `state in (...)` would read the whole table.
                 select max_attempts, attempts, steps, cost_usd from stopline.job where kind = k.name and state = 'pending'
                 union all
                 select max_attempts, attempts, steps, cost_usd from stopline.job where kind = k.name and state = 'claimed'
                 union all
                 select max_attempts, attempts, steps, cost_usd from stopline.job where kind = k.name and state = 'uncertain'
               ) as open) end as worst_case
  ), poller as (
    select at from stopline.heartbeat where who = 'poller:' || k.name
  )
  select jsonb_build_object(
    'kind', k.name,
    'owner', k.owner,
    'due', due.n,
    'oldest_due_age', coalesce(stopline.seconds(p_now - due.oldest), 0),
    'oldest_unfinished_age',
      coalesce(stopline.seconds(p_now - least((select created_at from waiting), claimed.oldest, uncertain.oldest)), 0),
    'claimed', claimed.n,
    'stuck', claimed.stuck,
    'abandoned_open', abandoned.open,
    'abandoned', abandoned.recent,
    'uncertain', uncertain.n,
    'uncertain_overdue', uncertain.overdue,
    'last_attempt', last.n,
    'spend_today', money.today,
    'worst_case_spend', money.worst_case,
    'retired', k.retired_at is not null,
    'paused', k.retired_at is null and stopline.is_paused(k, p_now),
    'breaker', coalesce(k.paused_by = 'breaker', false),
    'late', coalesce(due.oldest < p_now - k.due_age, false),
    'over_budget', coalesce(stopline.affordable(k, p_now) <= 0, false),
    'poller_silent', k.retired_at is null
      and greatest((select at from poller), k.synced_at) < p_now - greatest(3 * k.run_every, interval '3 minutes'),
    'own_metrics', k.own_metrics)
    from due, last, claimed, uncertain, abandoned, money
$$;

create or replace function stopline.health()
returns jsonb
language plpgsql
stable
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  v_now timestamptz := stopline.clock();
  v_kinds jsonb;
  v_transaction double precision;
  v_sweeper timestamptz;
begin
  -- A retired kind stays as long as it has rows that somebody must still see.
  -- MATERIALIZED: each kind is read once, not once for every mention of its line.
  with h as materialized (
    select stopline.kind_health(k, v_now) as health from stopline.kind k
  )
  select coalesce(jsonb_agg(h.health order by h.health ->> 'kind'), '[]')
    into v_kinds
    from h
   where not (h.health ->> 'retired')::boolean
      or (h.health ->> 'oldest_unfinished_age')::double precision > 0
      or (h.health ->> 'abandoned_open')::bigint > 0;

  -- Without pg_read_all_stats other sessions' transactions are hidden: then the figure is unknown, not zero.
  if pg_has_role('stopline_owner', 'pg_read_all_stats', 'usage') then
    select coalesce(max(stopline.seconds(clock_timestamp() - a.xact_start)), 0)
      into v_transaction
      from pg_stat_activity a
     where a.datname = current_database()
       and a.xact_start is not null
       and a.pid <> pg_backend_pid();
  end if;
  select coalesce((select at from stopline.heartbeat where who = 'sweeper'), min(synced_at))
    into v_sweeper
    from stopline.kind;

  return jsonb_build_object(
    'totals', (
      select jsonb_build_object(
        'Due', coalesce(sum((h ->> 'due')::bigint), 0),
        'OldestDueAge', coalesce(max((h ->> 'oldest_due_age')::double precision), 0),
        'OldestUnfinishedAge', coalesce(max((h ->> 'oldest_unfinished_age')::double precision), 0),
        'Claimed', coalesce(sum((h ->> 'claimed')::bigint), 0),
        'Stuck', coalesce(sum((h ->> 'stuck')::bigint), 0),
        'AbandonedOpen', coalesce(sum((h ->> 'abandoned_open')::bigint), 0),
        'Abandoned', coalesce(sum((h ->> 'abandoned')::bigint), 0),
        'Uncertain', coalesce(sum((h ->> 'uncertain')::bigint), 0),
        'LastAttempt', coalesce(sum((h ->> 'last_attempt')::bigint), 0),
        'SpendToday', coalesce(sum((h ->> 'spend_today')::numeric), 0),
        'WorstCaseSpend', coalesce(sum((h ->> 'worst_case_spend')::numeric), 0),
        'OldestTransactionAge', v_transaction,
        'Breakers', count(*) filter (where (h ->> 'breaker')::boolean),
        'KindsLate', count(*) filter (where (h ->> 'late')::boolean),
        'KindsStuck', count(*) filter (where (h ->> 'stuck')::bigint > 0),
        'KindsAbandoned', count(*) filter (where (h ->> 'abandoned_open')::bigint > 0),
        'KindsUncertainOverdue', count(*) filter (where (h ->> 'uncertain_overdue')::bigint > 0),
        'KindsOverBudget', count(*) filter (where (h ->> 'over_budget')::boolean),
        'KindsPaused', count(*) filter (where (h ->> 'paused')::boolean),
        'PollersSilent', count(*) filter (where (h ->> 'poller_silent')::boolean),
        'SweeperSilent', coalesce(v_sweeper < v_now - interval '5 minutes', false)::integer)
        from jsonb_array_elements(v_kinds) h),
    'kinds', v_kinds);
end
$$;
