-- What the database refuses whoever writes, where a CHECK cannot say it: a message that names the fix, sizes that are
-- looked at only when the value is written, and an audit that only grows.

create or replace function stopline.refuse_pending_at_cap()
returns trigger
language plpgsql
set search_path = pg_catalog, stopline, pg_temp
as $$
begin
  raise exception using
    errcode = '23514',
    constraint = 'pending_row_is_below_its_cap',
    message = format('job %s (%s) has used %s of %s attempts and cannot be pending', new.id, new.kind, new.attempts, new.max_attempts),
    hint = 'To run it again, call stopline.replay: it opens a new round, keeps the history and writes the audit.';
end
$$;

-- One function for the three sizes: the trigger names the column and its limit in bytes of JSON text.
create or replace function stopline.refuse_oversize()
returns trigger
language plpgsql
set search_path = pg_catalog, stopline, pg_temp
as $$
declare
  v_column text := tg_argv[0];
  v_limit integer := tg_argv[1]::integer;
  v_bytes integer := octet_length(case v_column
    when 'payload' then new.payload
    when 'result' then new.result
    else new.checkpoint end::text);
begin
  if v_bytes > v_limit then
    raise exception using
      errcode = '23514',
      constraint = v_column || '_is_bounded',
      message = format('%s of job %s: %s bytes as JSON text; the limit is %s bytes', v_column, new.job_id, v_bytes, v_limit),
      hint = 'Store the data elsewhere and keep a reference to it.';
  end if;
  return new;
end
$$;

create or replace function stopline.refuse_change_of_event()
returns trigger
language plpgsql
set search_path = pg_catalog, stopline, pg_temp
as $$
begin
  raise exception using
    errcode = '23001',
    message = format('stopline.event is append-only: %s is refused', lower(tg_op)),
    hint = 'The audit outlives its jobs. Write a new event that corrects the old one.';
end
$$;

-- Made only where it is missing: making a trigger waits for every transaction that has written to the table, and every
-- claim would wait behind it, at each deploy.
create or replace function stopline.ensure_trigger(p_name text, p_table text, p_rest text)
returns void
language plpgsql
set search_path = pg_catalog, stopline, pg_temp
as $$
begin
  if not exists (select from pg_trigger where tgrelid = p_table::regclass and tgname = p_name) then
    execute format('create trigger %I %s', p_name, p_rest);
  end if;
end
$$;

select stopline.ensure_trigger('job_pending_at_cap', 'stopline.job', $trigger$
  before insert or update on stopline.job
  for each row
  when (new.state = 'pending' and new.attempts >= new.max_attempts)
  execute function stopline.refuse_pending_at_cap()
$trigger$);

select stopline.ensure_trigger('job_data_payload_size', 'stopline.job_data', $trigger$
  before insert or update of payload on stopline.job_data
  for each row execute function stopline.refuse_oversize('payload', '262144')
$trigger$);

select stopline.ensure_trigger('job_data_result_size', 'stopline.job_data', $trigger$
  before insert or update of result on stopline.job_data
  for each row when (new.result is not null)
  execute function stopline.refuse_oversize('result', '65536')
$trigger$);

select stopline.ensure_trigger('job_data_checkpoint_size', 'stopline.job_data', $trigger$
  before insert or update of checkpoint on stopline.job_data
  for each row when (new.checkpoint is not null)
  execute function stopline.refuse_oversize('checkpoint', '65536')
$trigger$);

select stopline.ensure_trigger('event_is_append_only', 'stopline.event', $trigger$
  before update or delete or truncate on stopline.event
  for each statement execute function stopline.refuse_change_of_event()
$trigger$);
