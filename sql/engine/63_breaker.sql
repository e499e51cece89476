-- The outage breaker, decided by the sweep alone. When nearly all recent attempts of enough distinct jobs of a kind fail
-- with one fingerprint, the fault is upstream: the kind pauses itself instead of spending every job's attempts on it.
-- After a cool-down one probe is let through; its success resumes the kind, its failure opens a longer cool-down.
--
-- Crashes and timeouts do not count: they are the kind's own, and a poison job must not stop its neighbours.

-- The fingerprint of an outage in the window before p_now, or null.
create or replace function stopline.outage(k stopline.kind, p_now timestamptz)
returns table (fingerprint text, jobs integer, failures integer, error text)
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
-- Nobody can tell the planner how few of the ended jobs are recent: with a limit, reading the table from its start looks
-- cheap, and every sweep would read years of jobs.
set enable_seqscan = off
as $$
  with failed as (
    select a.job_id, a.fingerprint, a.error_class
      from stopline.attempt a
     where a.kind = k.name
       and a.outcome in ('transient', 'uncertain', 'permanent')
       and a.finished_at > greatest(p_now - k.breaker_window, k.breaker_reset_at)
     order by a.finished_at desc
     limit 2000
  ), alike as (
    select f.fingerprint, count(distinct f.job_id)::integer as jobs, count(*)::integer as failures, max(f.error_class) as error
      from failed f
     group by f.fingerprint
     order by count(*) desc
     limit 1
  ), fine as (
    -- No more than could still matter.
    select count(*) as n
      from (select
              from stopline.job j
             where j.kind = k.name
               and j.state in ('succeeded', 'cancelled')
               and j.finished_at > greatest(p_now - k.breaker_window, k.breaker_reset_at)
             limit 2000) s
  )
  select a.fingerprint, a.jobs, a.failures, a.error
    from alike a, fine
   where a.jobs >= k.breaker_jobs
     and a.failures >= k.breaker_share * ((select count(*) from failed) + fine.n)
$$;

create or replace function stopline.cooldown(k stopline.kind, p_level integer)
returns interval
language sql
immutable
set search_path = pg_catalog, stopline, pg_temp
as $$ select make_interval(secs => least(stopline.seconds(k.breaker_max_cooldown), stopline.seconds(k.breaker_cooldown) * power(2, least(p_level, 40)))) $$;

-- Opens, extends and closes the breakers of all kinds. Counts per transition.
create or replace function stopline.decide_breakers(p_now timestamptz)
returns table (transition text, kinds integer)
language plpgsql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  k stopline.kind;
  v_name text;
  v_outage record;
  v_probe text;
  v_opened integer := 0;
  v_extended integer := 0;
  v_closed integer := 0;
begin
  for v_name in
    select n.name from stopline.kind n
     where n.retired_at is null
       and (n.paused_at is null or n.paused_by = 'breaker' or n.paused_until <= p_now)
     order by n.name
  loop
    select * into k from stopline.kind where name = v_name for no key update skip locked;
    continue when not found;

    if k.paused_at is not null and k.paused_by <> 'breaker' then
      continue when k.paused_until is null or k.paused_until > p_now;
      -- A person's pause that is over says nothing any more.
      update stopline.kind
         set paused_at = null, paused_until = null, paused_by = null, paused_why = null, breaker_reset_at = p_now
       where name = k.name;
      insert into stopline.event (at, kind, action, actor, reason) values (p_now, k.name, 'resumed', 'sweeper', 'the pause had an end');
      continue;
    end if;

    if k.paused_at is null then
      select * into v_outage from stopline.outage(k, p_now);
      continue when not found;
      update stopline.kind
         set paused_at = p_now, paused_until = p_now + stopline.cooldown(k, 0), paused_by = 'breaker',
             paused_why = format('%s attempts of %s jobs failed alike: %s', v_outage.failures, v_outage.jobs, v_outage.error),
             probe_until = null, probe_job = null, probe_fence = null, breaker_level = 1
       where name = k.name;
      insert into stopline.event (at, kind, action, actor, reason, after)
      values (p_now, k.name, 'breaker_opened', 'breaker', v_outage.error,
              jsonb_build_object('fingerprint', v_outage.fingerprint, 'jobs', v_outage.jobs, 'failures', v_outage.failures,
                                 'paused_until', stopline.iso(p_now + stopline.cooldown(k, 0))));
      v_opened := v_opened + 1;
      continue;
    end if;

    -- Open, and cooled down. What became of the probe? A late success is a success.
    continue when k.paused_until > p_now or k.probe_job is null;
    select case when a.late_outcome = 'succeeded' then a.late_outcome else a.outcome end
      into v_probe
      from stopline.attempt a
     where a.job_id = k.probe_job
       and a.fence = k.probe_fence;
    if v_probe = 'succeeded' then
      update stopline.kind
         set paused_at = null, paused_until = null, paused_by = null, paused_why = null, breaker_level = 0, breaker_reset_at = p_now,
             probe_until = null, probe_job = null, probe_fence = null
       where name = k.name;
      insert into stopline.event (at, kind, action, actor, reason) values (p_now, k.name, 'breaker_closed', 'breaker', 'the probe succeeded');
      v_closed := v_closed + 1;
    elsif v_probe = 'released' then
      update stopline.kind set probe_until = null, probe_job = null, probe_fence = null where name = k.name;
    elsif v_probe is not null then
      update stopline.kind
         set paused_until = p_now + stopline.cooldown(k, k.breaker_level), breaker_level = k.breaker_level + 1,
             probe_until = null, probe_job = null, probe_fence = null
       where name = k.name;
      insert into stopline.event (at, kind, action, actor, reason, after)
      values (p_now, k.name, 'breaker_extended', 'breaker', 'the probe ended as ' || v_probe,
              jsonb_build_object('paused_until', stopline.iso(p_now + stopline.cooldown(k, k.breaker_level))));
      v_extended := v_extended + 1;
    end if;
  end loop;
  return query values ('breaker_opened', v_opened), ('breaker_extended', v_extended), ('breaker_closed', v_closed);
end
$$;
