-- Enqueue, in the caller's own transaction. One item per job; an item that breaks a rule is answered with the field and
-- the rule and leaves its neighbours alone. Items are inserted in key order, so that two callers with the same keys in
-- another order cannot deadlock.
--
-- Answers: created | open (the key has an unfinished job) | held (a stopped job still holds the key) |
-- conflict (an unfinished job holds the key with another payload) | invalid (with `error`).

-- The first rule that an item breaks, or null.
create or replace function stopline.item_error(
  k stopline.kind, p_payload jsonb, p_key text, p_priority integer,
  p_due_at timestamptz, p_deadline_at timestamptz, p_max_attempts integer, p_now timestamptz)
returns text
language plpgsql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  v_text text := p_payload::text;
begin
  if p_payload is null then
    return 'payload: is SQL null; pass a JSON value';
  elsif octet_length(v_text) > k.max_payload then
    return format('payload: %s bytes as JSON text; kind %s allows %s. Store the data elsewhere and pass a reference',
                  octet_length(v_text), k.name, k.max_payload);
  -- The pattern is a cheap filter; the path finds the number. 1e308 is the largest that every JSON reader can hold.
  elsif octet_length(v_text) > 250 and v_text ~ '[0-9]{250}'
        and jsonb_path_exists(p_payload, '$.** ? (@.type() == "number" && (@ > 1e308 || @ < -1e308))') then
    return 'payload: holds a number beyond 1e308, which most JSON readers cannot hold. Pass it as a string';
  elsif octet_length(p_key) not between 1 and 512 then
    return format('key: %s bytes; a key has 1 to 512 bytes', octet_length(p_key));
  elsif p_priority not between 0 and 3 then
    return format('priority: %s; a priority is 0 (first) to 3 (last)', p_priority);
  elsif p_due_at not between timestamptz '2000-01-01 00:00:00+00' and timestamptz '9998-12-31 00:00:00+00' then
    return 'due_at: must lie between the years 2000 and 9998';
  elsif p_deadline_at not between timestamptz '2000-01-01 00:00:00+00' and timestamptz '9998-12-31 00:00:00+00' then
    return 'deadline_at: must lie between the years 2000 and 9998';
  elsif p_deadline_at <= p_now then
    return format('deadline_at: %s is already past (database time is %s)', stopline.iso(p_deadline_at), stopline.iso(p_now));
  elsif p_deadline_at <= coalesce(p_due_at, p_now) then
    return format('deadline_at: %s is not after due_at %s, so the job could never run',
                  stopline.iso(p_deadline_at), stopline.iso(coalesce(p_due_at, p_now)));
  elsif p_deadline_at is null and p_due_at + k.deadline > timestamptz '9998-12-31 00:00:00+00' then
    return 'due_at: with the kind''s deadline it must lie before the year 9999';
  elsif p_max_attempts not between 1 and k.max_attempts then
    return format('max_attempts: %s; a job may only lower its kind''s: 1 to %s for kind %s', p_max_attempts, k.max_attempts, k.name);
  end if;
  return null;
end
$$;

create or replace function stopline.kind_for_enqueue(p_kind text)
returns stopline.kind
language plpgsql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  k stopline.kind;
begin
  select * into k from stopline.kind where name = p_kind;
  if not found then
    raise exception using
      errcode = 'SL001',
      message = format('kind: %s is not known', coalesce(quote_literal(p_kind), 'null')),
      hint = format('Known kinds: %s. A kind is known once its folder has been deployed.',
                    coalesce((select string_agg(name, ', ' order by name) from stopline.kind where retired_at is null), 'none'));
  elsif k.retired_at is not null then
    raise exception using
      errcode = 'SL001',
      message = format('kind: %s was retired at %s and has no poller', k.name, stopline.iso(k.retired_at)),
      hint = 'Deploy its folder again, or enqueue another kind.';
  end if;
  return k;
end
$$;

create or replace function stopline.enqueue_many(
  p_kind text,
  p_payloads jsonb[],
  p_keys text[] default null,
  p_priorities integer[] default null,
  p_due_ats timestamptz[] default null,
  p_deadline_ats timestamptz[] default null,
  p_max_attempts integer[] default null)
