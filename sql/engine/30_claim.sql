-- claim: one statement locks, counts and gates, before the work. What it returns has been paid for: the attempt is
-- counted, the fence moved on, the money reserved, the lease written, and all of it committed when the caller sees it.
--
-- Kinds with a limit on running jobs or on money are serialised by locking their row first; counting without that
-- lock hands out more than the limit. Other kinds only skip each other's locked jobs.
--
-- The plan is pinned to index scans in claim order, whatever the statistics say: after a busy hour they say that nothing
-- is pending, and any other index with a sort looks cheaper but reads the whole backlog (measured: 30 ms a claim against 1).
--
-- Repeating a claim with its token (after a lost reply) returns the same rows and counts nothing.

create or replace function stopline.effect_key(p_job bigint)
returns text
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  select i.id || '-' || p_job
    from stopline.installation i
   where i.first_job <= p_job
   order by i.number desc
   limit 1
$$;

create or replace function stopline.claim(
  p_kind text,
  p_worker text,
  p_token uuid,
  p_batch integer,
  p_seconds_left double precision,
  p_installation text)
returns table (
  status text, job_id bigint, fence bigint, attempt integer, attempts_left integer, key text,
  payload text, checkpoint text, effect_key text, deadline_at text, lease_seconds double precision)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  k stopline.kind;
  v_now timestamptz;
  v_lease interval;
  v_take integer := p_batch;
  v_reserve numeric := 0;
  v_home stopline.installation;
  v_probe boolean;
  v_status text;
  v_claimed integer;
  v_seconds_left double precision;
