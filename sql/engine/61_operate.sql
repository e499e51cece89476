-- What named people do to jobs and kinds. Each function takes the actor and a reason, writes its event in the same
-- transaction and returns the new state. Repeated, it answers `already_done` and adds nothing. What its rules do not allow is
-- refused (SL002) with the job, the rule and the way that is open instead.
--
-- Answers: done | requested (the running attempt, or the receiver, decides) | already_done.

create or replace function stopline.require_text(p_field text, p_value text)
returns void
language plpgsql
immutable
set search_path = pg_catalog, stopline, pg_temp
as $$
begin
  if p_value is null or btrim(p_value) = '' or octet_length(p_value) > 2000 then
    raise exception using
      errcode = 'SL001',
      message = format('%s: must be a text of 1 to 2000 bytes', p_field),
      hint = 'It stands in the audit for whoever reads it after you.';
  end if;
end
$$;

-- Locks the job. Raises SL001 if there is none.
create or replace function stopline.job_to_operate(p_job bigint)
returns stopline.job
language plpgsql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  j stopline.job;
begin
  select * into j from stopline.job where id = p_job for update;
  if not found then
    raise exception using
      errcode = 'SL001',
      message = format('job: there is no job %s', p_job);
  end if;
  return j;
end
$$;

create or replace function stopline.tell(
  j stopline.job, p_action text, p_actor text, p_reason text, p_effects_checked text, p_state text, p_now timestamptz)
returns void
language sql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
  insert into stopline.event (at, kind, job_id, action, actor, reason, effects_checked, before, after)
  values (p_now, j.kind, j.id, p_action, p_actor, p_reason, p_effects_checked,
          jsonb_build_object('state', j.state, 'stop_reason', j.stop_reason, 'round', j.round, 'attempts', j.attempts),
          jsonb_build_object('state', p_state))
$$;

-- A pending request for a replay is withdrawn by it, too.
create or replace function stopline.cancel(p_job bigint, p_actor text, p_reason text, p_effects_checked text default null)
returns table (answer text, state text, stop_reason text)
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
begin
  perform stopline.require_text('actor', p_actor);
  perform stopline.require_text('reason', p_reason);
  j := stopline.job_to_operate(p_job);
  v_now := stopline.clock();
  select * into k from stopline.kind where name = j.kind;

  if j.replay_by is not null then
    update stopline.job set replay_by = null, replay_why = null, next_check_at = null where id = j.id;
    perform stopline.tell(j, 'replay_withdrawn', p_actor, p_reason, p_effects_checked, j.state, v_now);
    return query select 'done', j.state, j.stop_reason;
    return;
  elsif j.state = 'cancelled' then
    return query select 'already_done', j.state, j.stop_reason;
    return;
  elsif j.state in ('succeeded', 'abandoned') then
    raise exception using
      errcode = 'SL002',
      message = format('job %s has ended (%s, %s) and cannot be cancelled', j.id, j.state, j.stop_reason),
      hint = case when j.state = 'abandoned' then 'An abandoned job runs again only by a replay; to let its key go, use release-key.'
                  else 'Nothing is left to do.' end;
  elsif j.state = 'claimed' then
    if j.cancel_requested_at is not null then
      return query select 'already_done', j.state, j.stop_reason;
      return;
    end if;
    update stopline.job set cancel_requested_at = v_now where id = j.id;
    perform stopline.tell(j, 'cancel_requested', p_actor, p_reason, p_effects_checked, 'claimed', v_now);
    return query select 'requested', 'claimed', null::text;
    return;
  elsif j.state = 'uncertain' and coalesce(btrim(p_effects_checked), '') = '' then
    raise exception using
      errcode = 'SL001',
      message = format('effects_checked: job %s is uncertain, its effect may exist; say how that was checked', j.id),
      hint = format('The receiver knows it under %s.', stopline.effect_key(j.id));
  end if;

  update stopline.job u
     set state = 'cancelled',
         stop_reason = 'cancelled',
         finished_at = v_now,
         cancel_requested_at = coalesce(u.cancel_requested_at, v_now),
         next_check_at = null,
         review_by = null,
         holds_key = u.holds_key and k.hold_key
   where u.id = j.id;
  perform stopline.tell(j, 'cancelled', p_actor, p_reason, p_effects_checked, 'cancelled', v_now);
  return query select 'done', 'cancelled', 'cancelled';
end
$$;

