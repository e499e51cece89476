-- Who may call what. Re-applied with the engine: DROP and CREATE of a function gives EXECUTE back to PUBLIC.
-- No role but support may read a table or view, and support reads only its views.

alter default privileges for role stopline_owner revoke execute on functions from public;

revoke all on all functions in schema stopline from public;
revoke all on all functions in schema stopline
  from stopline_producer, stopline_worker, stopline_sweeper, stopline_monitor, stopline_operator, stopline_support,
       stopline_source;
revoke all on all tables in schema stopline
  from public, stopline_producer, stopline_worker, stopline_sweeper, stopline_monitor, stopline_operator, stopline_support;

grant usage on schema stopline
  to stopline_producer, stopline_worker, stopline_sweeper, stopline_monitor, stopline_operator, stopline_support;

grant execute on function
  stopline.enqueue(text, jsonb, text, integer, timestamptz, timestamptz, integer),
  stopline.enqueue_many(text, jsonb[], text[], integer[], timestamptz[], timestamptz[], integer[])
  to stopline_producer;

grant execute on function
  stopline.tick(text, timestamptz),
  stopline.claim(text, text, uuid, integer, double precision, text),
  stopline.succeed(bigint[], bigint[], jsonb[], numeric[]),
  stopline.fail(bigint, bigint, text, text, text, text, double precision, text, numeric),
  stopline.release(bigint, bigint, text),
  stopline.start_effect(bigint, bigint),
  stopline.count_step(bigint, bigint, integer),
  stopline.save_checkpoint(bigint, bigint, jsonb)
  to stopline_worker;

-- A source knows of a key only whether a job holds it.
grant usage on schema stopline to stopline_source;
grant execute on function stopline.holds_key(text, text) to stopline_source;

grant execute on function
  stopline.due_checks(text, text, integer, double precision, text),
  stopline.record_check(bigint, integer, integer, text, text)
  to stopline_worker;

grant execute on function
  stopline.cancel(bigint, text, text, text),
  stopline.replay(bigint, text, text, text, timestamptz),
  stopline.reconcile(bigint, text, text, text, text),
  stopline.acknowledge(bigint, text, text),
  stopline.release_key(bigint, text, text),
  stopline.pause_kind(text, text, text, timestamptz),
  stopline.resume_kind(text, text, text)
  to stopline_operator;

grant execute on function
  stopline.sweep(integer),
  stopline.purge(integer)
  to stopline_sweeper;

grant execute on function
  stopline.health(),
  stopline.reasons(text, timestamptz)
  to stopline_monitor;

grant execute on function
  stopline.health(),
  stopline.reasons(text, timestamptz),
  stopline.list_jobs(text, text, integer),
  stopline.show_job(bigint),
  stopline.list_kinds(),
  stopline.read_clock(),
  stopline.exposure(text),
  stopline.doctor()
  to stopline_operator;

grant select on stopline.support_job, stopline.support_attempt, stopline.support_event to stopline_support;
