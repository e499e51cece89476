-- What a running attempt records about itself. Each call carries the fence and is refused (SL003) once the attempt has
-- lost the job, so that a worker which outlived its lease stops before its next effect.

-- Locks the job and returns it while the attempt holds it.
create or replace function stopline.held_job(p_job bigint, p_fence bigint)
returns stopline.job
language plpgsql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  j stopline.job;
begin
  select * into j from stopline.job where id = p_job for update;
  if j.id is null or j.fence <> p_fence or j.state <> 'claimed' or j.lease_until <= stopline.clock() then
    raise exception using
      errcode = 'SL003',
      message = format('job %s: the attempt with fence %s no longer holds it (state %s, fence %s)',
                       p_job, p_fence, coalesce(j.state, 'missing'), coalesce(j.fence::text, 'none')),
      hint = 'Stop without further effects: another attempt may be running.';
  end if;
  return j;
end
$$;

-- The stamp just before a send. Repeating it keeps the first time.
create or replace function stopline.start_effect(p_job bigint, p_fence bigint)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
begin
  perform stopline.held_job(p_job, p_fence);
  update stopline.job
     set effect_started_at = coalesce(effect_started_at, stopline.clock())
   where id = p_job;
end
$$;

-- Counts one agent step and reserves its price, before the step. p_step numbers the steps of this attempt from 1, so that
-- a call that is repeated after a lost reply counts once. Answers ok | step_limit | budget.
create or replace function stopline.count_step(p_job bigint, p_fence bigint, p_step integer)
returns table (status text, steps integer)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  j stopline.job;
  k stopline.kind;
  v_price numeric;
begin
  -- The kind's row first where money is limited: the same order as a claim.
  select k1.* into k from stopline.kind k1 where k1.name = (select kind from stopline.job where id = p_job);
  if k.daily_budget_usd is not null then
    perform from stopline.kind where name = k.name for no key update;
  end if;
  j := stopline.held_job(p_job, p_fence);
  v_price := coalesce(k.per_step_usd, 0);
  if p_step is null or p_step not between 1 and j.attempt_steps + 1 then
    raise exception using
      errcode = 'SL001',
      message = format('step: %s; the next step of this attempt is number %s', p_step, j.attempt_steps + 1);
  elsif p_step <= j.attempt_steps then
    return query select 'ok', j.steps;
  elsif j.steps >= k.max_steps then
    return query select 'step_limit', j.steps;
  elsif j.cost_usd + v_price > k.per_job_usd
        or (v_price > 0 and v_price > k.daily_budget_usd
              - coalesce((select s.usd from stopline.spend s where s.kind = k.name and s.day = stopline.utc_day(j.claimed_at)), 0)) then
    return query select 'budget', j.steps;
  else
    update stopline.job
       set steps = steps + 1,
           attempt_steps = attempt_steps + 1,
           reserved_usd = reserved_usd + v_price,
           cost_usd = cost_usd + v_price
     where id = p_job;
    perform stopline.settle(k.name, stopline.utc_day(j.claimed_at), v_price);
    return query select 'ok', j.steps + 1;
  end if;
end
$$;

create or replace function stopline.save_checkpoint(p_job bigint, p_fence bigint, p_checkpoint jsonb)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
begin
  perform stopline.held_job(p_job, p_fence);
  update stopline.job_data
     set checkpoint = p_checkpoint,
         checkpoint_fence = p_fence
   where job_id = p_job;
end
$$;