begin
  if p_batch is null or p_batch < 1 or p_token is null or p_worker is null or p_worker = '' then
    raise exception using
      errcode = 'SL001',
      message = 'claim: batch must be at least 1, and token and worker must be given';
  end if;

  -- A repeat that overtakes its own first call waits for it here, and then finds its rows.
  perform pg_advisory_xact_lock(hashtextextended(p_token::text, 0));

  select * into k from stopline.kind where name = p_kind;
  if not found then
    raise exception using
      errcode = 'SL001',
      message = format('kind: %s is not known to this database', coalesce(quote_literal(p_kind), 'null')),
      hint = 'Its folder is deployed but its policy is not: run the migrator.';
  end if;
  if k.concurrency is not null or k.daily_budget_usd is not null or k.paused_by = 'breaker' then
    select * into k from stopline.kind where name = p_kind for no key update;
  end if;

  select * into v_home from stopline.installation order by number desc limit 1;
  v_now := stopline.clock();
  v_probe := coalesce(stopline.may_probe(k, v_now), false);
  v_reserve := coalesce(k.per_attempt_usd, 0);
  -- The worker says how long it has; the policy says how long that can be.
  v_seconds_left := least(greatest(coalesce(p_seconds_left, 0), 0), stopline.seconds(k.poller_timeout));
  v_lease := k.margin + case when k.isolation = 'inline' then make_interval(secs => v_seconds_left) else k.timeout end;

  if not exists (select from stopline.job j where j.kind = p_kind and j.state = 'claimed' and j.claim_token = p_token) then
    v_status := case
      when p_installation is distinct from v_home.identity then 'foreign'
      when stopline.is_paused(k, v_now) and not v_probe then 'paused'
      when v_seconds_left < stopline.seconds(k.timeout) then 'empty'
      end;
    if v_status is null and k.concurrency is not null then
      v_take := least(v_take, k.concurrency - stopline.running(p_kind, v_now));
      if v_take <= 0 then
        v_status := 'full';
      end if;
    end if;
    if v_status is null and k.daily_budget_usd is not null then
      v_take := least(v_take, stopline.affordable(k, v_now));
      if v_take <= 0 then
        v_status := 'budget';
      end if;
    end if;
    if v_probe then
      v_take := 1;
    end if;
    if v_status is not null then
      return query select v_status, null::bigint, null::bigint, null::integer, null::integer, null::text,
                          null::text, null::text, null::text, null::text, null::double precision;
      return;
    end if;

    -- The rows are locked one by one as the limit pulls them; MATERIALIZED keeps any plan from doing it twice.
    with candidate as materialized (
      select c.id, c.crashes, least(c.max_attempts, k.max_attempts) - c.attempts as attempts_left
        from (values (0), (1), (2), (3)) as p(priority),
             lateral (
               select j.id, j.crashes, j.attempts, j.max_attempts
                 from stopline.job j
                where j.kind = p_kind
                  and j.state = 'pending'
                  and j.priority = p.priority
                  and j.due_at <= v_now
                  and j.attempts < least(j.max_attempts, k.max_attempts)
                  -- A probe is never a job's last attempt: the outage may not be over.
                  and (not v_probe or j.attempts + 1 < least(j.max_attempts, k.max_attempts))
                  and (j.deadline_at is null or j.deadline_at > v_now)
                  and (j.give_up_at is null or j.give_up_at > v_now)
                  and (k.per_job_usd is null or j.cost_usd + stopline.attempt_price(k) <= k.per_job_usd)
                order by j.due_at, j.id
                limit v_take
                for update of j skip locked) c
       limit v_take
    ), numbered as (
      -- Inline, a crash takes the whole claim down and names nobody. A job that was in one shares its next claim with
      -- half as many for every crash. One that the crash of a neighbour could end runs alone.
      select c.id, row_number() over w as place,
             min(case
                   when k.isolation = 'process' then v_take
                   when c.attempts_left <= 1 or k.max_crashes - c.crashes <= 1 then 1
                   when c.crashes = 0 then v_take
                   when c.attempts_left <= 2 then 1
                   else greatest(v_take >> least(c.crashes, 30), 1) end) over w as company
        from candidate c
      window w as (rows between unbounded preceding and current row)
    ), taken as (
      update stopline.job j
         set state = 'claimed',
             attempts = j.attempts + 1,
             fence = j.fence + 1,
             claim_token = p_token,
             claimed_by = left(p_worker, 200),
             claimed_at = v_now,
             lease_until = v_now + v_lease,
             round_started_at = coalesce(j.round_started_at, v_now),
             give_up_at = coalesce(j.give_up_at, v_now + k.max_elapsed),
             effect_started_at = null,
             attempt_steps = 0,
             reserved_usd = v_reserve,
             cost_usd = j.cost_usd + v_reserve
        from numbered n
       where j.id = n.id
         and n.place <= n.company
      returning j.id
    ), reserved as (
      insert into stopline.spend as s (kind, day, usd)
      select p_kind, stopline.utc_day(v_now), v_reserve * count(*)
        from taken
       where v_reserve > 0
      having count(*) > 0
      on conflict (kind, day) do update
         set usd = s.usd + excluded.usd
    ), serialised as (
      -- A claim in a stricter isolation counted rows as they were at its start. Both write this row, so that it fails
      -- with 40001 instead of passing the limit.
      insert into stopline.heartbeat as h (who, at)
      select 'claim:' || p_kind, v_now
        from taken
       where k.concurrency is not null
      having count(*) > 0
      on conflict (who) do update
         set at = excluded.at
    )
    select count(*) into v_claimed from taken;

    if v_claimed = 0 then
      return query select case when v_probe then 'paused' else 'empty' end, null::bigint, null::bigint, null::integer, null::integer, null::text,
                          null::text, null::text, null::text, null::text, null::double precision;
      return;
    end if;
    if v_probe then
      -- Not a part of the claim's statement, which would lock the table of kinds against the deploy of a policy.
      update stopline.kind q
         set probe_job = j.id, probe_fence = j.fence, probe_until = v_now + v_lease
        from stopline.job j
       where q.name = p_kind
         and j.kind = p_kind
         and j.state = 'claimed'
         and j.claim_token = p_token;
    end if;
  end if;

  return query
    select 'ok', j.id, j.fence, j.attempts, greatest(least(j.max_attempts, k.max_attempts) - j.attempts, 0), j.key,
           d.payload::text, d.checkpoint::text,
           case when j.id >= v_home.first_job then v_home.id || '-' || j.id else stopline.effect_key(j.id) end,
           stopline.iso(j.deadline_at),
           stopline.seconds(j.lease_until - v_now)
      from stopline.job j
      left join stopline.job_data d on d.job_id = j.id
     where j.kind = p_kind
       and j.state = 'claimed'
       and j.claim_token = p_token
     order by j.priority, j.id;
end
$$;
