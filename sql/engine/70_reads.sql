-- What people look at: `stopline jobs`, `stopline show`, `stopline kinds`. Times as text in UTC; never a payload.

-- The database's time, by which spans that people give ("for 2h", "since 24h") are counted.
create or replace function stopline.read_clock()
returns timestamptz
language sql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$ select stopline.clock() $$;

-- A kind, and what keeps its jobs from being claimed at this moment beside a pause.
create or replace function stopline.kind_now(k stopline.kind, p_now timestamptz)
returns jsonb
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  select stopline.kind_summary(k) || jsonb_build_object(
    'over_budget', coalesce(stopline.affordable(k, p_now) <= 0, false),
    'full', k.concurrency is not null and stopline.running(k.name, p_now) >= k.concurrency)
$$;

create or replace function stopline.job_summary(j stopline.job)
returns jsonb
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  select jsonb_build_object(
    'id', j.id, 'kind', j.kind, 'key', j.key, 'holds_key', j.holds_key, 'state', j.state, 'priority', j.priority,
    'attempts', j.attempts, 'max_attempts', j.max_attempts, 'crashes', j.crashes, 'releases', j.releases,
    'round', j.round, 'fence', j.fence, 'cost_usd', j.cost_usd, 'steps', j.steps)
  || jsonb_build_object(
    'due_at', stopline.iso(j.due_at), 'due_rule', j.due_rule, 'created_at', stopline.iso(j.created_at),
    'round_started_at', stopline.iso(j.round_started_at), 'give_up_at', stopline.iso(j.give_up_at),
    'deadline_at', stopline.iso(j.deadline_at), 'claimed_by', j.claimed_by, 'claimed_at', stopline.iso(j.claimed_at),
    'lease_until', stopline.iso(j.lease_until), 'effect_started_at', stopline.iso(j.effect_started_at),
    'cancel_requested_at', stopline.iso(j.cancel_requested_at), 'effect_key', stopline.effect_key(j.id))
  || jsonb_build_object(
    'last_outcome', j.last_outcome, 'last_error_class', j.last_error_class, 'last_error', j.last_error,
    'last_fingerprint', j.last_fingerprint, 'stop_reason', j.stop_reason, 'finished_at', stopline.iso(j.finished_at),
    'acknowledged_at', stopline.iso(j.acknowledged_at), 'checks', j.checks, 'next_check_at', stopline.iso(j.next_check_at),
    'review_by', stopline.iso(j.review_by), 'replay_by', j.replay_by, 'replay_why', j.replay_why,
    -- An attempt that had been given up reported success: whatever the state says, its effect exists.
    'late_success', exists (select from stopline.attempt a where a.job_id = j.id and a.late_outcome = 'succeeded'))
$$;

-- Newest first. A null argument does not filter.
create or replace function stopline.list_jobs(p_kind text default null, p_state text default null, p_limit integer default 50)
returns setof jsonb
language sql
stable
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
  select stopline.job_summary(j)
    from stopline.job j
   where (p_kind is null or j.kind = p_kind)
     and (p_state is null or j.state = p_state)
   order by j.id desc
   limit least(greatest(p_limit, 1), 1000)
$$;

-- One job whole: the row, its kind's rules, every attempt, check and event,
-- and the pauses of its kind meanwhile. Null if there is no such job.
create or replace function stopline.show_job(p_job bigint)
returns jsonb
language sql
stable
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
  select jsonb_build_object(
    'now', stopline.iso(stopline.clock()),
    'job', stopline.job_summary(j),
    'kind', stopline.kind_now(k, stopline.clock()),
    'attempts', (
      select coalesce(jsonb_agg(jsonb_build_object(
               'fence', a.fence, 'round', a.round, 'attempt', a.attempt, 'started_at', stopline.iso(a.started_at),
               'finished_at', stopline.iso(a.finished_at), 'worker', a.worker, 'outcome', a.outcome, 'error_class', a.error_class,
               'error', a.error, 'fingerprint', a.fingerprint, 'cost_usd', a.cost_usd, 'steps', a.steps,
               'next_due_at', stopline.iso(a.next_due_at), 'late_outcome', a.late_outcome, 'late_error', a.late_error,
               'late_at', stopline.iso(a.late_at)) order by a.fence), '[]')
        from stopline.attempt a
       where a.job_id = j.id),
    'checks', (
      select coalesce(jsonb_agg(jsonb_build_object(
               'round', c.round, 'number', c.number, 'asked_at', stopline.iso(c.asked_at), 'answered_at',
               stopline.iso(c.answered_at), 'worker', c.worker, 'answer', c.answer, 'detail', c.detail) order by c.round, c.number), '[]')
        from stopline.reconcile_check c
       where c.job_id = j.id),
    'events', (
      select coalesce(jsonb_agg(jsonb_build_object(
               'id', e.id, 'at', stopline.iso(e.at), 'action', e.action, 'actor', e.actor, 'reason', e.reason,
               'effects_checked', e.effects_checked, 'before', e.before, 'after', e.after) order by e.id), '[]')
        from stopline.event e
       where e.job_id = j.id),
    -- What held all jobs of the kind up during this one's life: the newest of it.
    'kind_events', (
      select coalesce(jsonb_agg(jsonb_build_object(
               'id', e.id, 'at', stopline.iso(e.at), 'action', e.action, 'actor', e.actor, 'reason', e.reason,
               'after', e.after) order by e.id), '[]')
        from (select *
                from stopline.event n
               where n.job_id is null
                 and n.kind = j.kind
                 and n.at >= j.created_at
                 and (j.finished_at is null or n.at <= j.finished_at)
                 and n.action in ('paused', 'resumed', 'breaker_opened', 'breaker_extended', 'breaker_closed')
               order by n.id desc
               limit 50) e))
    from stopline.job j
    join stopline.kind k on k.name = j.kind
   where j.id = p_job
$$;

create or replace function stopline.list_kinds()
returns setof jsonb
language sql
stable
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
  select stopline.kind_now(k, n.now) from stopline.kind k, (select stopline.clock() as now offset 0) n order by k.name
$$;
