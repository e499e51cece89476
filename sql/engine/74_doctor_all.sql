-- doctor: all checks of the database in one call, and how the deployed policies differ from what it holds.

-- What the deployed code would say to the database (versions, policies) is the caller's to compare.
create or replace function stopline.doctor()
returns table (part text, name text, level text, found text, fix text)
language plpgsql
stable
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  v_now timestamptz := stopline.clock();
begin
  return query select * from stopline.doctor_clock();
  return query select * from stopline.doctor_roles();
  return query select * from stopline.doctor_rights();
  return query select * from stopline.doctor_structure();
  return query select * from stopline.doctor_rows(v_now);
  return query select * from stopline.doctor_running(v_now);
end
$$;

-- How the deployed policies differ from what the database holds: what the next sync would change.
create or replace function stopline.policy_drift(p_policies jsonb)
returns table (kind text, drift text)
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  with deployed as (
    select p ->> 'name' as name, p as policy, to_jsonb(stopline.policy_row(p, stopline.clock())) as row
      from jsonb_array_elements(p_policies) p
  )
  select d.name,
         case when k.name is null then 'is not in the database'
              when k.retired_at is not null then 'is retired in the database'
              else (select string_agg(format('%s is %s in the database and %s in the code', e.key, k.row -> e.key, e.value), ', ' order by e.key)
                      from jsonb_each(d.row) e
                     where d.policy ? e.key and e.value is distinct from k.row -> e.key) end
    from deployed d
    left join (select n.name, n.retired_at, to_jsonb(n) as row from stopline.kind n) k on k.name = d.name
  union all
  select n.name, 'is in the database and not in the code'
    from stopline.kind n
   where n.retired_at is null and n.name not in (select name from deployed)
$$;
