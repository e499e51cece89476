-- Roles and schemas, once per database, as its administrator (a superuser, or a CREATEROLE master as on Aurora).
--
-- Every login role belongs to one kind of process: it may call that process's functions and touch no table.
-- stopline_owner owns the schema and is what the migrator connects as; it is never a member of a login role.
-- stopline_source cannot log in: it owns the wrapped sources and reads only what the application grants to it.
-- Running this file again changes nothing.

do $roles$
declare
  v_role text;
  v_login boolean;
begin
  for v_role, v_login in
    select * from (values
      ('stopline_owner', true),
      ('stopline_producer', true),
      ('stopline_worker', true),
      ('stopline_sweeper', true),
      ('stopline_monitor', true),
      ('stopline_operator', true),
      ('stopline_support', true),
      ('stopline_source', false)) as r(name, login)
  loop
    begin
      if not exists (select from pg_catalog.pg_roles where rolname = v_role) then
        execute format('create role %I %s', v_role, case when v_login then 'login' else 'nologin' end);
      end if;
    exception when duplicate_object or unique_violation then
      null; -- roles belong to the cluster: another database's bootstrap made it first
    end;
    if v_login and exists (select from pg_catalog.pg_roles where rolname = 'rds_iam')
       and not pg_catalog.pg_has_role(v_role, 'rds_iam', 'member') then
      execute format('grant rds_iam to %I', v_role);
    end if;
  end loop;
end
$roles$;

-- The owner makes functions that stopline_source owns, so it may become it; where the server can, it inherits nothing.
do $source$
begin
  if not pg_catalog.pg_has_role('stopline_owner', 'stopline_source', 'member') then
    if current_setting('server_version_num')::int >= 160000 then
      execute 'grant stopline_source to stopline_owner with inherit false, set true';
    else
      execute 'grant stopline_source to stopline_owner';
    end if;
  end if;
end
$source$;

-- The monitor reports the oldest transaction of any session; a role without this right sees only its own.
do $stats$
begin
  if not pg_catalog.pg_has_role('stopline_owner', 'pg_read_all_stats', 'member') then
    execute 'grant pg_read_all_stats to stopline_owner';
  end if;
exception when insufficient_privilege then
  raise notice 'stopline_owner may not read other sessions: OldestTransactionAge will not be reported. Grant pg_read_all_stats to stopline_owner as an administrator.';
end
$stats$;

do $schemas$
declare
  v_superuser boolean := (select rolsuper from pg_catalog.pg_roles where rolname = current_user);
begin
  if not v_superuser then
    execute format('grant stopline_owner, stopline_source to %I', current_user);
  end if;
  if pg_catalog.to_regnamespace('stopline') is null then
    execute 'create schema stopline authorization stopline_owner';
  end if;
  if pg_catalog.to_regnamespace('stopline_source') is null then
    execute 'create schema stopline_source authorization stopline_source';
  end if;
  execute 'grant usage on schema stopline_source to stopline_owner';
  if not v_superuser then
    execute format('revoke stopline_owner, stopline_source from %I', current_user);
  end if;
end
$schemas$;

-- Limits live on the roles because a proxy refuses them as start-up options. They are not inherited by members.
do $limits$
declare
  v_role text;
  v_statement text;
begin
  for v_role, v_statement in
    select * from (values
      ('stopline_worker', '10s'),
      ('stopline_sweeper', '50s'),
      ('stopline_monitor', '20s'),
      ('stopline_operator', '25s'),
      ('stopline_support', '25s')) as r(name, statement)
  loop
    execute format('alter role %I set statement_timeout = %L', v_role, v_statement);
    execute format('alter role %I set lock_timeout = %L', v_role, '5s');
    execute format('alter role %I set idle_in_transaction_session_timeout = %L', v_role, '60s');
    execute format('alter role %I set default_transaction_isolation = %L', v_role, 'read committed');
    execute format('alter role %I set timezone = %L', v_role, 'UTC');
    -- Calls are short and many: compiling a plan costs more than it saves.
    execute format('alter role %I set jit = %L', v_role, 'off');
  end loop;
end
$limits$;