-- Opens a new round of a stopped job, under today's policy: attempts, crashes, releases, steps, elapsed time and job
-- budget start afresh, the fence and the history go on.
create or replace function stopline.open_round(j stopline.job, k stopline.kind, p_deadline_at timestamptz, p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
begin
  update stopline.job u
     set state = 'pending',
         round = u.round + 1,
         attempts = 0,
         max_attempts = k.max_attempts,
         crashes = 0,
         releases = 0,
         steps = 0,
         attempt_steps = 0,
         cost_usd = 0,
         reserved_usd = 0,
         due_at = p_now,
         due_rule = 'enqueue',
         round_started_at = null,
         give_up_at = null,
         deadline_at = coalesce(p_deadline_at, u.deadline_at),
         effect_started_at = null,
         cancel_requested_at = null,
         stop_reason = null,
         finished_at = null,
         acknowledged_at = null,
         checks = 0,
         next_check_at = null,
         review_by = null,
         replay_by = null,
         replay_why = null,
         holds_key = u.key is not null
   where u.id = j.id;
exception when unique_violation then
  -- Its holder had not committed when require_replayable looked.
  raise exception using
    errcode = 'SL002',
    message = format('job %s: another job took its key %s meanwhile', j.id, quote_literal(j.key)),
    hint = 'That job is the current one of this key; look at it instead.';
end
$$;

-- Refuses a round that could not run: past its deadline, without a poller, or while another job has the key.
create or replace function stopline.require_replayable(j stopline.job, k stopline.kind, p_deadline_at timestamptz, p_now timestamptz)
returns void
language plpgsql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  v_holder bigint;
begin
  if k.retired_at is not null then
    raise exception using
      errcode = 'SL002',
      message = format('job %s: its kind %s was retired and has no poller', j.id, k.name),
      hint = 'Deploy the kind again first.';
  elsif coalesce(p_deadline_at, j.deadline_at) <= p_now then
    raise exception using
      errcode = 'SL002',
      message = format('job %s: its deadline was %s', j.id, stopline.iso(coalesce(p_deadline_at, j.deadline_at))),
      hint = 'Give the replay a new deadline that lies ahead.';
  end if;
  select h.id into v_holder from stopline.job h where h.kind = j.kind and h.key = j.key and h.holds_key and h.id <> j.id;
  if found then
    raise exception using
      errcode = 'SL002',
      message = format('job %s: its key %s is held by job %s', j.id, quote_literal(j.key), v_holder),
      hint = 'That job is the current one of this key; look at it instead.';
  end if;
end
$$;

create or replace function stopline.replay(
  p_job bigint, p_actor text, p_reason text, p_effects_checked text, p_deadline_at timestamptz default null)
returns table (answer text, state text, stop_reason text)
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
begin
  perform stopline.require_text('actor', p_actor);
  perform stopline.require_text('reason', p_reason);
  perform stopline.require_text('effects_checked', p_effects_checked);
  j := stopline.job_to_operate(p_job);
  v_now := stopline.clock();
  select * into k from stopline.kind where name = j.kind;

  if (j.state in ('pending', 'claimed') and j.round > 1) or j.replay_by is not null then
    return query select 'already_done', j.state, j.stop_reason;
    return;
  elsif j.state not in ('abandoned', 'cancelled') then
    raise exception using
      errcode = 'SL002',
      message = format('job %s is %s; only an abandoned or cancelled job can be replayed', j.id, j.state),
      hint = case j.state when 'uncertain' then 'Reconcile it: say whether its effect exists.'
                          when 'succeeded' then 'Its work is done; new work is a new job.'
                          else 'It is still in its first round.' end;
  end if;
  perform stopline.require_replayable(j, k, p_deadline_at, v_now);

  if k.reconciles then
    -- The receiver is asked first, by the poller, which has the code, the role and the network for it.
    update stopline.job u
       set replay_by = p_actor, replay_why = p_reason, checks = 0, next_check_at = v_now,
           deadline_at = coalesce(p_deadline_at, u.deadline_at)
     where u.id = j.id;
    perform stopline.tell(j, 'replay_requested', p_actor, p_reason, p_effects_checked, j.state, v_now);
    return query select 'requested', j.state, j.stop_reason;
    return;
  end if;

  perform stopline.open_round(j, k, p_deadline_at, v_now);
  perform stopline.tell(j, 'replayed', p_actor, p_reason, p_effects_checked, 'pending', v_now);
  return query select 'done', 'pending', null::text;
end
$$;

-- The effect of an uncertain or abandoned job exists after all.
create or replace function stopline.mark_applied(j stopline.job, p_now timestamptz)
returns void
language sql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
  update stopline.job u
     set state = 'succeeded',
         stop_reason = 'completed',
         finished_at = p_now,
         acknowledged_at = null,
         next_check_at = null,
         review_by = null,
         replay_by = null,
         replay_why = null,
         holds_key = false
   where u.id = j.id
$$;

-- The effect of an uncertain job does not exist: it is retried, stopped or cancelled by the ordinary rules.
create or replace function stopline.mark_not_applied(j stopline.job, k stopline.kind, p_now timestamptz)
returns table (state text, stop_reason text)
language plpgsql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  v_due timestamptz := p_now + stopline.backoff(j.attempts, k.retry_base, k.retry_cap);
begin
  if j.cancel_requested_at is not null then
    state := 'cancelled';
    stop_reason := 'cancelled';
  else
    stop_reason := stopline.limit_reached(j, k, j.crashes, j.cost_usd, v_due);
    state := case when stop_reason is null then 'pending' else 'abandoned' end;
  end if;
  update stopline.job u
     set state = mark_not_applied.state,
         stop_reason = mark_not_applied.stop_reason,
         finished_at = case when mark_not_applied.stop_reason is not null then p_now end,
         due_at = case when mark_not_applied.state = 'pending' then v_due else u.due_at end,
         due_rule = case when mark_not_applied.state = 'pending' then 'check' else u.due_rule end,
         next_check_at = null,
         review_by = null,
         effect_started_at = null,
         holds_key = u.holds_key and (mark_not_applied.stop_reason is null or k.hold_key)
   where u.id = j.id;
  if stop_reason is not null then
    insert into stopline.event (at, kind, job_id, action, actor, reason)
    values (p_now, j.kind, j.id, 'stopped', 'reconcile', stop_reason);
  end if;
  return next;
end
$$;

create or replace function stopline.reconcile(p_job bigint, p_actor text, p_reason text, p_effects_checked text, p_answer text)
returns table (answer text, state text, stop_reason text)
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
begin
  perform stopline.require_text('actor', p_actor);
  perform stopline.require_text('reason', p_reason);
  perform stopline.require_text('effects_checked', p_effects_checked);
  if p_answer is null or p_answer not in ('applied', 'not_applied') then
    raise exception using
      errcode = 'SL001',
      message = format('answer: %s; say applied or not_applied', coalesce(p_answer, 'null'));
  end if;
  j := stopline.job_to_operate(p_job);
  v_now := stopline.clock();
  select * into k from stopline.kind where name = j.kind;

  if exists (select from stopline.event e
              where e.job_id = j.id and e.action = 'reconciled' and e.after ->> 'answer' = p_answer
                and (e.after ->> 'round')::integer = j.round)
     and j.state <> 'uncertain' then
    return query select 'already_done', j.state, j.stop_reason;
    return;
  elsif p_answer = 'applied' and j.state in ('uncertain', 'abandoned') then
    perform stopline.mark_applied(j, v_now);
    state := 'succeeded';
    stop_reason := 'completed';
  elsif p_answer = 'not_applied' and j.state = 'uncertain' then
    select m.state, m.stop_reason into state, stop_reason from stopline.mark_not_applied(j, k, v_now) m;
  else
    raise exception using
      errcode = 'SL002',
      message = format('job %s is %s and cannot be reconciled as %s', j.id, j.state, p_answer),
      hint = case j.state when 'abandoned' then 'To run it again, replay it.'
                          when 'claimed' then 'An attempt is running; wait for its end.'
                          else 'Only an uncertain job is settled; an abandoned one may be found to have been applied.' end;
  end if;
  insert into stopline.event (at, kind, job_id, action, actor, reason, effects_checked, before, after)
  values (v_now, j.kind, j.id, 'reconciled', p_actor, p_reason, p_effects_checked,
          jsonb_build_object('state', j.state, 'stop_reason', j.stop_reason),
          jsonb_build_object('state', state, 'stop_reason', stop_reason, 'answer', p_answer, 'round', j.round));
  answer := 'done';
  return next;
end
$$;

-- Seen, and nothing else: the job goes on holding its key.
create or replace function stopline.acknowledge(p_job bigint, p_actor text, p_reason text)
returns table (answer text, state text, stop_reason text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  j stopline.job;
  v_now timestamptz;
begin
  perform stopline.require_text('actor', p_actor);
  perform stopline.require_text('reason', p_reason);
  j := stopline.job_to_operate(p_job);
  v_now := stopline.clock();
  if j.state <> 'abandoned' then
    raise exception using
      errcode = 'SL002',
      message = format('job %s is %s; only an abandoned job is acknowledged', j.id, j.state);
  elsif j.acknowledged_at is not null then
    return query select 'already_done', j.state, j.stop_reason;
    return;
  end if;
  update stopline.job set acknowledged_at = v_now where id = j.id;
  perform stopline.tell(j, 'acknowledged', p_actor, p_reason, null, j.state, v_now);
  return query select 'done', j.state, j.stop_reason;
end
$$;

-- Lets a stopped job's key go, so that new work may have it. The source's count of re-opens starts afresh.
create or replace function stopline.release_key(p_job bigint, p_actor text, p_reason text)
returns table (answer text, state text, stop_reason text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  j stopline.job;
  v_now timestamptz;
begin
  perform stopline.require_text('actor', p_actor);
  perform stopline.require_text('reason', p_reason);
  j := stopline.job_to_operate(p_job);
  v_now := stopline.clock();
  if j.state not in ('abandoned', 'cancelled') then
    raise exception using
      errcode = 'SL002',
      message = format('job %s is %s and needs its key; only a stopped job can let it go', j.id, j.state),
      hint = 'Cancel it first.';
  elsif not j.holds_key then
    return query select 'already_done', j.state, j.stop_reason;
    return;
  end if;
  update stopline.job set holds_key = false where id = j.id;
  delete from stopline.source_key s where s.kind = j.kind and s.key = j.key;
  perform stopline.tell(j, 'key_released', p_actor, p_reason, null, j.state, v_now);
  return query select 'done', j.state, j.stop_reason;
end
$$;

create or replace function stopline.kind_to_operate(p_kind text)
returns stopline.kind
language plpgsql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  k stopline.kind;
begin
  select * into k from stopline.kind where name = p_kind for no key update;
  if not found then
    raise exception using
      errcode = 'SL001',
      message = format('kind: %s is not known', coalesce(quote_literal(p_kind), 'null')),
      hint = format('Known kinds: %s.', coalesce((select string_agg(name, ', ' order by name) from stopline.kind), 'none'));
  end if;
  return k;
end
$$;

-- No attempt of the kind starts until it is resumed, or until p_until. Deadlines go on. A person's pause takes the place
-- of the breaker's: it ends by a person, not by a probe.
create or replace function stopline.pause_kind(p_kind text, p_actor text, p_reason text, p_until timestamptz default null)
returns table (answer text, kind text, paused_until text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  k stopline.kind;
  v_now timestamptz;
begin
  perform stopline.require_text('actor', p_actor);
  perform stopline.require_text('reason', p_reason);
  k := stopline.kind_to_operate(p_kind);
  v_now := stopline.clock();
  if p_until <= v_now then
    raise exception using
      errcode = 'SL001',
      message = format('until: %s is already past (database time is %s)', stopline.iso(p_until), stopline.iso(v_now));
  elsif p_actor = 'breaker' then
    raise exception using
      errcode = 'SL001',
      message = 'actor: "breaker" is the sweep''s own name';
  elsif k.paused_at is not null and k.paused_by <> 'breaker' and (k.paused_until is null or k.paused_until > v_now)
        and k.paused_until is not distinct from p_until then
    return query select 'already_done', k.name, stopline.iso(k.paused_until);
    return;
  end if;
  update stopline.kind u
     set paused_at = v_now, paused_until = p_until, paused_by = p_actor, paused_why = p_reason, breaker_level = 0,
         probe_until = null, probe_job = null, probe_fence = null
   where u.name = k.name;
  insert into stopline.event (at, kind, action, actor, reason, before, after)
  values (v_now, k.name, 'paused', p_actor, p_reason,
          jsonb_build_object('paused_by', k.paused_by, 'paused_until', stopline.iso(k.paused_until)),
          jsonb_build_object('paused_until', stopline.iso(p_until)));
  return query select 'done', k.name, stopline.iso(p_until);
end
$$;

create or replace function stopline.resume_kind(p_kind text, p_actor text, p_reason text)
returns table (answer text, kind text, paused_until text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  k stopline.kind;
  v_now timestamptz;
begin
  perform stopline.require_text('actor', p_actor);
  perform stopline.require_text('reason', p_reason);
  k := stopline.kind_to_operate(p_kind);
  v_now := stopline.clock();
  if k.paused_at is null then
    return query select 'already_done', k.name, null::text;
    return;
  end if;
  update stopline.kind u
     set paused_at = null, paused_until = null, paused_by = null, paused_why = null, breaker_level = 0, breaker_reset_at = v_now,
         probe_until = null, probe_job = null, probe_fence = null
   where u.name = k.name;
  insert into stopline.event (at, kind, action, actor, reason, before)
  values (v_now, k.name, 'resumed', p_actor, p_reason,
          jsonb_build_object('paused_by', k.paused_by, 'paused_until', stopline.iso(k.paused_until), 'paused_why', k.paused_why));
  return query select 'done', k.name, null::text;
end
$$;
