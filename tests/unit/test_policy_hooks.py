"""Whether a kind can reconcile is read from its handler, which is never imported."""

from pathlib import Path

import pytest

from stopline.errors import PolicyError
from stopline.policy import Policy, load_policies, load_policy, overlay, parse_policy

POLICY = 'owner = "tests"\ndescription = "a kind"\nidempotent = false\n[run]\ntimeout = "30s"\n'


def kind(jobs: Path, handler: str | bytes | None) -> Policy:
    folder = jobs / "work"
    folder.mkdir(exist_ok=True)
    (folder / "policy.toml").write_text(POLICY)
    if handler is not None:
        (folder / "handler.py").write_bytes(handler.encode() if isinstance(handler, str) else handler)
    return load_policies(jobs)["work"]


@pytest.mark.parametrize(
    ("handler", "found"),
    [
        ("def run(job): ...\ndef reconcile(job): return 'applied'\n", True),
        ("import no_such_module\n1 / 0\ndef reconcile(job): ...\n", True),
        ("@decorated\ndef reconcile(job): ...\n", True),
        ("# -*- coding: latin-1 -*-\n# caf\xe9\ndef reconcile(job): ...\n".encode("latin-1"), True),
        ("def run(job): ...\n", False),
        ("def run(job):\n    def reconcile(job): ...\n    reconcile = 1\n", False),
        ("class Receiver:\n    def reconcile(self, job): ...\n", False),
        ("# def reconcile(job): ...\ntext = '''\ndef reconcile(job): ...\n'''\n", False),
        ("PATTERN = '\\d'\n", False),
        (None, False),
    ],
)
def test_a_kind_reconciles_when_its_handler_defines_the_function_at_top_level(
    tmp_path: Path, handler: str | bytes | None, found: bool
) -> None:
    policy = kind(tmp_path, handler)
    assert policy.reconciles is found
    assert policy.to_row()["reconciles"] is found
    assert load_policy(tmp_path / "work" / "policy.toml").reconciles is found


@pytest.mark.parametrize(
    ("handler", "line", "rule"),
    [
        ("def run(job): ...\n\ndef reconcile(job:\n", 3, "is no Python"),
        ("x = '\0'\n", 1, "is no Python"),
        ("(" * 5000 + ")" * 5000, 1, "is no Python"),
        ("\nfrom .asking import reconcile\n", 2, "reconcile is no plain top-level function"),
        ("from .asking import ask as reconcile\n", 1, "reconcile is no plain top-level function"),
        ("\n\nasync def reconcile(job): ...\n", 3, "reconcile is no plain top-level function"),
        ("ask = len\nreconcile = ask\n", 2, "reconcile is no plain top-level function"),
        ("try:\n    import x\nexcept ImportError:\n    def reconcile(job): ...\n", 4, "def reconcile(job):"),
        ("if True:\n    def reconcile(job): ...\n", 2, "at the top level of handler.py"),
    ],
)
def test_a_handler_that_cannot_be_read_or_hides_its_hook_is_refused_with_file_line_and_fix(
    tmp_path: Path, handler: str, line: int, rule: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        kind(tmp_path, handler)
    assert str(caught.value).startswith(f"{tmp_path}/work/handler.py: line {line}: ")
    assert rule in str(caught.value)


def test_a_policys_text_alone_says_nothing_of_the_code() -> None:
    assert parse_policy("work", POLICY, "work/policy.toml").reconciles is False


def test_an_overlay_leaves_the_code_as_it_is(tmp_path: Path) -> None:
    policy = kind(tmp_path, "def reconcile(job): ...\n")
    assert overlay(policy, {"limits": {"max_attempts": 3}}).reconciles


def test_the_shipped_export_reconciles_and_the_closing_of_conversations_does_not() -> None:
    policies = load_policies(Path(__file__).parents[2] / "lambdas" / "jobs")
    assert {name for name, policy in policies.items() if policy.reconciles} == {"accounting_export"}
