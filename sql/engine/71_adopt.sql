-- adopt: says which deployment a database belongs to from now on. A copy that was restored from a backup holds jobs that
-- the original still runs; its pollers name another identity, and claims refuse them until a person adopts the copy.
--
-- Effect keys. A job that was there before the copy keeps its key: the receiver sees that the original and the copy speak
-- of one thing. A job that was made in the copy gets a new one, although the original gives out the same numbers again.
-- What parts the two is the first job that the copy made: noted by the migrator's first run there (foreign_identity), or
-- else the next job when it is adopted. Whatever has been claimed keeps its key in any case.
--
-- Only the schema's owner may call these: whoever deploys decides where paid work runs.

-- The id that the next job gets.
create or replace function stopline.next_job()
returns bigint
language sql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$ select last_value + is_called::integer from stopline.job_id_seq $$;

-- Notes, once for each identity, that a deployment which is not the database's own has come to it.
create or replace function stopline.foreign_identity(p_identity text, p_actor text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  v_home stopline.installation;
begin
  select * into v_home from stopline.installation order by number desc limit 1;
  if v_home.identity = p_identity
     or exists (select from stopline.event e
                 where e.action = 'foreign_identity' and e.kind is null and e.job_id is null
                   and e.after ->> 'identity' = p_identity and e.at >= v_home.adopted_at) then
    return;
  end if;
  insert into stopline.event (at, action, actor, reason, before, after)
  values (stopline.clock(), 'foreign_identity', p_actor, 'claims are refused until the database is adopted',
          jsonb_build_object('identity', v_home.identity),
          jsonb_build_object('identity', p_identity, 'first_job', stopline.next_job()));
end
$$;

create or replace function stopline.adopt(p_identity text, p_actor text, p_reason text)
returns table (answer text, identity text, installation text, first_job bigint)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz;
  v_home stopline.installation;
  v_new stopline.installation;
  v_first bigint;
begin
  if coalesce(trim(p_identity), '') = '' or coalesce(trim(p_actor), '') = '' or coalesce(trim(p_reason), '') = '' then
    raise exception using
      errcode = 'SL001',
      message = 'adopt: identity, actor and reason must be given',
      hint = 'The identity is what the pollers of this deployment claim with (STOPLINE_INSTALLATION).';
  end if;

  -- Two adoptions take turns; claims, which only read the table, go on.
  lock table stopline.installation in share row exclusive mode;
  v_now := stopline.clock();
  select * into v_home from stopline.installation i order by i.number desc limit 1;
  if not found then
    raise exception using
      errcode = 'SL002',
      message = 'adopt: this database belongs to nobody yet',
      hint = 'Run the migrator: its first run names the installation.';
  elsif v_home.identity = p_identity then
    return query select 'already_done', v_home.identity, v_home.id::text, v_home.first_job;
    return;
  end if;

  select min((e.after ->> 'first_job')::bigint)
    into v_first
    from stopline.event e
   where e.action = 'foreign_identity'
     and e.kind is null
     and e.job_id is null
     and e.at >= v_home.adopted_at;
  v_first := greatest(
    coalesce(v_first, stopline.next_job()),
    v_home.first_job,
    (select j.id + 1 from stopline.job j where j.fence > 0 order by j.id desc limit 1));

  insert into stopline.installation (identity, first_job, adopted_at, adopted_by, reason)
  values (p_identity, v_first, v_now, p_actor, p_reason)
  returning * into v_new;
  insert into stopline.event (at, action, actor, reason, before, after)
  values (v_now, 'adopted', p_actor, p_reason,
          jsonb_build_object('identity', v_home.identity, 'installation', v_home.id),
          jsonb_build_object('identity', v_new.identity, 'installation', v_new.id, 'first_job', v_first));
  return query select 'adopted', v_new.identity, v_new.id::text, v_first;
end
$$;
