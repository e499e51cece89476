"""The guards: where each stands in `sql/`, what its removal leaves, and the tests that must notice."""

from typing import NamedTuple


class Guard(NamedTuple):
    """`old` is the first such text after `after` in `file`. `tests` are files or test ids under `tests/sql`."""

    name: str
    file: str
    after: str
    old: str
    new: str
    tests: tuple[str, ...]


CLAIM = "engine/30_claim.sql"
RETRY = "engine/31_retry.sql"
FINISH = "engine/32_finish.sql"
SWEEP = "engine/40_sweep.sql"
ADOPT = "engine/71_adopt.sql"
CHECKS = "engine/62_checks.sql"
TABLES = "migrations/0001_tables.sql"

IN_CLAIM = "function stopline.claim("
IN_CANDIDATE = "with candidate as materialized"
IN_LIMITS = "function stopline.limit_reached("
IN_END = "function stopline.end_attempt("
IN_LATE = "function stopline.finish_late("
IN_SUCCEED = "function stopline.succeed("
IN_FAIL = "function stopline.fail("
IN_RELEASE = "function stopline.release("
IN_SWEEP = "function stopline.sweep("
IN_DUE = "function stopline.due_checks("
IN_RECORD = "function stopline.record_check("
IN_JOB = "create table job ("

CLAIMS = ("test_claim.py",)
CAPS = ("test_claim.py", "test_caps.py")
MONEY = ("test_money.py", "test_caps.py")
FINISHES = ("test_finish.py",)
RELEASES = ("test_release.py",)
SWEEPS = ("test_sweep.py",)
ENQUEUES = ("test_enqueue.py",)
QUESTIONS = ("test_checks.py",)
FROZEN = (
    "test_worker_checks.py::test_a_frozen_pollers_not_applied_about_an_earlier_send_opens_no_retry",
    "test_worker_checks.py::test_a_second_unknown_outcome_of_a_round_is_a_question_of_its_own",
)
ADOPTIONS = ("test_adopt.py",)
REFUSES = ("test_database_refuses.py", "test_database_refuses_values.py")

