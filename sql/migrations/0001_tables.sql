-- The tables. A job is one row of `job`; its bulky data lies beside it in `job_data`, so that claims and finishes
-- never rewrite a payload. An attempt is written once, when it ends; while it is open it lives in the job row.
--
-- Flow: enqueue inserts job and job_data -> claim counts and leases -> succeed, fail, release or sweep end the attempt
-- (one `attempt` row) and move the job. Every move is a function in engine/; the constraints here hold whoever writes.
--
-- No foreign keys: only functions of this schema write these tables, job with job_data always together, and kinds are
-- never deleted. A key would cost a look-up for every attempt, and a shared lock on the kind row that claims lock.

create domain instant as timestamptz
  constraint instant_is_between_2000_and_9999
  check (value >= timestamptz '2000-01-01 00:00:00+00' and value < timestamptz '9999-12-31 00:00:00+00');

create domain usd as numeric(12, 6)
  constraint money_is_a_number check (value <> 'NaN'::numeric);

create table kind (
  name                  text primary key,
  owner                 text not null,
  description           text not null,
  idempotent            boolean not null,
  effect                text not null,
  hold_key              boolean not null,
  max_payload           integer not null,
  max_attempts          integer not null,
  max_crashes           integer not null,
  max_releases          integer not null,
  max_elapsed           interval,
  deadline              interval,
  retry_base            interval not null,
  retry_cap             interval not null,
  run_every             interval not null,
  timeout               interval not null,
  margin                interval not null,
  poller_timeout        interval not null,
  concurrency           integer,
  children              integer not null,
  batch                 integer not null,
  memory_mb             integer not null,
  isolation             text not null,
  poller                text not null,
  per_attempt_usd       usd,
  calls_per_attempt     integer not null,
  per_job_usd           usd,
  daily_budget_usd      usd,
  max_steps             integer,
  per_step_usd          usd,
  settle                interval not null,
  max_checks            integer not null,
  review_within         interval not null,
  rows_per_tick         integer not null,
  max_reopens           integer not null,
  reopen_window         interval not null,
  schedule              text,
  timezone              text,
  breaker_window        interval not null,
  breaker_jobs          integer not null,
  breaker_share         numeric not null,
  breaker_cooldown      interval not null,
  breaker_max_cooldown  interval not null,
  due_age               interval not null,
  stuck_grace           interval not null,
  own_metrics           boolean not null,
  retain_succeeded      interval not null,
  retain_stopped        interval not null,
  synced_at             instant not null,
  retired_at            instant,
  paused_at             instant,
  paused_until          instant,
  paused_by             text,
  paused_why            text,
  probe_until           instant,
  -- The one attempt that is let through while the breaker is open, how many cool-downs in a row it has opened, and since
  -- when failures count again.
  probe_job             bigint,
  probe_fence           bigint,
  breaker_level         integer not null default 0,
  breaker_reset_at      instant,
  -- Whether the kind's code can ask its receiver; set by the deploy, which finds the hook in the handler.
  reconciles            boolean not null default false,
  constraint kind_name_is_a_folder_name check (name ~ '^[a-z][a-z0-9_]{0,47}$'),
  constraint kind_effect_is_known check (effect in ('whole_attempt', 'stamped')),
  constraint kind_isolation_is_known check (isolation in ('process', 'inline')),
  constraint kind_cap_is_in_range check (max_attempts between 1 and 1000),
  constraint kind_counts_are_positive check (
    max_crashes >= 1 and max_releases >= 0 and children >= 1 and batch >= 1 and calls_per_attempt >= 0
    and max_checks >= 1 and rows_per_tick >= 1 and max_reopens >= 0
    and (concurrency is null or concurrency >= 1) and (max_steps is null or max_steps >= 1)),
  constraint kind_breaker_share_is_a_share check (breaker_share > 0 and breaker_share <= 1),
  constraint kind_payload_is_in_range check (max_payload between 1 and 262144),
  constraint kind_money_is_not_negative check (
    coalesce(per_attempt_usd, 0) >= 0 and coalesce(per_job_usd, 0) >= 0
    and coalesce(daily_budget_usd, 0) >= 0 and coalesce(per_step_usd, 0) >= 0),
  -- A job that cannot pay its first attempt would wait for ever.
  constraint kind_budgets_pay_an_attempt check (
    coalesce(per_attempt_usd, 0) + coalesce(per_step_usd, 0) <= least(per_job_usd, daily_budget_usd)),
  constraint breaker_level_is_not_negative check (breaker_level >= 0),
  constraint kind_pause_says_who_and_why check (
    paused_at is null or (paused_by is not null and paused_why is not null))
);

