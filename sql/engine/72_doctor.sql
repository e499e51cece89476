-- doctor: what a person checks before trusting a database, and after something went wrong. It reads and writes nothing.
-- One line a check: ok, warn (works, but look at it) or fail (a rule of Stopline does not hold here), and what to do.

-- One line. Without offenders it is ok; a few of them are named.
create or replace function stopline.finding(p_part text, p_name text, p_level text, p_offenders text[], p_ok text, p_fix text)
returns table (part text, name text, level text, found text, fix text)
language sql
immutable
set search_path = pg_catalog, stopline, pg_temp
as $$
  select p_part, p_name,
         case when cardinality(p_offenders) = 0 then 'ok' else p_level end,
         case when cardinality(p_offenders) = 0 then p_ok
              else array_to_string(p_offenders[1:5], ', ')
                   || case when cardinality(p_offenders) > 5 then format(' and %s more', cardinality(p_offenders) - 5) else '' end end,
         case when cardinality(p_offenders) > 0 then p_fix end
$$;

create or replace function stopline.doctor_clock()
returns table (part text, name text, level text, found text, fix text)
language plpgsql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  v_body text := (select trim(prosrc) from pg_proc where oid = 'stopline.clock()'::regprocedure);
  v_aurora boolean := exists (select from pg_roles where rolname = 'rds_superuser');
  v_place text;
