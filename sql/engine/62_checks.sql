-- Questions to receivers about unknown outcomes. A check is handed out like an attempt: counted and leased in one
-- statement before it is asked, so that a check whose process dies is a check like any other. After max_checks nobody
-- asks any more and the job waits for a person, with its review-by time.

-- Due checks of a kind, at most p_limit, each with what reconcile(job) needs. A job is handed out to one poller at a
-- time: its next check is due only after this one's time is over.
create or replace function stopline.due_checks(
  p_kind text, p_worker text, p_limit integer, p_seconds_left double precision, p_installation text)
returns table (
  job_id bigint, number integer, fence bigint, round integer, attempt integer, attempts_left integer, key text,
  payload text, checkpoint text, effect_key text, deadline_at text, lease_seconds double precision)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  k stopline.kind;
  v_now timestamptz := stopline.clock();
  v_lease interval;
begin
  select * into k from stopline.kind where name = p_kind;
  if not found or not k.reconciles or k.retired_at is not null
     or p_installation is distinct from (select i.identity from stopline.installation i order by i.number desc limit 1)
     or p_seconds_left < stopline.seconds(k.timeout) then
    return;
  end if;
  v_lease := k.timeout + k.margin;

  return query
    with due as materialized (
      select j.id
        from stopline.job j
       where j.kind = k.name
         and j.next_check_at <= v_now
         and j.checks < k.max_checks
         and (j.state = 'uncertain' or j.replay_by is not null)
       order by j.next_check_at, j.id
       limit p_limit
         for update skip locked
    ), counted as (
      update stopline.job j
         set checks = j.checks + 1,
             next_check_at = v_now + v_lease
        from due d
       where j.id = d.id
      returning j.id, j.fence, j.round, j.attempts, j.max_attempts, j.key, j.deadline_at,
                -- Not j.checks, which starts afresh with every unknown outcome: a number twice in a round would overwrite
                -- an answer, and take a frozen poller's word on the first question for one on the second.
                (select coalesce(max(r.number), 0) + 1
                   from stopline.reconcile_check r
                  where r.job_id = j.id
                    and r.round = j.round) as number
    ), asked as (
      insert into stopline.reconcile_check (job_id, number, round, asked_at, worker, answer, detail)
      select c.id, c.number, c.round, v_now, left(p_worker, 200), 'unknown', 'asked, and the process ended without an answer'
        from counted c
    )
    select c.id, c.number, c.fence, c.round, c.attempts, greatest(least(c.max_attempts, k.max_attempts) - c.attempts, 0), c.key,
           d.payload::text, d.checkpoint::text,
           stopline.effect_key(c.id), stopline.iso(c.deadline_at), stopline.seconds(v_lease)
      from counted c
      left join stopline.job_data d on d.job_id = c.id
     order by c.id;
end
$$;