create table job (
  id                   bigint generated by default as identity primary key,
  kind                 text not null,
  key                  text,
  holds_key            boolean not null default false,
  state                text not null default 'pending',
  priority             integer not null default 1,
  attempts             integer not null default 0,
  max_attempts         integer not null,
  crashes              integer not null default 0,
  releases             integer not null default 0,
  round                integer not null default 1,
  fence                bigint not null default 0,
  cost_usd             usd not null default 0,
  reserved_usd         usd not null default 0,
  steps                integer not null default 0,
  attempt_steps        integer not null default 0,
  due_at               instant not null,
  due_rule             text not null default 'enqueue',
  created_at           instant not null,
  round_started_at     instant,
  give_up_at           instant,
  deadline_at          instant,
  claim_token          uuid,
  claimed_by           text,
  claimed_at           instant,
  lease_until          instant,
  effect_started_at    instant,
  cancel_requested_at  instant,
  last_outcome         text,
  last_error_class     text,
  last_error           text,
  last_fingerprint     text,
  stop_reason          text,
  finished_at          instant,
  acknowledged_at      instant,
  checks               integer not null default 0,
  next_check_at        instant,
  review_by            instant,
  replay_by            text,
  replay_why           text,
  constraint state_is_known check (
    state in ('pending', 'claimed', 'uncertain', 'succeeded', 'abandoned', 'cancelled')),
  constraint priority_is_0_to_3 check (priority between 0 and 3),
  constraint cap_is_1_to_1000 check (max_attempts between 1 and 1000),
  constraint attempts_stay_within_the_cap check (attempts between 0 and max_attempts),
  constraint pending_row_is_below_its_cap check (state <> 'pending' or attempts < max_attempts),
  constraint counters_are_not_negative check (
    crashes >= 0 and releases >= 0 and round >= 1 and fence >= 0 and steps >= 0 and attempt_steps >= 0 and checks >= 0),
  constraint money_is_not_negative check (cost_usd >= 0 and reserved_usd >= 0),
  constraint due_rule_is_known check (
    due_rule in ('enqueue', 'backoff', 'retry_after', 'budget', 'breaker', 'check')),
  constraint outcome_is_known check (
    last_outcome in ('succeeded', 'transient', 'permanent', 'uncertain', 'timeout', 'crashed', 'released')),
  constraint stop_reason_is_known check (
    stop_reason in ('completed', 'attempts_exhausted', 'crashes_exhausted', 'permanent_failure', 'elapsed_limit',
                    'deadline_passed', 'budget_exhausted', 'step_limit', 'reopen_limit', 'cancelled', 'unreadable')),
  constraint abandoned_row_says_why check (
    state <> 'abandoned' or (stop_reason is not null and last_error is not null and last_error <> '')),
  constraint claimed_row_has_a_lease check (
    state <> 'claimed' or (claim_token is not null and claimed_by is not null
                           and claimed_at is not null and lease_until is not null)),
  constraint terminal_row_has_a_finish_time check (
    (state in ('succeeded', 'abandoned', 'cancelled')) = (finished_at is not null)),
  constraint terminal_row_has_a_stop_reason check (
    (state in ('succeeded', 'abandoned', 'cancelled')) = (stop_reason is not null)),
  constraint key_is_1_to_512_bytes check (octet_length(key) between 1 and 512),
  constraint held_key_exists check (not holds_key or key is not null),
  constraint open_row_holds_its_key check (
    key is null or holds_key or state in ('succeeded', 'abandoned', 'cancelled')),
  constraint succeeded_row_frees_its_key check (state <> 'succeeded' or not holds_key),
  constraint names_are_bounded check (octet_length(claimed_by) <= 800 and octet_length(last_fingerprint) <= 256),
  constraint error_text_is_bounded check (octet_length(last_error) <= 8192 and octet_length(last_error_class) <= 200)
) with (
  -- A queue table turns over completely: clean up after a fixed number of dead rows, not after a share of history.
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0
);

