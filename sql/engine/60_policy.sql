-- sync_policy: makes the `kind` table say what the deployed folders say. One event for each kind that changed, with the
-- keys that changed. A kind without a folder is retired, never deleted. A setting that a policy does not have, because its
-- code is older than this schema, keeps the value or default that it has here.
--
-- A lowered cap is then brought to the open rows by lower_caps, in batches that the caller commits one by one.

-- The columns of `kind` that no policy sets.
create or replace function stopline.kind_state_columns()
returns text[]
language sql
immutable
parallel safe
as $$ select array['synced_at', 'retired_at', 'paused_at', 'paused_until', 'paused_by', 'paused_why', 'probe_until',
                    'probe_job', 'probe_fence', 'breaker_level', 'breaker_reset_at'] $$;

create or replace function stopline.policy_row(p jsonb, p_now timestamptz)
returns stopline.kind
language plpgsql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  v_spans constant text[] := array[
    'max_elapsed', 'deadline', 'retry_base', 'retry_cap', 'run_every', 'timeout', 'margin', 'poller_timeout', 'settle',
    'review_within', 'reopen_window', 'breaker_window', 'breaker_cooldown', 'breaker_max_cooldown', 'due_age', 'stuck_grace',
    'retain_succeeded', 'retain_stopped'];
  v_columns text[] := array(
    select a.attname::text
      from pg_attribute a
     where a.attrelid = 'stopline.kind'::regclass and a.attnum > 0 and not a.attisdropped
       and a.attname <> all (stopline.kind_state_columns()));
  v_unknown text;
  v_row jsonb;