returns table (item integer, answer text, job_id bigint, state text, stop_reason text, error text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  k stopline.kind := stopline.kind_for_enqueue(p_kind);
  v_now timestamptz := stopline.clock();
  v_todo integer[];
  v_errors text[];
  v_items integer[];
  v_ids bigint[];
  v_holder record;
  v_pass integer := 0;
begin
  select array_agg(i.n::integer order by i.n),
         array_agg(stopline.item_error(k, i.payload, i.key, i.priority, i.due_at, i.deadline_at, i.max_attempts, v_now) order by i.n)
    into v_todo, v_errors
    from unnest(p_payloads, p_keys, p_priorities, p_due_ats, p_deadline_ats, p_max_attempts)
         with ordinality as i(payload, key, priority, due_at, deadline_at, max_attempts, n);

  return query
    select i.n, 'invalid', null::bigint, null::text, null::text, v_errors[i.n]
      from unnest(v_todo) as i(n)
     where v_errors[i.n] is not null;
  v_todo := array(select i.n from unnest(v_todo) as i(n) where v_errors[i.n] is null order by i.n);

  -- Keys that are held are answered before anything is inserted: a caller that holds new keys should not wait for one
  -- that is taken anyway. A key that is taken meanwhile, or twice in this batch, is answered in the next pass; one whose
  -- holder finishes between the refused insert and that look is inserted there.
  while cardinality(v_todo) > 0 and v_pass < 6 loop
    v_pass := v_pass + 1;
    v_items := '{}';
    for v_holder in
      select i.n::integer as n, h.id, h.state, h.stop_reason,
             case when h.state in ('abandoned', 'cancelled') then 'held'
                  when d.payload is distinct from i.payload then 'conflict'
                  else 'open' end as answer
        from unnest(p_payloads, p_keys) with ordinality as i(payload, key, n)
        join stopline.job h on h.kind = k.name and h.key = i.key and h.holds_key
        left join stopline.job_data d on d.job_id = h.id
       where i.n = any (v_todo)
    loop
      item := v_holder.n;
      answer := v_holder.answer;
      job_id := v_holder.id;
      state := v_holder.state;
      stop_reason := v_holder.stop_reason;
      error := null;
      v_items := v_items || v_holder.n;
      return next;
    end loop;
    v_todo := array(select t.n from unnest(v_todo) as t(n) where t.n <> all (v_items) order by t.n);
    exit when cardinality(v_todo) = 0;

    with wanted as materialized (
      select i.n::integer as n, i.payload, i.key,
             coalesce(i.priority, 1) as priority,
             coalesce(i.due_at, v_now) as due_at,
             coalesce(i.deadline_at, greatest(coalesce(i.due_at, v_now), v_now) + k.deadline) as deadline_at,
             coalesce(i.max_attempts, k.max_attempts) as max_attempts,
             nextval('stopline.job_id_seq') as id
        from unnest(p_payloads, p_keys, p_priorities, p_due_ats, p_deadline_ats, p_max_attempts)
             with ordinality as i(payload, key, priority, due_at, deadline_at, max_attempts, n)
       where i.n = any (v_todo)
       order by i.key, i.n
    ), made as (
      insert into stopline.job (id, kind, key, holds_key, priority, max_attempts, due_at, created_at, deadline_at)
      select w.id, k.name, w.key, w.key is not null, w.priority, w.max_attempts, w.due_at, v_now, w.deadline_at
        from wanted w
       order by w.key, w.n
      on conflict (kind, key) where holds_key do nothing
      returning id
    ), data as (
      insert into stopline.job_data (job_id, payload)
      select w.id, w.payload
        from wanted w
        join made m on m.id = w.id
    )
    select coalesce(array_agg(w.n), '{}'), coalesce(array_agg(w.id), '{}')
      into v_items, v_ids
      from wanted w
      join made m on m.id = w.id;

    return query
      select m.n, 'created', m.id, 'pending', null::text, null::text
        from unnest(v_items, v_ids) as m(n, id);
    v_todo := array(select t.n from unnest(v_todo) as t(n) where t.n <> all (v_items) order by t.n);
  end loop;

  if cardinality(v_todo) > 0 then
    raise exception using
      errcode = '40001',
      message = format('enqueue of %s items for kind %s kept meeting keys that were taken and freed at once', cardinality(v_todo), k.name),
      hint = 'Repeat the call.';
  end if;
end
$$;

-- One item. An item that breaks a rule raises SL001, before anything is written.
create or replace function stopline.enqueue(
  p_kind text,
  p_payload jsonb,
  p_key text default null,
  p_priority integer default null,
  p_due_at timestamptz default null,
  p_deadline_at timestamptz default null,
  p_max_attempts integer default null)
returns table (answer text, job_id bigint, state text, stop_reason text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  v_error text;
begin
  select e.answer, e.job_id, e.state, e.stop_reason, e.error
    into answer, job_id, state, stop_reason, v_error
    from stopline.enqueue_many(
      p_kind, array[p_payload], array[p_key], array[p_priority], array[p_due_at], array[p_deadline_at], array[p_max_attempts]) e;
  if answer = 'invalid' then
    raise exception using
      errcode = 'SL001',
      message = v_error,
      hint = 'Nothing was written.';
  end if;
  return next;
end
$$;
