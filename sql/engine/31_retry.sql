-- What follows a failed attempt, decided in one place for workers' reports and for swept leases.

-- Exponential backoff with equal jitter: d = min(cap, base * 2^(n-1)), then somewhere in [d/2, d].
-- The exponent is clamped before the power is taken: 2^1100 has no double, and an interval of 2^50 s has no reader.
create or replace function stopline.backoff(p_attempt integer, p_base interval, p_cap interval)
returns interval
language sql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
  select make_interval(secs => d.span / 2 + random() * d.span / 2)
    from (select least(stopline.seconds(p_cap),
                       stopline.seconds(p_base) * power(2::double precision, least(greatest(p_attempt, 1) - 1, 40))) as span) d
$$;

-- A receiver's Retry-After is honoured up to the cap, and spread: everybody who was throttled was told the same second.
create or replace function stopline.honoured(p_retry_after double precision, p_cap interval)
returns interval
language sql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
  select make_interval(secs => w.low + random() * (least(w.low * 1.25, w.cap) - w.low))
    from (select least(greatest(p_retry_after, 0), stopline.seconds(p_cap) * 0.9) as low, stopline.seconds(p_cap) as cap) w
$$;

-- The limit that forbids another attempt at p_due_at, or null. Precedence: deadline, elapsed, money, crashes, attempts.
create or replace function stopline.limit_reached(j stopline.job, k stopline.kind, p_crashes integer, p_cost numeric, p_due_at timestamptz)
returns text
language sql
immutable
set search_path = pg_catalog, stopline, pg_temp
as $$
  select case
    when j.deadline_at <= p_due_at then 'deadline_passed'
    when j.give_up_at <= p_due_at then 'elapsed_limit'
    when p_cost + stopline.attempt_price(k) > k.per_job_usd then 'budget_exhausted'
    when p_crashes >= k.max_crashes then 'crashes_exhausted'
    when j.attempts >= least(j.max_attempts, k.max_attempts) then 'attempts_exhausted'
    end
$$;

create or replace function stopline.bounded(p_text text)
returns text
language sql
immutable
set search_path = pg_catalog, stopline, pg_temp
as $$ select case when octet_length(p_text) <= 8192 then p_text else left(p_text, 2000) || ' [cut]' end $$;

-- What an attempt cost: what was reported, or its reservation where nothing was or what was is no amount of money. A
-- negative report would give money back to the budget, NaN or a number too large would keep the finish from committing.
create or replace function stopline.reported(p_cost numeric, p_reserved numeric)
returns numeric
language sql
immutable
parallel safe
as $$ select case when p_cost >= 0 and round(p_cost, 6) < 1000000 then round(p_cost, 6) else p_reserved end $$;

-- What the job has cost once its open attempt is settled. Beyond a million dollars the figure stops, not the finish.
create or replace function stopline.job_cost(j stopline.job, p_spent numeric)
returns numeric
language sql
immutable
parallel safe
as $$ select least(greatest(j.cost_usd - j.reserved_usd + p_spent, 0), 999999.999999) $$;

-- Money: replaces the open attempt's reservation by what it cost.
create or replace function stopline.settle(p_kind text, p_day date, p_delta numeric)
returns void
language sql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
  insert into stopline.spend as s (kind, day, usd)
  select p_kind, p_day, greatest(p_delta, 0)
   where p_delta <> 0
  on conflict (kind, day) do update
     set usd = greatest(s.usd + p_delta, 0)
$$;

-- Ends the open attempt of a claimed job that did not succeed, and moves the job. The caller holds the row lock.
create or replace function stopline.end_attempt(
  j stopline.job,
  k stopline.kind,
  p_outcome text,
  p_error_class text,
  p_error text,
  p_fingerprint text,
  p_retry_after double precision,
  p_stop_reason text,
  p_cost numeric,
  p_now timestamptz)
returns table (state text, stop_reason text, due_at timestamptz)
language plpgsql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  v_error text := stopline.bounded(coalesce(nullif(p_error, ''), p_error_class, p_outcome));
  v_unanswered boolean := p_outcome in ('crashed', 'timeout');
  v_crashes integer := j.crashes + v_unanswered::integer;
  v_spent numeric := stopline.reported(p_cost, j.reserved_usd);
  v_cost numeric := stopline.job_cost(j, v_spent);
  v_state text;
  v_stop text;
  v_due timestamptz := p_now + stopline.backoff(j.attempts, k.retry_base, k.retry_cap);
  v_rule text := 'backoff';
  v_asked interval;
begin
  if v_unanswered then
    v_spent := greatest(v_spent, j.reserved_usd);
    v_cost := stopline.job_cost(j, v_spent);
  end if;
  if p_retry_after is not null then
    v_asked := stopline.honoured(p_retry_after, k.retry_cap);
    if p_now + v_asked > v_due then
      v_due := p_now + v_asked;
      v_rule := 'retry_after';
    end if;
  end if;

  if p_outcome = 'uncertain'
     or (v_unanswered and not k.idempotent and not (k.effect = 'stamped' and j.effect_started_at is null)) then
    v_state := 'uncertain';
    v_due := p_now + k.settle;
    v_rule := 'check';
  elsif j.cancel_requested_at is not null then
    v_state := 'cancelled';
    v_stop := 'cancelled';
  elsif p_outcome = 'permanent' then
    v_state := 'abandoned';
    v_stop := coalesce(p_stop_reason, 'permanent_failure');
  else
    v_stop := stopline.limit_reached(j, k, v_crashes, v_cost, v_due);
    v_state := case when v_stop is null then 'pending' else 'abandoned' end;
  end if;

  update stopline.job u
     set state = v_state,
         stop_reason = v_stop,
         crashes = v_crashes,
         cost_usd = v_cost,
         due_at = case when v_state in ('pending', 'uncertain') then v_due else u.due_at end,
         due_rule = case when v_state in ('pending', 'uncertain') then v_rule else u.due_rule end,
         next_check_at = case when v_state = 'uncertain' then v_due end,
         checks = case when v_state = 'uncertain' then 0 else u.checks end,
         review_by = case when v_state = 'uncertain' then p_now + k.review_within end,
         claim_token = null,
         lease_until = null,
         last_outcome = p_outcome,
         last_error_class = left(p_error_class, 50),
         last_error = v_error,
         last_fingerprint = left(p_fingerprint, 64),
         finished_at = case when v_stop is not null then p_now end,
         holds_key = u.holds_key and (v_stop is null or k.hold_key)
   where u.id = j.id;

  insert into stopline.attempt
    (job_id, fence, kind, round, attempt, started_at, finished_at, worker, outcome, error_class, error, fingerprint, cost_usd, steps, next_due_at)
  values
    (j.id, j.fence, j.kind, j.round, j.attempts, j.claimed_at, p_now, j.claimed_by, p_outcome, left(p_error_class, 50), v_error,
     left(p_fingerprint, 64), v_spent, j.attempt_steps, case when v_state = 'pending' then v_due end);

  perform stopline.settle(j.kind, stopline.utc_day(j.claimed_at), v_spent - j.reserved_usd);

  if v_stop is not null then
    insert into stopline.event (at, kind, job_id, action, actor, reason)
    values (p_now, j.kind, j.id, 'stopped', j.claimed_by, v_stop);
  end if;

  return query select v_state, v_stop, case when v_state in ('pending', 'uncertain') then v_due end;
end
$$;
