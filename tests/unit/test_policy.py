import dataclasses
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from stopline.errors import PolicyError
from stopline.policy import Policy, load_policies, load_policy, overlay, parse_policy, worst_case
from stopline.policy.keys import declared_keys
from stopline.policy.reference import reference

FILE = "lambdas/jobs/close_conversation/policy.toml"
TOP = {"owner": "support-team", "description": "Closes idle conversations.", "idempotent": True}
RUN = {"timeout": "1m"}


def toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(inner) for inner in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def text_of(**sections: Any) -> str:
    """A policy file with the required keys, changed by sections; `top` holds the keys above them."""
    merged = {"top": TOP | sections.pop("top", {}), "run": RUN | sections.pop("run", {}), **sections}
    lines = []
    for name, keys in merged.items():
        lines += [f"[{name}]"] if name != "top" else []
        lines += [f"{key} = {toml(value)}" for key, value in keys.items() if value is not None]
    return "\n".join(lines)


def policy_of(**sections: Any) -> Policy:
    return parse_policy("close_conversation", text_of(**sections), FILE)


def refused(**sections: Any) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        policy_of(**sections)
    assert caught.value.file == FILE
    assert str(caught.value).startswith(f"{FILE}: {caught.value.key}: ")
    return caught.value


def test_the_shortest_policy_has_the_defaults_of_the_design() -> None:
    policy = policy_of()
    assert (policy.limits.max_attempts, policy.limits.max_crashes, policy.limits.max_releases) == (5, 2, 20)
    assert (policy.retry.base, policy.retry.cap) == (timedelta(seconds=30), timedelta(minutes=15))
    assert (policy.run.margin, policy.run.isolation, policy.run.children) == (timedelta(seconds=15), "process", 1)
    assert policy.run.poller_timeout == timedelta(seconds=85)
    assert policy.run.concurrency is None
    assert policy.hold_key is True
    assert policy.effect == "whole_attempt"
    assert policy.max_payload == 262_144
    assert policy.lease == timedelta(seconds=75)
    assert policy.poller_name == "close_conversation"


def test_the_poller_lives_a_minute_at_least() -> None:
    assert policy_of(run={"timeout": "5s"}).run.poller_timeout == timedelta(minutes=1)


def test_money_is_read_exactly_as_it_is_written() -> None:
    cost = policy_of(cost={"per_attempt_usd": 0.1, "per_job_usd": "0.300000", "daily_budget_usd": 5}).cost
    assert cost.per_attempt_usd == Decimal("0.1")
    assert cost.per_job_usd == Decimal("0.3")
    assert cost.daily_budget_usd == Decimal(5)


COLUMNS = [
    "name",
    "reconciles",
    "owner",
    "description",
    "idempotent",
    "effect",
    "hold_key",
    "max_payload",
    "max_attempts",
    "max_crashes",
    "max_releases",
    "max_elapsed",
    "deadline",
    "retry_base",
    "retry_cap",
    "run_every",
    "timeout",
    "margin",
    "poller_timeout",
    "concurrency",
    "children",
    "batch",
    "memory_mb",
    "isolation",
    "poller",
    "per_attempt_usd",
    "calls_per_attempt",
    "per_job_usd",
    "daily_budget_usd",
    "max_steps",
    "per_step_usd",
    "settle",
    "max_checks",
    "review_within",
    "rows_per_tick",
    "max_reopens",
    "reopen_window",
    "schedule",
    "timezone",
    "breaker_window",
    "breaker_jobs",
    "breaker_share",
    "breaker_cooldown",
    "breaker_max_cooldown",
    "due_age",
    "stuck_grace",
    "own_metrics",
    "retain_succeeded",
    "retain_stopped",
]


def test_a_row_has_exactly_the_columns_of_the_kind_table_ready_for_json() -> None:
    row = policy_of(run={"timeout": "500ms"}, cost={"per_attempt_usd": 0.20}, retry={"cap": "1h"}).to_row()
    assert list(row) == COLUMNS
    assert row["timeout"] == 0.5
    assert repr(row["retry_cap"]) == "3600"
    assert row["per_attempt_usd"] == "0.2"
    assert row["max_elapsed"] is None
    assert {type(value) for value in row.values()} <= {str, int, float, bool, type(None)}


def test_access_is_typed() -> None:
    access = policy_of(
        access={
            "egress": "bedrock",
            "bedrock_models": ["anthropic.claude-3-haiku-20240307-v1:0"],
            "secrets": ["connector/token"],
            "environment": {"MODEL": "haiku"},
            "database_role": "conversations_closer",
        }
    ).access
    assert access.bedrock_models == ("anthropic.claude-3-haiku-20240307-v1:0",)
    assert access.secrets == ("connector/token",)
    assert access.environment == {"MODEL": "haiku"}
    assert access.database_role == "conversations_closer"


