-- How a worker ends an attempt: succeed (a batch), fail, release. Each carries the fence of its claim.
--
-- Accepted while that fence is the newest and the job is claimed. A late success with the newest fence still succeeds a
-- job that is pending or uncertain: it is the truth. Anything else late changes no state and is written once, on the
-- attempt. A repeated finish answers `already`.
--
-- Answers: recorded | already | late | unknown.

create or replace function stopline.finish_late(
  p_job bigint, p_fence bigint, p_outcome text, p_error text, p_result jsonb, p_cost numeric, p_now timestamptz)
returns table (job_id bigint, answer text, state text, stop_reason text)
language plpgsql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  j stopline.job;
  a stopline.attempt;
  v_cost numeric;
begin
  job_id := p_job;
  select * into j from stopline.job where id = p_job for update;
  select * into a from stopline.attempt t where t.job_id = p_job and t.fence = p_fence;
  state := j.state;
  stop_reason := j.stop_reason;
  if a.job_id is null then
    answer := 'unknown';
  elsif a.outcome = p_outcome or a.late_outcome = p_outcome then
    answer := 'already';
  elsif p_outcome = 'succeeded' and j.fence = p_fence and j.state in ('pending', 'uncertain') and a.outcome <> 'released' then
    v_cost := stopline.reported(p_cost, a.cost_usd);
    update stopline.job u
       set state = 'succeeded',
           stop_reason = 'completed',
           finished_at = p_now,
           holds_key = false,
           -- An attempt of an earlier round has nothing to do with what this round costs.
           cost_usd = case when a.round = j.round then least(greatest(u.cost_usd - a.cost_usd + v_cost, 0), 999999.999999) else u.cost_usd end,
           last_outcome = 'succeeded',
           next_check_at = null,
           review_by = null
     where u.id = p_job;
    update stopline.attempt t
       set late_outcome = 'succeeded', late_at = p_now, cost_usd = v_cost
     where t.job_id = p_job and t.fence = p_fence;
    if p_result is not null then
      update stopline.job_data d set result = p_result where d.job_id = p_job;
    end if;
    perform stopline.settle(j.kind, stopline.utc_day(a.started_at), v_cost - a.cost_usd);
    insert into stopline.event (at, kind, job_id, action, actor, reason, before, after)
    values (p_now, j.kind, p_job, 'late_success', a.worker, 'the newest attempt reported success after it had been given up',
            jsonb_build_object('state', j.state), jsonb_build_object('state', 'succeeded'));
    answer := 'recorded';
    state := 'succeeded';
    stop_reason := 'completed';
  elsif a.late_outcome is not null then
    answer := 'already';
  else
    update stopline.attempt t
       set late_outcome = p_outcome, late_error = stopline.bounded(p_error), late_at = p_now
     where t.job_id = p_job and t.fence = p_fence;
    answer := 'late';
  end if;
  return next;
end
$$;