GUARDS = (
    Guard("state check of the claim", CLAIM, IN_CANDIDATE, "and j.state = 'pending'", "", CLAIMS),
    Guard(
        "cap gate of the claim",
        CLAIM,
        IN_CANDIDATE,
        "and j.attempts < least(j.max_attempts, k.max_attempts)",
        "",
        CLAIMS,
    ),
    Guard(
        "deadline gate of the claim",
        CLAIM,
        IN_CANDIDATE,
        "(j.deadline_at is null or j.deadline_at > v_now)",
        "true",
        CLAIMS,
    ),
    Guard(
        "elapsed gate of the claim",
        CLAIM,
        IN_CANDIDATE,
        "(j.give_up_at is null or j.give_up_at > v_now)",
        "true",
        SWEEPS,
    ),
    Guard(
        "job budget gate of the claim",
        CLAIM,
        IN_CANDIDATE,
        "(k.per_job_usd is null or j.cost_usd + stopline.attempt_price(k) <= k.per_job_usd)",
        "true",
        MONEY,
    ),
    Guard("company of a job that crashed inline", CLAIM, IN_CANDIDATE, "and n.place <= n.company", "", SWEEPS),
    Guard("token of a repeated claim", CLAIM, IN_CLAIM, "j.claim_token = p_token) then", "false) then", CLAIMS),
    Guard(
        "wait of a repeat that overtakes its first call",
        CLAIM,
        IN_CLAIM,
        "perform pg_advisory_xact_lock(hashtextextended(p_token::text, 0));",
        "",
        CLAIMS,
    ),
    Guard("kind lock", CLAIM, IN_CLAIM, "for no key update;", ";", CLAIMS),
    Guard("limit on running jobs", CLAIM, IN_CLAIM, "k.concurrency - stopline.running(p_kind, v_now)", "1000", CAPS),
    Guard(
        "leases in the count of running jobs",
        "engine/21_tick.sql",
        "function stopline.running(",
        "and lease_until > p_now",
        "",
        CLAIMS,
    ),
    Guard("daily budget", CLAIM, IN_CLAIM, "least(v_take, stopline.affordable(k, v_now))", "v_take", MONEY),
    Guard("reservation", CLAIM, IN_CLAIM, "v_reserve := coalesce(k.per_attempt_usd, 0);", "v_reserve := 0;", MONEY),
    Guard("reservation kept by a crash", RETRY, IN_END, "v_spent := greatest(v_spent, j.reserved_usd);", "", MONEY),
    Guard("installation", CLAIM, IN_CLAIM, "p_installation is distinct from v_home.identity", "false", CLAIMS),
    Guard(
        "time that an attempt needs", CLAIM, IN_CLAIM, "v_seconds_left < stopline.seconds(k.timeout)", "false", CLAIMS
    ),
    Guard("fence of a success", FINISH, IN_SUCCEED, "where j.fence = r.fence", "where true", FINISHES),
    Guard("state check of a success", FINISH, IN_SUCCEED, "and j.state || '' = 'claimed'", "", FINISHES),
    Guard("fence of a failure", FINISH, IN_FAIL, "or j.fence <> p_fence", "", FINISHES),
    Guard("state check of a failure", FINISH, IN_FAIL, "or j.state <> 'claimed'", "", FINISHES),
    Guard("fence of a late success", FINISH, IN_LATE, "and j.fence = p_fence", "", FINISHES),
    Guard("late success of a release", FINISH, IN_LATE, "and a.outcome <> 'released'", "", RELEASES),
    Guard("trace that forbids a release", FINISH, IN_RELEASE, "j.effect_started_at is not null", "false", RELEASES),
    Guard(
        "bound on releases",
        FINISH,
        IN_RELEASE,
        "v_hand_back := j.releases < k.max_releases;",
        "v_hand_back := true;",
        RELEASES,
    ),
    Guard("backoff clamp", RETRY, "", "least(greatest(p_attempt, 1) - 1, 40)", "greatest(p_attempt, 1) - 1", FINISHES),
    Guard(
        "retry past the deadline",
        RETRY,
        IN_LIMITS,
        "when j.deadline_at <= p_due_at then 'deadline_passed'",
        "",
        FINISHES,
    ),
    Guard(
        "retry past the elapsed limit",
        RETRY,
        IN_LIMITS,
        "when j.give_up_at <= p_due_at then 'elapsed_limit'",
        "",
        FINISHES,
    ),
    Guard("crash cap", RETRY, IN_LIMITS, "when p_crashes >= k.max_crashes then 'crashes_exhausted'", "", FINISHES),
    Guard("unknown outcome of a crash", RETRY, IN_END, "v_unanswered and not k.idempotent", "false", FINISHES),
    Guard("cancel request at a failure", RETRY, IN_END, "j.cancel_requested_at is not null", "false", FINISHES),
    Guard("held key of a stopped job", RETRY, IN_END, "(v_stop is null or k.hold_key)", "v_stop is null", ENQUEUES),
    Guard("key index", TABLES, "", "create unique index job_key", "create index job_key", ENQUEUES),
    Guard("cap CHECK", TABLES, IN_JOB, "attempts between 0 and max_attempts", "attempts >= 0", REFUSES),
    Guard("reason CHECK", TABLES, IN_JOB, "state <> 'abandoned' or", "true or", REFUSES),
    Guard("lease CHECK", TABLES, IN_JOB, "state <> 'claimed' or", "true or", REFUSES),
    Guard("finish time CHECK", TABLES, IN_JOB, ") = (finished_at is not null)", ") is not null", REFUSES),
    Guard(
        "time domain", TABLES, "", "check (value >= timestamptz '2000-01-01 00:00:00+00' and", "check (true or", REFUSES
    ),
    Guard(
        "append-only audit",
        "engine/10_guards.sql",
        "",
        "before update or delete or truncate on",
        "before truncate on",
        REFUSES,
    ),
    Guard("settling time of a question", CHECKS, IN_DUE, "and j.next_check_at <= v_now", "", QUESTIONS),
    Guard("bound on questions", CHECKS, IN_DUE, "and j.checks < k.max_checks", "", QUESTIONS),
    Guard(
        "question is one poller's",
        CHECKS,
        IN_DUE,
        "next_check_at = v_now + v_lease",
        "next_check_at = v_now",
        QUESTIONS,
    ),
    Guard("question of a kind without the hook", CHECKS, IN_DUE, "not k.reconciles or", "", QUESTIONS),
    Guard(
        "question of another installation",
        CHECKS,
        IN_DUE,
        "p_installation is distinct",
        "false and p_installation is distinct",
        QUESTIONS,
    ),
    Guard("question's own number", CHECKS, IN_DUE, "coalesce(max(r.number), 0) + 1", "max(j.checks)", FROZEN),
    Guard("answer about an earlier send", CHECKS, IN_RECORD, "c.asked_at < j.claimed_at", "false", FROZEN),
    Guard("answer to an older question", CHECKS, IN_RECORD, "r.number > p_number", "false", QUESTIONS),
    Guard("answer after a person's decision", CHECKS, IN_RECORD, "(j.state = 'uncertain' or", "(true or", QUESTIONS),
    Guard("savepoint of each swept row", SWEEP, IN_SWEEP, "when others then", "when division_by_zero then", SWEEPS),
    Guard("skip of rows that others hold", SWEEP, IN_SWEEP, "for update skip locked", "for update", SWEEPS),
    Guard(
        "own effect keys of what a copy made",
        ADOPT,
        "v_first := greatest(",
        "coalesce(v_first, stopline.next_job())",
        "stopline.next_job()",
        ADOPTIONS,
    ),
    Guard(
        "kept effect keys of what was claimed",
        ADOPT,
        "v_first := greatest(",
        "(select j.id + 1 from stopline.job j where j.fence > 0 order by j.id desc limit 1)",
        "null",
        ADOPTIONS,
    ),
)