begin
  if v_body = 'select pg_catalog.clock_timestamp()' then
    return query select 'clock', 'source of time', 'ok', 'the server''s own clock, which no setting moves', null::text;
  elsif v_body like '%stopline_local.clock%' then
    execute 'select format(''moved by %s'', shift) || case when frozen_at is null then '''' else '', frozen'' end from stopline_local.clock'
      into v_place;
    return query
      select 'clock', 'source of time', case when v_aurora then 'fail' else 'warn' end,
             format('the movable clock of `stopline local` (%s)', v_place),
             case when v_aurora then 'whoever moves it steps over limits: drop schema stopline_local as administrator and run the migrator'
                  else 'right for a local database and the tests, and for nothing else' end;
  else
    return query
      select 'clock', 'source of time', 'fail', 'stopline.clock() is neither the production clock nor the movable one',
             'run the migrator from the released files';
  end if;
end
$$;

create or replace function stopline.doctor_roles()
returns table (part text, name text, level text, found text, fix text)
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  with wanted (role, login) as (
    values ('stopline_owner', true), ('stopline_producer', true), ('stopline_worker', true), ('stopline_sweeper', true),
           ('stopline_monitor', true), ('stopline_operator', true), ('stopline_support', true), ('stopline_source', false)
  ), present as (
    select w.role, w.login, r.oid, r.rolcanlogin, r.rolconfig,
           r.rolsuper or r.rolcreaterole or r.rolcreatedb or r.rolreplication or r.rolbypassrls as mighty
      from wanted w
      left join pg_roles r on r.rolname = w.role
  ), membership as (
    -- From 16 on a membership may carry no power but to administer the role: the creator of a role has such a one.
    select m.roleid::regrole::text as role, m.member::regrole::text as member
      from pg_auth_members m
     where coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, true)
        or coalesce((to_jsonb(m) ->> 'set_option')::boolean, true)
  )
  select f.* from stopline.finding('roles', 'all exist', 'fail',
    array(select role from present where oid is null order by role), 'all eight',
    'run sql/bootstrap.sql again as the database''s administrator') f
  union all
  select f.* from stopline.finding('roles', 'log in as meant', 'fail',
    array(select role from present where rolcanlogin is distinct from login and oid is not null order by role),
    'seven log in, stopline_source does not', 'alter role ... login (stopline_source: nologin), as administrator') f
  union all
  select f.* from stopline.finding('roles', 'hold no power over the server', 'fail',
    array(select role from present where mighty order by role), 'none is a superuser or may make roles or databases',
    'alter role ... nosuperuser nocreaterole nocreatedb noreplication nobypassrls, as administrator') f
  union all
  select f.* from stopline.finding('roles', 'are members of nothing more', 'fail',
    array(select format('%s in %s', member, role) from membership
           where member in (select role from wanted)
             and role <> 'rds_iam'
             and not (member = 'stopline_owner' and role in ('stopline_source', 'pg_read_all_stats'))
           order by 1),
    'only what bootstrap.sql granted', 'revoke ... from ..., as administrator: a login role that is in another has both''s rights') f
  union all
  select f.* from stopline.finding('roles', 'have no other members', 'warn',
    array(select format('%s in %s', member, role) from membership
           where role in (select role from wanted)
             and role <> 'stopline_producer'
             and member not in (select role from wanted)
           order by 1),
    'nobody else may act as them; applications may be in stopline_producer',
    'revoke ... from ..., as administrator, unless it was meant') f
  union all
  select f.* from stopline.finding('roles', 'may sign in with IAM', 'fail',
    array(select role from present
           where login and oid is not null
             and exists (select from pg_roles where rolname = 'rds_iam')
             and not exists (select from membership m where m.role = 'rds_iam' and m.member = present.role)
           order by role),
    case when exists (select from pg_roles where rolname = 'rds_iam') then 'all login roles are in rds_iam'
         else 'not a server with IAM' end,
    'run sql/bootstrap.sql again as the database''s administrator: it grants rds_iam') f
  union all
  select f.* from stopline.finding('roles', 'bound statements, locks and idle transactions', 'warn',
    array(select format('%s: %s', p.role, s.setting)
            from present p, unnest(array['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']) as s(setting)
           where p.role in ('stopline_worker', 'stopline_sweeper', 'stopline_monitor', 'stopline_operator', 'stopline_support')
             and p.oid is not null
             and not exists (select from unnest(p.rolconfig) c where c like s.setting || '=%' and c <> s.setting || '=0')
           order by 1),
    'on each role that a function or a person uses', 'run sql/bootstrap.sql again as the database''s administrator') f
  union all
  select f.* from stopline.finding('roles', 'see other sessions', 'warn',
    array(select 'stopline_owner' where not pg_has_role('stopline_owner', 'pg_read_all_stats', 'usage')),
    'the age of the oldest transaction can be read',
    'grant pg_read_all_stats to stopline_owner, as administrator: until then OldestTransactionAge is not reported') f
$$;

create or replace function stopline.doctor_rights()
returns table (part text, name text, level text, found text, fix text)
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  with granted as (
    select 'function' as what, p.pronamespace::regnamespace || '.' || p.proname as thing, a.grantee, a.privilege_type as privilege, p.proowner as owner
      from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     where p.pronamespace in (select oid from pg_namespace where nspname in ('stopline', 'stopline_source'))
    union all
    select 'table', 'stopline.' || c.relname, a.grantee, a.privilege_type, c.relowner
      from pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
     where c.relnamespace = 'stopline'::regnamespace and c.relkind in ('r', 'v', 'm', 'p', 'f')
    union all
    select 'schema', n.nspname, a.grantee, a.privilege_type, n.nspowner
      from pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
     where n.nspname in ('stopline', 'stopline_source')
  ), theirs as (
    select what, thing, privilege, case when grantee = 0 then 'PUBLIC' else grantee::regrole::text end as grantee
      from granted
     where grantee <> owner
  )
  select f.* from stopline.finding('rights', 'nothing is everybody''s', 'fail',
    array(select format('%s %s', what, thing) from theirs where grantee = 'PUBLIC' order by 1),
    'PUBLIC has no right in the schemas', 'revoke all on ... from public, as stopline_owner') f
  union all
  select f.* from stopline.finding('rights', 'tables are closed', 'fail',
    array(select distinct format('%s to %s on %s', lower(privilege), grantee, thing) from theirs
           where what = 'table' and grantee <> 'PUBLIC'
             and not (grantee = 'stopline_support' and privilege = 'SELECT' and thing like 'stopline.support\_%')
           order by 1),
    'only stopline_support reads, and only its views', 'revoke ... on ... from ..., as stopline_owner: functions are the only way in') f
  union all
  select f.* from stopline.finding('rights', 'functions are called by their roles', 'warn',
    array(select distinct format('%s: %s', grantee, thing) from theirs
           where what = 'function' and grantee <> 'PUBLIC'
             and grantee not in ('stopline_owner', 'stopline_producer', 'stopline_worker', 'stopline_sweeper', 'stopline_monitor',
                                 'stopline_operator', 'stopline_support', 'stopline_source')
           order by 1),
    'no other role was given one', 'grant stopline_producer to an application''s role, and revoke execute from it') f
  union all
  select f.* from stopline.finding('rights', 'functions look into no foreign schema', 'fail',
    array(select p.pronamespace::regnamespace || '.' || p.proname from pg_proc p
           where p.pronamespace in (select oid from pg_namespace where nspname in ('stopline', 'stopline_source'))
             and p.prosecdef
             and not exists (select from unnest(p.proconfig) c
                              where c in ('search_path=pg_catalog, stopline, pg_temp', 'search_path=pg_catalog, pg_temp'))
           order by 1),
    'each that runs with its owner''s rights has a pinned search_path', 'run the migrator from the released files') f
$$;