create or replace function stopline.succeed(p_jobs bigint[], p_fences bigint[], p_results jsonb[], p_costs numeric[])
returns table (job_id bigint, answer text, state text, stop_reason text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := stopline.clock();
  v_done bigint[];
  v_too_late bigint[];
  v_owed jsonb;
  v_left record;
begin
  with report as materialized (
    select r.job, r.fence, r.result, r.cost
      from unnest(p_jobs, p_fences, p_results, p_costs) as r(job, fence, result, cost)
      join stopline.job j on j.id = r.job
     where j.fence = r.fence
       -- Concatenated, so that no statistics make the index of claimed jobs look cheaper than the primary key: it would be
       -- walked whole for every job of the batch.
       and j.state || '' = 'claimed'
     order by r.job
       for update of j
  ), done as (
    update stopline.job j
       set state = 'succeeded',
           stop_reason = 'completed',
           finished_at = v_now,
           holds_key = false,
           claim_token = null,
           lease_until = null,
           last_outcome = 'succeeded',
           cost_usd = stopline.job_cost(j, stopline.reported(r.cost, j.reserved_usd))
      from report r
     where j.id = r.job
    returning j.id, j.kind, j.fence, j.round, j.attempts, j.claimed_at, j.claimed_by, j.reserved_usd, j.attempt_steps,
              stopline.reported(r.cost, j.reserved_usd) as cost, j.cancel_requested_at
  ), recorded as (
    insert into stopline.attempt
      (job_id, fence, kind, round, attempt, started_at, finished_at, worker, outcome, cost_usd, steps)
    select d.id, d.fence, d.kind, d.round, d.attempts, d.claimed_at, v_now, d.claimed_by, 'succeeded', d.cost, d.attempt_steps
      from done d
  ), stored as (
    update stopline.job_data t
       set result = case
             when octet_length(r.result::text) <= 65536 then r.result
             else '{"stopline": "result not stored", "why": "larger than 65536 bytes as JSON text"}' end
      from report r
     where t.job_id = r.job
       and r.result is not null
  ), owed as (
    select d.kind, stopline.utc_day(d.claimed_at) as day, sum(d.cost - d.reserved_usd) as delta
      from done d
     where d.cost <> d.reserved_usd
     group by 1, 2
  )
  select array_agg(d.id),
         array_agg(d.id) filter (where d.cancel_requested_at is not null),
         (select jsonb_agg(o order by o.kind, o.day) from owed o)
    into v_done, v_too_late, v_owed
    from done d;

  if v_owed is not null then
    perform stopline.settle(o.kind, o.day, o.delta) from jsonb_to_recordset(v_owed) as o(kind text, day date, delta numeric);
  end if;
  if v_too_late is not null then
    insert into stopline.event (at, kind, job_id, action, actor, reason)
    select v_now, j.kind, j.id, 'cancel_too_late', j.claimed_by, 'the attempt that was running had succeeded'
      from stopline.job j
     where j.id = any (v_too_late);
  end if;

  return query select d.id, 'recorded', 'succeeded', 'completed' from unnest(v_done) as d(id);
  if coalesce(cardinality(v_done), 0) < cardinality(p_jobs) then
    for v_left in
      select r.job, r.fence, r.result, r.cost
        from unnest(p_jobs, p_fences, p_results, p_costs) as r(job, fence, result, cost)
       where v_done is null or r.job <> all (v_done)
       order by r.job
    loop
      return query select * from stopline.finish_late(v_left.job, v_left.fence, 'succeeded', null, v_left.result, v_left.cost, v_now);
    end loop;
  end if;
end
$$;

create or replace function stopline.fail(
  p_job bigint,
  p_fence bigint,
  p_outcome text,
  p_error_class text,
  p_error text,
  p_fingerprint text,
  p_retry_after double precision default null,
  p_stop_reason text default null,
  p_cost numeric default null)
returns table (answer text, state text, stop_reason text, due_at text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  j stopline.job;
  k stopline.kind;
begin
  if p_outcome is null or p_outcome not in ('transient', 'permanent', 'uncertain', 'timeout', 'crashed') then
    raise exception using
      errcode = 'SL001',
      message = format('outcome: %s; a failed attempt is transient, permanent, uncertain, timeout or crashed', p_outcome);
  elsif p_stop_reason is not null
        and (p_outcome <> 'permanent' or p_stop_reason not in ('permanent_failure', 'unreadable', 'step_limit')) then
    raise exception using
      errcode = 'SL001',
      message = format('stop_reason: %s with outcome %s; a worker may name permanent_failure, unreadable or step_limit of a permanent failure',
                       p_stop_reason, p_outcome);
  end if;

  select * into j from stopline.job where id = p_job for update;
  if j.id is null or j.fence <> p_fence or j.state <> 'claimed' then
    return query
      select l.answer, l.state, l.stop_reason, null::text
        from stopline.finish_late(p_job, p_fence, p_outcome, p_error, null, p_cost, stopline.clock()) l;
    return;
  end if;
  select * into k from stopline.kind where name = j.kind;
  return query
    select 'recorded', e.state, e.stop_reason, stopline.iso(e.due_at)
      from stopline.end_attempt(j, k, p_outcome, p_error_class, p_error, p_fingerprint, p_retry_after, p_stop_reason, p_cost,
                                stopline.clock()) e;
end
$$;

-- Hands back a claim whose work has not started: the attempt and its money return, the fence does not. Refused once the
-- attempt has recorded an effect, a step or a checkpoint. After max_releases in a round the attempt is kept, so that the
-- ordinary cap ends a loop of claims and releases too.
create or replace function stopline.release(p_job bigint, p_fence bigint, p_why text)
returns table (answer text, state text, stop_reason text, due_at text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  j stopline.job;
  k stopline.kind;
  v_now timestamptz;
  v_due timestamptz;
  v_hand_back boolean;
  v_state text := 'pending';
  v_stop text;
  v_error text := stopline.bounded(coalesce(nullif(p_why, ''), 'released before it started'));
begin
  select * into j from stopline.job where id = p_job for update;
  v_now := stopline.clock();
  if j.id is null or j.fence <> p_fence or j.state <> 'claimed' then
    return query
      select l.answer, l.state, l.stop_reason, null::text
        from stopline.finish_late(p_job, p_fence, 'released', v_error, null, null, v_now) l;
    return;
  end if;
  if j.effect_started_at is not null or j.attempt_steps > 0
     or exists (select from stopline.job_data d where d.job_id = j.id and d.checkpoint_fence = j.fence) then
    raise exception using
      errcode = 'SL002',
      message = format('job %s: attempt %s has recorded an effect, a step or a checkpoint and cannot be released', j.id, j.attempts),
      hint = 'Finish it as failed, timed out or crashed.';
  end if;

  select * into k from stopline.kind where name = j.kind;
  v_hand_back := j.releases < k.max_releases;
  v_due := v_now + stopline.backoff(j.releases + 1, k.retry_base, k.retry_cap);
  if j.cancel_requested_at is not null then
    v_state := 'cancelled';
    v_stop := 'cancelled';
  elsif j.deadline_at <= v_due then
    v_state := 'abandoned';
    v_stop := 'deadline_passed';
  elsif j.give_up_at <= v_due and not (v_hand_back and j.attempts = 1) then
    v_state := 'abandoned';
    v_stop := 'elapsed_limit';
  elsif not v_hand_back then
    v_stop := stopline.limit_reached(j, k, j.crashes, j.cost_usd - j.reserved_usd, v_due);
    v_state := case when v_stop is null then 'pending' else 'abandoned' end;
  end if;

  update stopline.job u
     set state = v_state,
         stop_reason = v_stop,
         attempts = case when v_hand_back then u.attempts - 1 else u.attempts end,
         releases = u.releases + 1,
         cost_usd = greatest(u.cost_usd - u.reserved_usd, 0),
         -- A claim that never ran starts no clock: the elapsed limit is not for the pollers' outage.
         round_started_at = case when v_hand_back and j.attempts = 1 and v_state = 'pending' then null else u.round_started_at end,
         give_up_at = case when v_hand_back and j.attempts = 1 and v_state = 'pending' then null else u.give_up_at end,
         due_at = case when v_state = 'pending' then v_due else u.due_at end,
         due_rule = case when v_state = 'pending' then 'backoff' else u.due_rule end,
         claim_token = null,
         lease_until = null,
         last_outcome = 'released',
         last_error_class = coalesce(u.last_error_class, 'Released'),
         last_error = coalesce(u.last_error, v_error),
         finished_at = case when v_stop is not null then v_now end,
         holds_key = u.holds_key and (v_stop is null or k.hold_key)
   where u.id = j.id;
  insert into stopline.attempt
    (job_id, fence, kind, round, attempt, started_at, finished_at, worker, outcome, error_class, error, cost_usd, next_due_at)
  values
    (j.id, j.fence, j.kind, j.round, j.attempts, j.claimed_at, v_now, j.claimed_by, 'released', 'Released', v_error, 0,
     case when v_state = 'pending' then v_due end);
  perform stopline.settle(j.kind, stopline.utc_day(j.claimed_at), -j.reserved_usd);
  if v_stop is not null then
    insert into stopline.event (at, kind, job_id, action, actor, reason)
    values (v_now, j.kind, j.id, 'stopped', j.claimed_by, v_stop);
  end if;
  return query select 'recorded', v_state, v_stop, case when v_state = 'pending' then stopline.iso(v_due) end;
end
$$;