@pytest.mark.parametrize(
    ("sections", "key", "rule"),
    [
        ({"top": {"owner": None}}, "owner", "is missing; set owner at the top of the file to text"),
        ({"run": {"timeout": None}}, "run.timeout", "is missing; set timeout in [run] to a duration from 100ms to 15m"),
        ({"limits": {"max_atempts": 3}}, "limits.max_atempts", 'is an unknown key; did you mean "max_attempts"?'),
        ({"limits": {"colour": 3}}, "limits.colour", "is an unknown key; known ones are deadline, max_attempts, "),
        ({"run": {"retry_bse": 3}}, "run.retry_bse", "is an unknown key; known ones are batch, children"),
        ({"top": {"max_attempts": 3}}, "max_attempts", "is not a key here; max_attempts belongs in [limits]"),
        ({"run": {"owner": "x"}}, "run.owner", "is not a key here; owner belongs in the top of the file"),
        ({"limit": {"max_attempts": 3}}, "[limit]", 'is an unknown section; did you mean "limits"?'),
        ({"top": {"limits": 3}}, "limits", "is a section, write its keys below a line [limits]; got 3"),
    ],
)
def test_a_key_in_the_wrong_place_is_told_the_right_one(sections: dict[str, Any], key: str, rule: str) -> None:
    error = refused(**sections)
    assert error.key == key
    assert error.rule.startswith(rule)


@pytest.mark.parametrize(
    ("section", "key", "values"),
    [
        ("limits", "max_attempts", [True, 0, -1, 1001, 5.0, "5", 10**30]),
        ("run", "timeout", [60, "0s", "-1s", "99ms", "16m", "1 minute", True]),
        ("run", "every", ["30s", "90s", "2d"]),
        ("run", "isolation", ["thread", True]),
        ("run", "poller", ["Own", "a b", ""]),
        ("retry", "base", ["0s", 30]),
        ("breaker", "share", [0, 1.1, "0.9", True, float("nan")]),
        ("cost", "per_attempt_usd", [float("nan"), float("inf"), -0.01, True, "free", 10**6, 0.1234567, "1e400"]),
        ("alarms", "own_metrics", [1, "true"]),
        ("top", "idempotent", [1, "yes"]),
        ("top", "owner", ["", "  ", "x" * 201, 7, "two\\nlines"]),
        ("top", "max_payload", [0, 262_145, "257 KiB", "1 GB", True]),
        ("top", "effect", ["half_attempt"]),
        ("access", "database_role", ["stopline_owner", "pg_monitor", "Closer", "a;b"]),
        ("access", "environment", ["x", {"lower": "x"}, {"AWS_REGION": "x"}, {"STOPLINE_DB_HOST": "x"}, {"A": 1}]),
        ("access", "bedrock_models", ["model", ["two words"], ["m1", "m1"], [1]]),
        ("access", "egress", ["everywhere"]),
        ("enqueue", "schedule", ["rate(1 minutes)", "rate(5 minute)", "rate(0 minutes)", "cron(0 6 * * *)", "hourly"]),
    ],
)  # fmt: skip
def test_a_value_that_breaks_its_bounds_is_refused_with_what_was_written(
    section: str, key: str, values: list[Any]
) -> None:
    for value in values:
        error = refused(**{section: {key: value}})
        assert error.key == (key if section == "top" else f"{section}.{key}"), value


