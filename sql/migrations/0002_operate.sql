-- What reconciliation, the breaker and people's requests need beside the first tables.

-- Whether the kind's code can ask its receiver; set by the deploy, which finds the hook in the handler.
alter table kind add column reconciles boolean not null default false;
-- How many cool-downs in a row the breaker has opened; it resumes at 0.
alter table kind add column breaker_level integer not null default 0;
alter table kind add constraint breaker_level_is_not_negative check (breaker_level >= 0);

-- The one attempt that is let through while the breaker is open, and since when failures count again.
alter table kind add column probe_job bigint;
alter table kind add column probe_fence bigint;
alter table kind add column breaker_reset_at instant;

-- A check is written when it is handed out, so that one whose process dies is still counted and shown.
alter table reconcile_check add column answered_at instant;
alter table reconcile_check alter column worker set default '';

-- Jobs whose receiver is to be asked: uncertain ones, and stopped ones whose replay was requested.
create index job_next_check on job (kind, next_check_at) where next_check_at is not null;

-- The breaker reads the failures of the last minutes and nothing else.
create index attempt_failed on attempt (kind, finished_at) where outcome in ('transient', 'uncertain', 'permanent');
