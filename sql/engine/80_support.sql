-- What support may read: rows without payloads, results, checkpoints and error texts.

create or replace view stopline.support_job as
select id, kind, key, holds_key, state, priority, attempts, max_attempts, crashes, releases, round, fence, cost_usd, steps,
       due_at, due_rule, created_at, round_started_at, give_up_at, deadline_at, claimed_by, claimed_at, lease_until,
       effect_started_at, cancel_requested_at, last_outcome, last_error_class, last_fingerprint, stop_reason, finished_at,
       acknowledged_at, checks, next_check_at, review_by
  from stopline.job;

create or replace view stopline.support_attempt as
select job_id, fence, kind, round, attempt, started_at, finished_at, worker, outcome, error_class, fingerprint, cost_usd,
       steps, next_due_at, late_outcome, late_at
  from stopline.attempt;

create or replace view stopline.support_event as
select id, at, kind, job_id, action, actor
  from stopline.event;