@pytest.mark.parametrize(
    ("sections", "key", "words"),
    [
        ({"run": {"timeout": "14m50s"}}, "run.timeout", "above the 15m that a Lambda may run; lower it to 14m45s"),
        ({"run": {"poller_timeout": "1m"}}, "run.poller_timeout", "timeout + margin = 1m + 15s = 1m15s"),
        ({"limits": {"max_elapsed": "1m"}}, "limits.max_elapsed", "no room for an attempt"),
        ({"limits": {"deadline": "1m"}}, "limits.deadline", "no room for an attempt"),
        ({"limits": {"max_elapsed": "30m"}}, "limits.max_elapsed", "above breaker.max_cooldown (30m)"),
        ({"retry": {"base": "20m"}}, "retry.base", "20m must not be above retry.cap, which is 15m"),
        ({"breaker": {"cooldown": "1h"}}, "breaker.cooldown", "breaker.max_cooldown"),
        ({"reconcile": {"settle": "2h", "review_within": "1h"}}, "reconcile.settle", "reconcile.review_within"),
        ({"run": {"children": 3, "concurrency": 2}}, "run.children", "run.concurrency"),
        ({"run": {"batch": 10}}, "run.batch", 'needs isolation = "inline"'),
        ({"top": {"idempotent": False}, "run": {"isolation": "inline"}}, "run.isolation", "idempotent = true"),
        ({"limits": {"max_attempts": 2}, "run": {"isolation": "inline"}}, "run.isolation", "max_attempts of 3"),
        ({"limits": {"max_crashes": 1}, "run": {"isolation": "inline"}}, "run.isolation", "max_crashes of 2"),
        ({"run": {"isolation": "inline", "children": 2}}, "run.children", 'isolation = "process"'),
        ({"cost": {"per_job_usd": 1}}, "cost.per_job_usd", "needs per_attempt_usd"),
        ({"cost": {"daily_budget_usd": 1}}, "cost.daily_budget_usd", "needs per_attempt_usd"),
        ({"cost": {"per_attempt_usd": 2, "per_job_usd": 1}}, "cost.per_attempt_usd", "$2.00 must not be above"),
        ({"cost": {"per_attempt_usd": 2, "daily_budget_usd": 1}}, "cost.per_attempt_usd", "cost.daily_budget_usd"),
        (
            {"cost": {"per_attempt_usd": 1, "per_job_usd": 3, "daily_budget_usd": 2}},
            "cost.per_job_usd",
            "cost.daily_budget_usd",
        ),
        ({"cost": {"per_attempt_usd": 0}, "agent": {"per_step_usd": 1}}, "agent.per_step_usd", "needs max_steps"),
        (
            {"cost": {"per_attempt_usd": 1, "per_job_usd": 2}, "agent": {"per_step_usd": 1.5, "max_steps": 3}},
            "cost.per_job_usd",
            "does not pay an attempt with one step",
        ),
        ({"access": {"bedrock_models": ["m1"]}}, "access.bedrock_models", 'needs egress = "bedrock"'),
        ({"enqueue": {"timezone": "Europe/Berlin"}}, "enqueue.timezone", "needs schedule"),
        ({"enqueue": {"schedule": "rate(1 hour)", "timezone": "Europe/Berln"}}, "enqueue.timezone", "not a time zone"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(sections: dict[str, Any], key: str, words: str) -> None:
    error = refused(**sections)
    assert error.key == key
    assert words in error.rule


def test_inline_with_batches_is_accepted_where_crashes_do_not_hurt_neighbours() -> None:
    policy = policy_of(run={"isolation": "inline", "batch": 100}, limits={"max_attempts": 3})
    assert policy.run.batch == 100


def test_text_that_is_not_toml_is_refused_with_its_place() -> None:
    for text in ("owner = ", "[limits\n", "a = 1\na = 2"):
        with pytest.raises(PolicyError, match=r"policy\.toml: TOML: .*line|policy\.toml: TOML: .*end of document"):
            parse_policy("close_conversation", text, FILE)


@pytest.mark.parametrize("name", ["Close", "1st", "a-b", "", "a" * 49, "own", "kind\n"])
def test_a_kind_whose_folder_has_another_form_of_name_is_refused(name: str) -> None:
    with pytest.raises(PolicyError, match="kind: "):
        parse_policy(name, text_of(), FILE)


def write_kinds(root: Path, **kinds: Any) -> Path:
    for name, text in kinds.items():
        folder = root / name
        folder.mkdir()
        if text is not None:
            (folder / "policy.toml").write_text(text)
    return root


def test_a_folder_of_jobs_is_read_by_the_names_of_its_folders(tmp_path: Path) -> None:
    write_kinds(tmp_path, export=text_of(), close=text_of(), __pycache__=None)
    (tmp_path / "README.md").write_text("not a kind")
    policies = load_policies(tmp_path)
    assert list(policies) == ["close", "export"]
    assert policies["close"].name == "close"


def test_a_folder_without_a_policy_and_a_missing_folder_are_refused(tmp_path: Path) -> None:
    write_kinds(tmp_path, close=None)
    with pytest.raises(PolicyError, match=r"close/policy\.toml: file: does not exist"):
        load_policies(tmp_path)
    with pytest.raises(PolicyError, match="must hold one folder for each kind"):
        load_policies(tmp_path / "nowhere")


def test_a_policy_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    write_kinds(tmp_path, close=None)
    (tmp_path / "close" / "policy.toml").write_bytes(b'owner = "\xff"')
    with pytest.raises(PolicyError, match="is not UTF-8 at byte 9"):
        load_policy(tmp_path / "close" / "policy.toml")


def test_kinds_that_share_a_poller_must_agree_about_it(tmp_path: Path) -> None:
    write_kinds(tmp_path, a=text_of(run={"poller": "shared"}), b=text_of(run={"poller": "shared", "memory_mb": 2048}))
    with pytest.raises(PolicyError, match=r'b/policy\.toml: run\.memory_mb: is 2048, but a shares the poller "shared"'):
        load_policies(tmp_path)
    (tmp_path / "b" / "policy.toml").write_text(
        text_of(run={"poller": "shared", "margin": "10s", "poller_timeout": "85s"})
    )
    assert {policy.poller_name for policy in load_policies(tmp_path).values()} == {"shared"}


def test_a_poller_must_not_be_named_like_a_kind_that_has_its_own(tmp_path: Path) -> None:
    write_kinds(tmp_path, a=text_of(), b=text_of(run={"poller": "a"}))
    with pytest.raises(PolicyError, match='"a" is a kind with a poller of its own'):
        load_policies(tmp_path)
    (tmp_path / "a" / "policy.toml").write_text(text_of(run={"poller": "a"}))
    assert {policy.poller_name for policy in load_policies(tmp_path).values()} == {"a"}


def test_an_overlay_changes_what_it_names_and_what_follows_from_it() -> None:
    policy = policy_of(limits={"max_attempts": 7, "max_releases": 3})
    changed = overlay(policy, {"limits": {"max_attempts": 3}, "run": {"timeout": "2s", "margin": "1s"}, "owner": "me"})
    assert (changed.limits.max_attempts, changed.limits.max_releases) == (3, 3)
    assert changed.run.poller_timeout == timedelta(minutes=1)
    assert changed.owner == "me"
    assert policy.limits.max_attempts == 7
    assert overlay(changed, {"limits": {"max_attempts": None}}).limits.max_attempts == 5


def test_an_overlay_is_held_to_the_same_rules() -> None:
    with pytest.raises(
        PolicyError, match=r"policy\.toml with an overlay: limits\.max_attempts: must be a whole number"
    ):
        overlay(policy_of(), {"limits": {"max_attempts": 0}})
    with pytest.raises(PolicyError, match=r"run\.batch"):
        overlay(policy_of(), {"run": {"batch": 2}})
    with pytest.raises(PolicyError, match="unknown section"):
        overlay(policy_of(), {"limit": {"max_attempts": 1}})


@pytest.mark.parametrize(
    ("sections", "usd", "calls", "working"),
    [
        ({"cost": {"per_attempt_usd": 0.20}}, "1.00", 5, "5 attempts x 1 call x $0.20 = at most $1.00 a round"),
        (
            {"cost": {"per_attempt_usd": 0.20, "calls_per_attempt": 3}},
            "1.00",
            15,
            "5 attempts x $0.20 (3 calls each) = at most $1.00 a round",
        ),
        (
            {"cost": {"per_attempt_usd": 0.20, "per_job_usd": 0.5}},
            "0.50",
            5,
            "5 attempts x 1 call x $0.20 = $1.00, ended by per_job_usd: at most $0.50 a round",
        ),
        (
            {"cost": {"per_attempt_usd": 0, "calls_per_attempt": 0}, "agent": {"max_steps": 20, "per_step_usd": 0.05}},
            "1.00",
            20,
            "5 attempts x $0.00 (0 calls each) + 20 steps x $0.05 = at most $1.00 a round",
        ),
        (
            {"limits": {"max_attempts": 1}, "cost": {"per_attempt_usd": 0.000125}},
            "0.000125",
            1,
            "1 attempt x 1 call x $0.000125 = at most $0.000125 a round",
        ),
        ({}, None, 5, "5 attempts x 1 call = at most 5 calls a round; no price is set (per_attempt_usd in [cost])"),
    ],
)
def test_the_worst_case_is_a_number_with_its_working(
    sections: dict[str, Any], usd: str | None, calls: int, working: str
) -> None:
    worst = worst_case(policy_of(**sections))
    assert worst.usd == (None if usd is None else Decimal(usd))
    assert (worst.calls, worst.working) == (calls, working)


def test_the_reference_has_a_line_for_every_key() -> None:
    lines = reference().splitlines()
    keys = list(declared_keys(Policy))
    assert len(lines) == len(keys) + 2
    for key, line in zip(keys, lines[2:], strict=True):
        assert f"| `{key.attribute}` |" in line
        assert key.doc in line
        assert key.doc.endswith(".")


def test_every_field_of_every_section_is_a_declared_key() -> None:
    declared = {(key.section, key.attribute) for key in declared_keys(Policy)}
    policy = policy_of()
    for section in {name for name, _ in declared} - {""}:
        for field in dataclasses.fields(getattr(policy, section)):
            assert (section, field.name) in declared
    assert len(declared) == len(COLUMNS) - len(["name", "reconciles"]) + len(dataclasses.fields(policy.access))


def test_a_policy_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy_of().limits.max_attempts = 99  # type: ignore[misc]