-- Claims walk this index per priority, in claim order. lease_until is in no index: it would cost every update.
create index job_due on job (kind, priority, due_at, id) where state = 'pending';
-- Age of the oldest waiting row, without counting the others.
create index job_waiting on job (kind, created_at) where state = 'pending';
-- Rows that a lowered cap or a job budget may have stopped.
create index job_retrying on job (kind, attempts) where state = 'pending' and attempts > 0;
create index job_last_attempt on job (kind) where state = 'pending' and attempts = max_attempts - 1;
create index job_deadline on job (deadline_at) where state = 'pending' and deadline_at is not null;
create index job_give_up on job (give_up_at) where state = 'pending' and give_up_at is not null;
-- A repeated claim finds its rows by token; running rows of a kind are counted by the prefix; the sweep reads it all.
create index job_claimed on job (kind, claim_token) where state = 'claimed';
create index job_uncertain on job (kind, review_by) where state = 'uncertain';
-- Jobs whose receiver is to be asked: uncertain ones, and stopped ones whose replay was requested.
create index job_next_check on job (kind, next_check_at) where next_check_at is not null;
create index job_abandoned on job (kind, finished_at) where state = 'abandoned';
create index job_unacknowledged on job (kind) where state = 'abandoned' and acknowledged_at is null;
-- Retention.
create index job_finished on job (kind, finished_at) where state in ('succeeded', 'cancelled');
-- One open or held job for each key of a kind.
create unique index job_key on job (kind, key) where holds_key;

create table job_data (
  job_id            bigint primary key,
  payload           jsonb not null,
  result            jsonb,
  checkpoint        jsonb,
  checkpoint_fence  bigint
) with (autovacuum_vacuum_scale_factor = 0.05);

create table attempt (
  job_id        bigint not null,
  fence         bigint not null,
  kind          text not null,
  round         integer not null,
  attempt       integer not null,
  started_at    instant not null,
  finished_at   instant not null,
  worker        text not null,
  outcome       text not null,
  error_class   text,
  error         text,
  fingerprint   text,
  cost_usd      usd not null default 0,
  steps         integer not null default 0,
  next_due_at   instant,
  late_outcome  text,
  late_error    text,
  late_at       instant,
  primary key (job_id, fence),
  constraint attempt_outcome_is_known check (
    outcome in ('succeeded', 'transient', 'permanent', 'uncertain', 'timeout', 'crashed', 'released')
    and late_outcome in ('succeeded', 'transient', 'permanent', 'uncertain', 'timeout', 'crashed', 'released')),
  constraint attempt_cost_is_not_negative check (cost_usd >= 0),
  constraint attempt_says_why check (outcome = 'succeeded' or (error is not null and error <> '')),
  constraint attempt_error_is_bounded check (
    octet_length(error) <= 8192 and octet_length(error_class) <= 200 and octet_length(late_error) <= 8192)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2);

-- The breaker reads the failures of the last minutes and nothing else.
create index attempt_failed on attempt (kind, finished_at) where outcome in ('transient', 'uncertain', 'permanent');

-- A question is written when it is handed out, so that one whose process dies is still counted and shown.
create table reconcile_check (
  job_id       bigint not null,
  number       integer not null,
  round        integer not null,
  asked_at     instant not null,
  worker       text not null,
  answer       text not null,
  detail       text,
  answered_at  instant,
  primary key (job_id, round, number),
  constraint answer_is_known check (answer in ('applied', 'not_applied', 'unknown'))
);

create table event (
  id               bigint generated always as identity primary key,
  at               instant not null,
  kind             text,
  job_id           bigint,
  action           text not null,
  actor            text not null,
  reason           text,
  effects_checked  text,
  before           jsonb,
  after            jsonb
);

create index event_of_job on event (job_id, id) where job_id is not null;
create index event_of_kind on event (kind, id) where job_id is null;

create table spend (
  kind  text not null,
  day   date not null,
  usd   numeric(14, 6) not null default 0,
  primary key (kind, day),
  constraint spend_is_not_negative check (usd >= 0 and usd <> 'NaN'::numeric)
) with (fillfactor = 50);

-- When a poller or the sweeper was last heard of. Apart from `kind`, whose rows claims lock.
create table heartbeat (
  who  text primary key,
  at   instant not null
) with (fillfactor = 50);

-- How often a source has opened a key within its window.
create table source_key (
  kind             text not null,
  key              text not null,
  first_opened_at  instant not null,
  opens            integer not null,
  primary key (kind, key)
);

-- Scheduled times that have been enqueued: a schedule that is delivered twice makes one job.
create table occurrence (
  kind           text not null,
  scheduled_for  instant not null,
  created_at     instant not null,
  primary key (kind, scheduled_for)
);

-- Which database this is. A claim must name the newest identity; a job's effect key uses the row in force when it was made.
create table installation (
  number      integer generated always as identity primary key,
  id          uuid not null default gen_random_uuid(),
  identity    text not null,
  first_job   bigint not null,
  adopted_at  instant not null,
  adopted_by  text not null,
  reason      text not null
);