-- What follows an answer that settles nothing: the next question, later and later, or the end of asking.
create or replace function stopline.ask_again(j stopline.job, k stopline.kind, p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
begin
  if j.checks < k.max_checks then
    update stopline.job
       set next_check_at = p_now + stopline.backoff(j.checks, greatest(k.settle, k.retry_base), greatest(k.settle, k.retry_cap))
     where id = j.id;
  else
    update stopline.job set next_check_at = null, replay_by = null, replay_why = null where id = j.id;
    insert into stopline.event (at, kind, job_id, action, actor, reason)
    values (p_now, j.kind, j.id, case when j.replay_by is null then 'checks_exhausted' else 'replay_unanswered' end, 'poller',
            format('%s checks of the receiver settled nothing; a person must decide', j.checks));
  end if;
end
$$;

-- One answer: applied ends the job as succeeded without running it again; not_applied opens the retry, or the round that
-- somebody asked for, or stops or cancels by the rules; unknown is asked again until the bound.
-- Answers: recorded | already_done | stale (the job has moved on; the answer stands with the check).
create or replace function stopline.record_check(
  p_job bigint, p_round integer, p_number integer, p_answer text, p_detail text)
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
  c stopline.reconcile_check;
  v_now timestamptz;
begin
  if p_answer is null or p_answer not in ('applied', 'not_applied', 'unknown') then
    raise exception using
      errcode = 'SL001',
      message = format('answer: %s; a check answers applied, not_applied or unknown', coalesce(p_answer, 'null'));
  end if;
  select * into j from stopline.job where id = p_job for update;
  v_now := stopline.clock();
  select * into c from stopline.reconcile_check r where r.job_id = p_job and r.round = p_round and r.number = p_number;
  if j.id is null or c.job_id is null then
    raise exception using
      errcode = 'SL001',
      message = format('check: job %s has no check %s in round %s', p_job, p_number, p_round);
  elsif c.answered_at is not null then
    return query select 'already_done', j.state, j.stop_reason;
    return;
  end if;
  update stopline.reconcile_check r
     set answer = p_answer, detail = stopline.bounded(p_detail), answered_at = v_now
   where r.job_id = p_job and r.round = p_round and r.number = p_number;

  -- An answer "applied" is the truth whenever it comes; the others speak only of the newest question, and only if no
  -- attempt has sent anything since it was asked.
  if j.round <> p_round or not (j.state = 'uncertain' or j.replay_by is not null)
     or (p_answer <> 'applied'
         and (c.asked_at < j.claimed_at
              or exists (select from stopline.reconcile_check r
                          where r.job_id = p_job and r.round = p_round and r.number > p_number))) then
    return query select 'stale', j.state, j.stop_reason;
    return;
  end if;
  select * into k from stopline.kind where name = j.kind;

  if p_answer = 'applied' then
    perform stopline.mark_applied(j, v_now);
    state := 'succeeded';
    stop_reason := 'completed';
  elsif p_answer = 'unknown' then
    perform stopline.ask_again(j, k, v_now);
    state := j.state;
    stop_reason := j.stop_reason;
  elsif j.replay_by is not null then
    begin
      perform stopline.require_replayable(j, k, null, v_now);
      perform stopline.open_round(j, k, null, v_now);
      perform stopline.tell(j, 'replayed', j.replay_by, j.replay_why, 'the receiver was asked: not applied', 'pending', v_now);
      state := 'pending';
      stop_reason := null;
    exception when sqlstate 'SL002' then
      update stopline.job set next_check_at = null, replay_by = null, replay_why = null where id = j.id;
      perform stopline.tell(j, 'replay_refused', 'poller', sqlerrm, null, j.state, v_now);
      state := j.state;
      stop_reason := j.stop_reason;
    end;
  else
    select m.state, m.stop_reason into state, stop_reason from stopline.mark_not_applied(j, k, v_now) m;
  end if;
  if p_answer = 'applied' or (p_answer = 'not_applied' and j.replay_by is null) then
    insert into stopline.event (at, kind, job_id, action, actor, reason, before, after)
    values (v_now, j.kind, j.id, 'reconciled', c.worker, stopline.bounded(p_detail),
            jsonb_build_object('state', j.state),
            jsonb_build_object('state', state, 'stop_reason', stop_reason, 'answer', p_answer, 'round', j.round));
  end if;
  answer := 'recorded';
  return next;
end
$$;

-- The last question's process died: nobody else closes it. Called by the sweep.
create or replace function stopline.close_unanswered(p_limit integer, p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  j stopline.job;
  k stopline.kind;
  v_closed integer := 0;
begin
  for j in
    select e.*
      from stopline.job e
      join stopline.kind n on n.name = e.kind
     where e.next_check_at <= p_now
       and e.checks >= n.max_checks
       and (e.state = 'uncertain' or e.replay_by is not null)
     order by e.id
     limit p_limit
       for update of e skip locked
  loop
    begin
      select * into k from stopline.kind where name = j.kind;
      perform stopline.ask_again(j, k, p_now);
      v_closed := v_closed + 1;
    exception
      when serialization_failure or deadlock_detected or lock_not_available then
        raise;
      when others then
        raise warning 'sweep: the questions of job % could not be closed: % %', j.id, sqlstate, sqlerrm;
    end;
  end loop;
  return v_closed;
end
$$;
