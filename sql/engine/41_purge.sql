-- Deletes succeeded and cancelled jobs past their kind's retention, with their data, attempts and checks. Never an
-- abandoned, uncertain or key-holding one: those wait for a person. Events stay.

create or replace function stopline.purge(p_limit integer default 5000)
returns table (what text, removed integer)
language plpgsql
volatile
security definer
set search_path = pg_catalog, stopline, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := stopline.clock();
  v_ids bigint[];
  v_attempts integer;
  v_keys integer;
  v_occurrences integer;
begin
  select coalesce(array_agg(x.id), '{}')
    into v_ids
    from (
    select o.id
      from stopline.kind k,
           lateral (
             select j.id
               from stopline.job j
              where j.kind = k.name
                and j.state in ('succeeded', 'cancelled')
                and j.finished_at < v_now - least(k.retain_succeeded, k.retain_stopped)
                and (j.state <> 'succeeded' or j.finished_at < v_now - k.retain_succeeded)
                and (j.state <> 'cancelled' or j.finished_at < v_now - k.retain_stopped)
                and not j.holds_key
              order by j.finished_at
              limit p_limit
                for update skip locked) o
     limit p_limit) x;

  -- By an array of ids: joined to a limited query of unknown yield, the table would be read whole.
  delete from stopline.job where id = any (v_ids);
  delete from stopline.job_data where job_id = any (v_ids);
  delete from stopline.reconcile_check where job_id = any (v_ids);
  delete from stopline.attempt where job_id = any (v_ids);
  get diagnostics v_attempts = row_count;

  delete from stopline.source_key s
   using (select ctid from stopline.source_key sk
           where sk.first_opened_at < v_now - coalesce((select reopen_window from stopline.kind where name = sk.kind), interval '0')
           limit p_limit) o
   where s.ctid = o.ctid;
  get diagnostics v_keys = row_count;

  -- Schedulers drop an event long before a week has passed, so an older occurrence cannot be delivered again.
  delete from stopline.occurrence o
   using (select ctid from stopline.occurrence where scheduled_for < v_now - interval '7 days' limit p_limit) x
   where o.ctid = x.ctid;
  get diagnostics v_occurrences = row_count;

  return query values ('jobs', cardinality(v_ids)), ('attempts', v_attempts), ('source_keys', v_keys), ('occurrences', v_occurrences);
end
$$;
