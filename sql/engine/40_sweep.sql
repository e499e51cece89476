-- The sweep ends what nobody else will: attempts whose lease ran out, and waiting rows that have passed a limit.
-- Bounded, in id order, skipping rows that others hold. Each row has its own savepoint: one that cannot be moved is
-- counted as `failed` and its neighbours go on.

create or replace function stopline.stop_waiting(j stopline.job, k stopline.kind, p_stop text, p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
begin
  update stopline.job u
     set state = 'abandoned',
         stop_reason = p_stop,
         finished_at = p_now,
         last_error_class = coalesce(u.last_error_class, 'Stopped'),
         last_error = coalesce(u.last_error, format('%s while waiting, before any attempt ended: %s', p_stop, case p_stop
           when 'deadline_passed' then 'the deadline was ' || stopline.iso(j.deadline_at)
           when 'elapsed_limit' then 'the elapsed limit was ' || stopline.iso(j.give_up_at)
           when 'budget_exhausted' then 'the job has cost ' || j.cost_usd || ' USD of ' || k.per_job_usd
           else format('%s of %s attempts are used', j.attempts, least(j.max_attempts, k.max_attempts)) end)),
         holds_key = u.holds_key and k.hold_key
   where u.id = j.id;
  insert into stopline.event (at, kind, job_id, action, actor, reason)
  values (p_now, j.kind, j.id, 'stopped', 'sweeper', p_stop);
end
$$;

-- Waiting rows that no claim will ever take again, at most p_limit, with the reason of each.
create or replace function stopline.overdue(p_limit integer, p_now timestamptz)
returns table (job_id bigint, stop text)
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  select x.id, (array_agg(x.stop order by x.place))[1]
    from (
      (select j.id, 1 as place, 'deadline_passed' as stop
         from stopline.job j
        where j.state = 'pending' and j.deadline_at is not null and j.deadline_at <= p_now
        order by j.deadline_at
        limit p_limit)
      union all
      (select j.id, 2, 'elapsed_limit'
         from stopline.job j
        where j.state = 'pending' and j.give_up_at is not null and j.give_up_at <= p_now
        order by j.give_up_at
        limit p_limit)
      union all
      select r.id, r.place, r.stop
        from stopline.kind k,
             lateral (
               (select j.id, 3 as place, 'budget_exhausted' as stop
                  from stopline.job j
                 where k.per_job_usd is not null
                   and j.kind = k.name
                   and j.state = 'pending'
                   and j.attempts > 0
                   and j.cost_usd + stopline.attempt_price(k) > k.per_job_usd
                 limit p_limit)
               union all
               -- A pending row is always below its own cap, so only a lowered cap of the kind can have stopped it.
               (select j.id, 5, 'attempts_exhausted'
                  from stopline.job j
                 where j.kind = k.name
                   and j.state = 'pending'
                   and j.attempts > 0
                   and j.attempts >= k.max_attempts
                 limit p_limit)) r) x
   group by x.id
   order by x.id
   limit p_limit
$$;

create or replace function stopline.sweep(p_limit integer default 500)
returns table (transition text, jobs integer)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := stopline.clock();
  v_counts jsonb := '{"crashed_to_pending": 0, "crashed_to_abandoned": 0, "crashed_to_uncertain": 0, "crashed_to_cancelled": 0,
                      "deadline_passed": 0, "elapsed_limit": 0, "attempts_exhausted": 0, "budget_exhausted": 0, "failed": 0,
                      "checks_closed": 0, "breaker_opened": 0, "breaker_extended": 0, "breaker_closed": 0}';
  v_done text;
  v_id bigint;
  v_stop text;
  j stopline.job;
  k stopline.kind;
begin
  perform stopline.beat('sweeper', v_now);

  for v_id in
    select e.id
      from stopline.job e
     where e.state = 'claimed'
       and e.lease_until <= v_now
     order by e.id
     limit p_limit
       for update skip locked
  loop
    begin
      select * into j from stopline.job where id = v_id;
      select * into k from stopline.kind where name = j.kind;
      select 'crashed_to_' || e.state
        into v_done
        from stopline.end_attempt(
          j, k, 'crashed', 'LeaseExpired',
          format('no answer from %s by the end of its lease at %s: the process was killed, froze or lost the database',
                 j.claimed_by, stopline.iso(j.lease_until)),
          'lease_expired', null, null, null, v_now) e;
    exception
      when serialization_failure or deadlock_detected or lock_not_available then
        raise;
      when others then
        raise warning 'sweep: job % could not be moved: % %', v_id, sqlstate, sqlerrm;
        v_done := 'failed';
    end;
    v_counts := jsonb_set(v_counts, array[v_done], to_jsonb((v_counts ->> v_done)::integer + 1));
  end loop;

  for v_id, v_stop in select o.job_id, o.stop from stopline.overdue(p_limit, v_now) o
  loop
    begin
      select * into j from stopline.job where id = v_id and state = 'pending' for update skip locked;
      continue when not found;
      select * into k from stopline.kind where name = j.kind;
      perform stopline.stop_waiting(j, k, v_stop, v_now);
      v_done := v_stop;
    exception
      when serialization_failure or deadlock_detected or lock_not_available then
        raise;
      when others then
        raise warning 'sweep: job % could not be moved: % %', v_id, sqlstate, sqlerrm;
        v_done := 'failed';
    end;
    v_counts := jsonb_set(v_counts, array[v_done], to_jsonb((v_counts ->> v_done)::integer + 1));
  end loop;

  v_counts := v_counts || jsonb_build_object('checks_closed', stopline.close_unanswered(p_limit, v_now));
  select v_counts || jsonb_object_agg(b.transition, b.kinds) into v_counts from stopline.decide_breakers(v_now) b;

  return query select c.key, c.value::integer from jsonb_each_text(v_counts) c;
end
$$;
