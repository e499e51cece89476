-- A kind as people read it: its policy with spans in seconds, and its state.

create or replace function stopline.kind_summary(k stopline.kind)
returns jsonb
language sql
stable
set search_path = pg_catalog, stopline, pg_temp
as $$
  select to_jsonb(k) || jsonb_build_object(
    'max_elapsed', stopline.seconds(k.max_elapsed), 'deadline', stopline.seconds(k.deadline),
    'retry_base', stopline.seconds(k.retry_base), 'retry_cap', stopline.seconds(k.retry_cap),
    'run_every', stopline.seconds(k.run_every), 'timeout', stopline.seconds(k.timeout), 'margin', stopline.seconds(k.margin),
    'poller_timeout', stopline.seconds(k.poller_timeout), 'settle', stopline.seconds(k.settle),
    'review_within', stopline.seconds(k.review_within), 'reopen_window', stopline.seconds(k.reopen_window))
  || jsonb_build_object(
    'breaker_window', stopline.seconds(k.breaker_window), 'breaker_cooldown', stopline.seconds(k.breaker_cooldown),
    'breaker_max_cooldown', stopline.seconds(k.breaker_max_cooldown), 'due_age', stopline.seconds(k.due_age),
    'stuck_grace', stopline.seconds(k.stuck_grace), 'retain_succeeded', stopline.seconds(k.retain_succeeded),
    'retain_stopped', stopline.seconds(k.retain_stopped))
  || jsonb_build_object(
    'synced_at', stopline.iso(k.synced_at), 'retired_at', stopline.iso(k.retired_at), 'paused_at', stopline.iso(k.paused_at),
    'paused_until', stopline.iso(k.paused_until), 'probe_until', stopline.iso(k.probe_until),
    'breaker_reset_at', stopline.iso(k.breaker_reset_at))
$$;
