-- The doctor's look at the tables: what guards them, what lies in them, and who works on them. These are the rules that
-- the engine keeps; a line here says that somebody wrote past it, or that a part of the deployment stands still.

create or replace function stopline.doctor_structure()
returns table (part text, name text, level text, found text, fix text)
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  with wanted_constraint (name) as (
    values ('attempts_stay_within_the_cap'), ('pending_row_is_below_its_cap'), ('abandoned_row_says_why'),
           ('claimed_row_has_a_lease'), ('terminal_row_has_a_finish_time'), ('terminal_row_has_a_stop_reason'),
           ('held_key_exists'), ('open_row_holds_its_key'), ('succeeded_row_frees_its_key'), ('cap_is_1_to_1000'),
           ('money_is_not_negative'), ('state_is_known')
  ), wanted_trigger (name) as (
    values ('job_pending_at_cap'), ('job_data_payload_size'), ('job_data_result_size'), ('job_data_checkpoint_size'),
           ('event_is_append_only')
  )
  select f.* from stopline.finding('structure', 'one open job a key', 'fail',
    array(select 'index job_key'
           where not exists (select from pg_index i
                              where i.indexrelid = to_regclass('stopline.job_key') and i.indisunique and i.indisvalid
                                and i.indpred is not null)),
    'the unique index on (kind, key) is there and valid',
    'end double holders of a key, then create unique index concurrently job_key on stopline.job (kind, key) where holds_key') f
  union all
  select f.* from stopline.finding('structure', 'indexes are valid', 'fail',
    array(select c.relname::text
            from pg_index i join pg_class c on c.oid = i.indexrelid
           where c.relnamespace = 'stopline'::regnamespace and not (i.indisvalid and i.indisready)
           order by 1),
    'all', 'reindex index concurrently ..., as stopline_owner, or run the migration that builds it again') f
  union all
  select f.* from stopline.finding('structure', 'the database refuses what it must', 'fail',
    array(select w.name from wanted_constraint w
           where not exists (select from pg_constraint c
                              where c.conrelid = 'stopline.job'::regclass and c.conname = w.name and c.convalidated)
          union all
          select c.conname::text from pg_constraint c
           where c.connamespace = 'stopline'::regnamespace and not c.convalidated
             and c.conname::text not in (select name from wanted_constraint)
           order by 1),
    'every constraint of a job is there and holds for all rows', 'put it back from sql/migrations, and validate it') f
  union all
  select f.* from stopline.finding('structure', 'triggers are on', 'fail',
    array(select w.name from wanted_trigger w
           where not exists (select from pg_trigger t join pg_class c on c.oid = t.tgrelid
                              where c.relnamespace = 'stopline'::regnamespace and t.tgname = w.name and t.tgenabled in ('O', 'A'))
           order by 1),
    'sizes, caps and the audit are guarded', 'alter table ... enable trigger ..., as stopline_owner') f
$$;

