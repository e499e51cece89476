-- tick: what a poller does first for a kind. It says that the poller lives, enqueues what the kind's source returns and,
-- when told a scheduled time, that occurrence, and answers whether a claim could succeed at all, so that a poller with
-- nothing to do leaves after one round trip.
--
-- A source that fails is a note in the answer; it never keeps the kind's jobs from being claimed.

-- A beat never waits: whoever holds the row is alive at this very moment.
create or replace function stopline.beat(p_who text, p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
begin
  update stopline.heartbeat h
     set at = p_now
    from (select who
            from stopline.heartbeat
           where who = p_who
             and at < p_now - interval '10 seconds'
             for update skip locked) f
   where h.who = f.who;
  if not found and not exists (select from stopline.heartbeat where who = p_who) then
    insert into stopline.heartbeat (who, at) values (p_who, p_now) on conflict do nothing;
  end if;
end
$$;

create or replace function stopline.is_paused(k stopline.kind, p_now timestamptz)
returns boolean
language sql
immutable
set search_path = pg_catalog, stopline, pg_temp
as $$
  select k.retired_at is not null
      or (k.paused_at is not null and (k.paused_by = 'breaker' or k.paused_until is null or k.paused_until > p_now))
$$;

-- Whether an open breaker has cooled down and lets one attempt through. The probe's claim expires with its lease.
create or replace function stopline.may_probe(k stopline.kind, p_now timestamptz)
returns boolean
language sql
immutable
set search_path = pg_catalog, stopline, pg_temp
as $$
  select k.retired_at is null and k.paused_by = 'breaker' and k.paused_until <= p_now
     and (k.probe_until is null or k.probe_until <= p_now)
$$;

-- The least that an attempt costs: an agent's has at least one step.
create or replace function stopline.attempt_price(k stopline.kind)
returns numeric
language sql
immutable
parallel safe
as $$ select coalesce(k.per_attempt_usd, 0) + coalesce(k.per_step_usd, 0) $$;

-- How many attempts today's budget still pays for; null without a budget. An attempt that costs nothing on paper is
-- paid for as long as anything is left.
create or replace function stopline.affordable(k stopline.kind, p_now timestamptz)
returns integer
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  select case
           when k.daily_budget_usd is null then null
           when coalesce(s.usd, 0) >= k.daily_budget_usd
                or coalesce(s.usd, 0) + stopline.attempt_price(k) > k.daily_budget_usd then 0
           when coalesce(k.per_attempt_usd, 0) > 0 then
             least(floor((k.daily_budget_usd - coalesce(s.usd, 0)) / k.per_attempt_usd), 1000000)::integer
           else 1000000 end
    from (select) as one
    left join stopline.spend s on s.kind = k.name and s.day = stopline.utc_day(p_now)
$$;

create or replace function stopline.running(p_kind text, p_now timestamptz)
returns integer
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  select count(*)::integer
    from stopline.job
   where kind = p_kind
     and state = 'claimed'
     and lease_until > p_now
$$;

-- Enqueues one batch from a source. A key that succeeded too often within its window while the source kept returning
-- it becomes an abandoned row that holds the key: the loop's stop line, one level up. A row without a key is refused:
-- nothing would keep the next tick from enqueuing it again.
create or replace function stopline.enqueue_from_source(k stopline.kind, p_keys text[], p_payloads jsonb[], p_now timestamptz)
returns jsonb
language plpgsql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  v_looping text[];
  v_counts jsonb;
  v_first_error text;
  v_created text[];
  v_stopped integer := 0;
begin
  v_looping := array(
    select s.key
      from stopline.source_key s
     where s.kind = k.name
       and s.key = any (p_keys)
       and s.opens > k.max_reopens
       and s.first_opened_at > p_now - k.reopen_window
       and not exists (select from stopline.job h where h.kind = k.name and h.key = s.key and h.holds_key)
     order by s.key);

  with looping as (
    select i.key, i.payload, nextval('stopline.job_id_seq') as id
      from (select distinct on (u.key) u.key, u.payload from unnest(p_keys, p_payloads) as u(key, payload) order by u.key) i
     where i.key = any (v_looping)
       and stopline.item_error(k, i.payload, i.key, null, null, null, null, p_now) is null
  ), stopped as (
    insert into stopline.job
      (id, kind, key, holds_key, state, max_attempts, due_at, created_at, finished_at, stop_reason, last_error_class, last_error)
    select l.id, k.name, l.key, true, 'abandoned', k.max_attempts, p_now, p_now, p_now, 'reopen_limit', 'ReopenLimit',
           format('the source returned this key again after %s jobs within %s: their work changed nothing that its query looks at',
                  k.max_reopens + 1, k.reopen_window)
      from looping l
     order by l.key
    on conflict (kind, key) where holds_key do nothing
    returning id
  ), data as (
    insert into stopline.job_data (job_id, payload)
    select l.id, l.payload from looping l join stopped s on s.id = l.id
  ), told as (
    insert into stopline.event (at, kind, job_id, action, actor, reason)
    select p_now, k.name, s.id, 'stopped', 'source', 'reopen_limit' from stopped s
  )
  select count(*) into v_stopped from stopped;

  with answered as (
    select e.answer, e.error, i.keys[e.item] as key
      from (select array_agg(u.key order by u.n) as keys, array_agg(u.payload order by u.n) as payloads
              from unnest(p_keys, p_payloads) with ordinality as u(key, payload, n)
             where u.key is not null and u.key <> all (v_looping)) i,
           lateral stopline.enqueue_many(k.name, coalesce(i.payloads, '{}'), i.keys) e
  )
  select jsonb_build_object(
           'created', count(*) filter (where answer = 'created'),
           'open', count(*) filter (where answer = 'open'),
           'held', count(*) filter (where answer = 'held'),
           'conflict', count(*) filter (where answer = 'conflict'),
           'invalid', count(*) filter (where answer = 'invalid') + cardinality(array_positions(p_keys, null))),
         coalesce(min(error), case when array_position(p_keys, null) is not null
                                   then 'key: is null; every row of a source needs the key of what it is about' end),
         coalesce(array_agg(key order by key) filter (where answer = 'created'), '{}')
    into v_counts, v_first_error, v_created
    from answered;

  insert into stopline.source_key as s (kind, key, first_opened_at, opens)
  select k.name, c.key, p_now, 1
    from unnest(v_created) as c(key)
   order by c.key
  on conflict (kind, key) do update
     set first_opened_at = case when s.first_opened_at > p_now - k.reopen_window then s.first_opened_at else p_now end,
         opens = case when s.first_opened_at > p_now - k.reopen_window then s.opens + 1 else 1 end;

  return v_counts || jsonb_build_object('reopen_limit', v_stopped, 'note', v_first_error);
end
$$;

-- Whether no new job can have the key: one holds it, or it is no key. For the wrapped sources, which may read nothing
-- else of Stopline's.
create or replace function stopline.holds_key(p_kind text, p_key text)
returns boolean
language sql
stable
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
  select p_key is null
      or octet_length(p_key) not between 1 and 512
      or exists (select from stopline.job where kind = p_kind and key = p_key and holds_key)
$$;

-- Reads the source and enqueues what is new. A full first page that held little new is followed by a page without the
-- keys that are held.
create or replace function stopline.read_source(k stopline.kind, p_now timestamptz)
returns jsonb
language plpgsql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  v_query text := format('select coalesce(array_agg(s.key), ''{}''), coalesce(array_agg(s.payload), ''{}'') from stopline_source.%I($1, $2) s', k.name);
  v_keys text[];
  v_payloads jsonb[];
  v_first jsonb;
  v_rest jsonb := '{}';
  v_room integer;
begin
  execute v_query into v_keys, v_payloads using k.rows_per_tick, false;
  v_first := stopline.enqueue_from_source(k, v_keys, v_payloads, p_now);
  v_room := k.rows_per_tick - (v_first ->> 'created')::integer;
  if cardinality(v_keys) = k.rows_per_tick and v_room > 0 then
    execute v_query into v_keys, v_payloads using v_room, true;
    v_rest := stopline.enqueue_from_source(k, v_keys, v_payloads, p_now);
  end if;
  return stopline.add_counts(v_first, v_rest) || jsonb_build_object('note', coalesce(v_first ->> 'note', v_rest ->> 'note'));
end
$$;

-- Adds two mappings of counts by name.
create or replace function stopline.add_counts(a jsonb, b jsonb)
returns jsonb
language sql
immutable
set search_path = pg_catalog, stopline, pg_temp
as $$
  select coalesce(jsonb_object_agg(c.key, c.n), '{}')
    from (select e.key, sum((e.value #>> '{}')::bigint) as n
            from (select * from jsonb_each(a) union all select * from jsonb_each(b)) e
           where jsonb_typeof(e.value) = 'number'
           group by e.key) c
$$;

create or replace function stopline.tick(p_kind text, p_scheduled_for timestamptz default null)
returns jsonb
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  k stopline.kind;
  v_now timestamptz := stopline.clock();
  v_counts jsonb := '{"created": 0, "open": 0, "held": 0, "conflict": 0, "invalid": 0, "reopen_limit": 0}';
  v_source jsonb;
  v_note text;
  v_status text;
begin
  select * into k from stopline.kind where name = p_kind;
  if not found then
    raise exception using
      errcode = 'SL001',
      message = format('kind: %s is not known to this database', coalesce(quote_literal(p_kind), 'null')),
      hint = 'Its folder is deployed but its policy is not: run the migrator.';
  end if;
  perform stopline.beat('poller:' || k.name, v_now);

  if p_scheduled_for is not null and k.retired_at is null then
    insert into stopline.occurrence (kind, scheduled_for, created_at)
    values (k.name, p_scheduled_for, v_now)
    on conflict do nothing;
    if found then
      perform stopline.enqueue(
        k.name,
        jsonb_build_object('scheduled_for', stopline.iso(p_scheduled_for)),
        'scheduled:' || stopline.iso(p_scheduled_for));
      v_counts := stopline.add_counts(v_counts, '{"created": 1}');
    end if;
  end if;

  if k.retired_at is null and to_regprocedure(format('stopline_source.%I(integer, boolean)', k.name)) is not null then
    begin
      v_source := stopline.read_source(k, v_now);
      v_counts := stopline.add_counts(v_counts, v_source);
      v_note := v_source ->> 'note';
    exception when query_canceled or others then
      v_note := format('source.sql of kind %s failed: %s %s', k.name, sqlstate, left(sqlerrm, 500));
    end;
  end if;

  -- Read again: what was enqueued just now is due after the first reading.
  v_now := stopline.clock();

  v_status := case
    when stopline.is_paused(k, v_now) and not coalesce(stopline.may_probe(k, v_now), false) then 'paused'
    when k.concurrency is not null and stopline.running(k.name, v_now) >= k.concurrency then 'full'
    when stopline.affordable(k, v_now) <= 0 then 'budget'
    when not exists (select from stopline.job j where j.kind = k.name and j.state = 'pending' and j.due_at <= v_now
                        and j.priority in (0, 1, 2, 3)) then 'empty'
    else 'ok' end;

  return jsonb_build_object(
    'status', v_status,
    'counts', v_counts,
    'note', v_note,
    'run', jsonb_build_object(
      'isolation', k.isolation,
      'children', k.children,
      'batch', k.batch,
      'timeout_s', stopline.seconds(k.timeout),
      'margin_s', stopline.seconds(k.margin),
      'memory_mb', k.memory_mb,
      'idempotent', k.idempotent,
      'effect', k.effect,
      'max_steps', k.max_steps));
end
$$;