begin
  select min(e.key) into v_unknown from jsonb_object_keys(p) e(key) where e.key <> all (v_columns);
  if v_unknown is not null then
    raise exception using
      errcode = 'SL001',
      message = format('policy of kind %s: this database knows no setting %s', p ->> 'name', v_unknown),
      hint = 'The code is newer than the schema: run the migrations first.';
  end if;
  select jsonb_object_agg(e.key, case
           when e.key = any (v_spans) and e.value <> 'null' then to_jsonb(make_interval(secs => (e.value #>> '{}')::double precision)::text)
           else e.value end)
    into v_row
    from jsonb_each(p) e;
  return jsonb_populate_record(null::stopline.kind, v_row || jsonb_build_object('synced_at', p_now));
end
$$;

create or replace function stopline.sync_policy(p_policies jsonb, p_actor text)
returns table (kind text, change text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  v_state constant text[] := stopline.kind_state_columns();
  v_policy jsonb;
  v_columns text;
  v_now timestamptz;
  v_old jsonb;
  v_new jsonb;
  v_changed text[];
  k stopline.kind;
  o stopline.kind;
begin
  -- Two migrators take turns. Claims and enqueues go on: they take no lock that conflicts with this one.
  lock table stopline.kind in share row exclusive mode;
  v_now := stopline.clock();
  if jsonb_array_length(p_policies) = 0 and (select count(*) from stopline.kind n where n.retired_at is null) > 1 then
    raise exception using
      errcode = 'SL002',
      message = 'sync_policy: no policy was given, which would retire every kind',
      hint = 'Look whether the package has its job folders. To retire all kinds, remove them in two deploys.';
  end if;

  for v_policy in
    select p from jsonb_array_elements(p_policies) p order by p ->> 'name'
  loop
    k := stopline.policy_row(v_policy, v_now);
    v_columns := (select string_agg(quote_ident(c.key), ', ') from jsonb_object_keys(v_policy) c(key));
    select * into o from stopline.kind where name = k.name for no key update;
    if not found then
      execute format('insert into stopline.kind (%1$s, synced_at) select %1$s, $2 from (select ($1).*) as n returning *', v_columns)
         into k
        using k, v_now;
      insert into stopline.event (at, kind, action, actor, after)
      values (v_now, k.name, 'policy_added', p_actor, to_jsonb(k) - v_state);
      return query select k.name, 'added';
      continue;
    end if;

    v_old := to_jsonb(o) - v_state;
    v_new := to_jsonb(k) - v_state;
    v_changed := array(select n.key from jsonb_each(v_new) n
                        where v_policy ? n.key and n.value is distinct from v_old -> n.key
                        order by n.key);
    if cardinality(v_changed) > 0 then
      execute format('update stopline.kind set (%1$s) = (select %1$s from (select ($1).*) as n), synced_at = $2 where name = $3', v_columns)
        using k, v_now, k.name;
      insert into stopline.event (at, kind, action, actor, before, after)
      values (v_now, k.name, 'policy_changed', p_actor,
              (select jsonb_object_agg(c, v_old -> c) from unnest(v_changed) c),
              (select jsonb_object_agg(c, v_new -> c) from unnest(v_changed) c));
      return query select k.name, 'changed: ' || array_to_string(v_changed, ', ');
    end if;
    if o.retired_at is not null then
      update stopline.kind set retired_at = null, synced_at = v_now where name = k.name;
      insert into stopline.event (at, kind, action, actor) values (v_now, k.name, 'kind_returned', p_actor);
      return query select k.name, 'returned';
    end if;
  end loop;

  -- Here already, so that two first beats do not wait for each other.
  insert into stopline.heartbeat (who, at)
  select w.who, v_now
    from (select 'sweeper' as who union all select 'poller:' || (p ->> 'name') from jsonb_array_elements(p_policies) p) w
   order by w.who
  on conflict do nothing;

  for o in
    select * from stopline.kind n
     where n.retired_at is null
       and n.name not in (select p ->> 'name' from jsonb_array_elements(p_policies) p)
     order by n.name
  loop
    update stopline.kind set retired_at = v_now where name = o.name;
    insert into stopline.event (at, kind, action, actor, reason)
    values (v_now, o.name, 'kind_retired', p_actor, 'its folder is missing from the deploy');
    return query select o.name, 'retired';
  end loop;
end
$$;

-- Brings a lowered max_attempts to at most p_limit open rows of a kind and answers how many it changed. A waiting row at
-- the new cap is abandoned in the same update; a claimed row ends at its finish. A row never loses attempts it has used.
create or replace function stopline.lower_caps(p_kind text, p_limit integer default 1000)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  v_now timestamptz;
  v_rows integer;
  k stopline.kind;
begin
  select * into k from stopline.kind where name = p_kind;
  v_now := stopline.clock();
  with chosen as materialized (
    select j.id
      from stopline.job j
     where j.id in (
             -- One index of open rows each; ended rows are not read.
             select p.id from stopline.job p
              where p.kind = k.name and p.state = 'pending' and p.max_attempts > greatest(p.attempts, k.max_attempts)
             union all
             select c.id from stopline.job c
              where c.kind = k.name and c.state = 'claimed' and c.max_attempts > greatest(c.attempts, k.max_attempts)
             union all
             select u.id from stopline.job u
              where u.kind = k.name and u.state = 'uncertain' and u.max_attempts > greatest(u.attempts, k.max_attempts)
             limit p_limit)
       and j.max_attempts > greatest(j.attempts, k.max_attempts)
     order by j.id
       for update of j
  ), lowered as (
    update stopline.job j
       set max_attempts = greatest(j.attempts, k.max_attempts),
           state = case when j.state = 'pending' and j.attempts >= k.max_attempts then 'abandoned' else j.state end,
           stop_reason = case when j.state = 'pending' and j.attempts >= k.max_attempts then 'attempts_exhausted' end,
           finished_at = case when j.state = 'pending' and j.attempts >= k.max_attempts then v_now end,
           last_error_class = case when j.state = 'pending' and j.attempts >= k.max_attempts
                                   then coalesce(j.last_error_class, 'CapLowered') else j.last_error_class end,
           last_error = case when j.state = 'pending' and j.attempts >= k.max_attempts
                             then coalesce(j.last_error, format('the policy lowered max_attempts to %s after %s attempts', k.max_attempts, j.attempts))
                             else j.last_error end,
           holds_key = case when j.state = 'pending' and j.attempts >= k.max_attempts then j.holds_key and k.hold_key else j.holds_key end
      from chosen c
     where j.id = c.id
    returning j.id, j.state
  ), told as (
    insert into stopline.event (at, kind, job_id, action, actor, reason)
    select v_now, k.name, l.id, 'stopped', 'policy', 'attempts_exhausted'
      from lowered l
     where l.state = 'abandoned'
  )
  select count(*) into v_rows from lowered;
  return v_rows;
end
$$;