create or replace function stopline.doctor_rows(p_now timestamptz)
returns table (part text, name text, level text, found text, fix text)
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  select f.* from stopline.finding('rows', 'waiting rows are below their cap', 'fail',
    array(select 'job ' || j.id from stopline.job j where j.state = 'pending' and j.attempts >= j.max_attempts order by j.id),
    'all', 'they were written past the engine and rest for ever: cancel or replay them') f
  union all
  select f.* from stopline.finding('rows', 'claimed rows have a lease', 'fail',
    array(select 'job ' || j.id from stopline.job j
           where j.state = 'claimed' and (j.lease_until is null or j.claim_token is null) order by j.id),
    'all', 'they were written past the engine and nothing ends them: set lease_until, and the sweeper will') f
  union all
  select f.* from stopline.finding('rows', 'leases that ended were swept', 'fail',
    array(select 'job ' || j.id from stopline.job j join stopline.kind k on k.name = j.kind
           where j.state = 'claimed' and j.lease_until < p_now - k.stuck_grace order by j.id),
    'all', 'look at the sweeper: its schedule, its last errors') f
  union all
  select f.* from stopline.finding('rows', 'limits that passed were applied', 'warn',
    array(select 'job ' || o.job_id from stopline.overdue(1000, p_now - interval '10 minutes') o order by o.job_id),
    'no waiting row is past its deadline, elapsed time, money or cap', 'look at the sweeper: its schedule, its last errors') f
  union all
  select f.* from stopline.finding('rows', 'waiting rows can be paid', 'fail',
    array(select 'job ' || j.id from stopline.job j join stopline.kind k on k.name = j.kind
           where j.state = 'pending' and j.attempts = 0 and j.cost_usd + stopline.attempt_price(k) > k.per_job_usd
           order by j.id),
    'an attempt fits into what is left of the job''s money', 'no claim takes them and no sweep ends them: raise per_job_usd, or cancel them') f
  union all
  select f.* from stopline.finding('rows', 'waiting rows have a kind', 'fail',
    array(select format('job %s (%s)', j.id, j.kind) from stopline.job j
           where j.state = 'pending' and not exists (select from stopline.kind k where k.name = j.kind) order by j.id),
    'all', 'no poller will ever claim them: deploy the kind''s folder') f
  union all
  select f.* from stopline.finding('rows', 'retired kinds have run dry', 'warn',
    array(select format('%s (retired %s)', k.name, stopline.iso(k.retired_at)) from stopline.kind k
           where k.retired_at is not null
             and exists (select from stopline.job j where j.kind = k.name and j.state = 'pending')
           order by k.name),
    'no waiting row belongs to one', 'their rows rest until the folder is deployed again: cancel them if it will not be') f
  union all
  select f.* from stopline.finding('rows', 'pauses have an end', 'warn',
    array(select format('%s (since %s by %s: %s)', k.name, stopline.iso(k.paused_at), k.paused_by, k.paused_why) from stopline.kind k
           where k.paused_at is not null and k.paused_until is null order by k.name),
    'no kind is paused for good', 'resume it when the reason is gone') f
  union all
  select f.* from stopline.finding('rows', 'uncertain rows have a next step', 'fail',
    array(select 'job ' || j.id from stopline.job j
           where j.state = 'uncertain' and j.next_check_at is null and j.review_by is null order by j.id),
    'each is to be asked about or to be reviewed', 'nobody would ever be told: ask the receiver and settle them by hand') f
  union all
  select f.* from stopline.finding('rows', 'uncertain rows are reviewed in time', 'warn',
    array(select 'job ' || j.id from stopline.job j where j.state = 'uncertain' and j.review_by < p_now order by j.id),
    'all', 'ask the receiver about their effect keys: `stopline show ID`') f
  union all
  select f.* from stopline.finding('rows', 'open rows have their data', 'warn',
    array(select 'job ' || j.id from stopline.job j
           where j.finished_at is null and j.state in ('pending', 'claimed', 'uncertain')
             and not exists (select from stopline.job_data d where d.job_id = j.id) order by j.id),
    'all', 'their next claim abandons them as unreadable: enqueue the work again') f
  union all
  select f.* from stopline.finding('rows', 'no claim is missing from the log', 'fail',
    array(select 'job ' || j.id
            from (select id, fence from stopline.job where finished_at is not null order by id desc limit 1000) j
           where j.fence <> (select count(*) from stopline.attempt a where a.job_id = j.id)
           order by j.id),
    'the newest thousand stopped jobs have an attempt for each claim', 'attempts were deleted or fences written by hand') f
$$;

create or replace function stopline.doctor_running(p_now timestamptz)
returns table (part text, name text, level text, found text, fix text)
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  select 'installation', 'belongs to',
         case when i.number is null then 'fail' else 'ok' end,
         case when i.number is null then 'nobody' else format('%s, since %s by %s (%s)', i.identity, stopline.iso(i.adopted_at), i.adopted_by, i.reason) end,
         case when i.number is null then 'run the migrator: its first run names the installation' end
    from (select) as one
    left join (select * from stopline.installation order by number desc limit 1) i on true
  union all
  select f.* from stopline.finding('installation', 'no other deployment uses it', 'warn',
    array(select format('%s (first seen %s)', e.after ->> 'identity', stopline.iso(e.at)) from stopline.event e
           where e.action = 'foreign_identity' and e.kind is null and e.job_id is null
             and e.at >= (select max(adopted_at) from stopline.installation)
           order by e.id),
    'none has deployed to it', 'its claims are refused: stop it, or give the database to it with `stopline adopt`') f
  union all
  select 'pollers', k.name,
         case when not (h.health ->> 'poller_silent')::boolean then 'ok' when (h.health ->> 'due')::bigint > 0 then 'fail' else 'warn' end,
         coalesce('last heard of ' || stopline.iso(b.at), 'never heard of') || format(', %s due', h.health ->> 'due'),
         case when (h.health ->> 'poller_silent')::boolean then 'look at its schedule and its last errors; locally, start `stopline local`' end
    from stopline.kind k
    left join stopline.heartbeat b on b.who = 'poller:' || k.name,
         lateral (select stopline.kind_health(k, p_now) as health) h
   where k.retired_at is null
  union all
  select 'sweeper', 'runs',
         case when coalesce(b.at >= p_now - interval '5 minutes', false) then 'ok' else 'warn' end,
         coalesce('last heard of ' || stopline.iso(b.at), 'never heard of'),
         case when coalesce(b.at < p_now - interval '5 minutes', true) then 'look at its schedule and its last errors; locally, start `stopline local`' end
    from (select) as one
    left join stopline.heartbeat b on b.who = 'sweeper'
$$;
