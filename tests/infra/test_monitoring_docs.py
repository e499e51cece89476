"""docs/operate.md explains every alarm as it is declared."""

import re
from pathlib import Path

import pytest

from stacks.alarm_rules import RULES, AlarmRule, Missing, kind_rules
from stacks.log_queries import QUERIES
from stopline.policy import Policy

TEXT = (Path(__file__).parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")
MISSING = {
    Missing.BREACHING: "missing data breaches",
    Missing.IGNORE: "missing data keeps the state",
    Missing.NOT_BREACHING: "missing data is good",
}


def sections() -> dict[str, str]:
    """The text of each section by its anchor."""
    parts = re.split(r"^#{1,2} (.+)$", TEXT, flags=re.MULTILINE)[1:]
    return {_anchor(heading): text for heading, text in zip(parts[::2], parts[1::2], strict=True)}


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.name))
def test_every_alarm_has_a_section_that_says_what_it_means_what_to_run_and_how_it_clears(rule: AlarmRule) -> None:
    """AL-02: the missing-data rule stands there too."""
    file, anchor = rule.runbook.split("#")
    assert file == "docs/operate.md"
    section = sections()[anchor]
    assert section.strip().startswith(rule.meaning)
    assert f"On while {rule.setting}; {MISSING[rule.missing]}." in section
    first = f"`{rule.first_query}`" if rule.first_query.startswith("stopline ") else f'saved query "{rule.first_query}"'
    assert f"- First: {'' if first.startswith('`') else 'the '}{first}." in section
    assert ("Pages." in section) == rule.pages
    assert "What to do\n1. " in section
    assert "How it clears: " in section


def test_a_kinds_own_alarms_lead_to_the_same_sections(policies: dict[str, Policy]) -> None:
    for policy in policies.values():
        assert {rule.anchor for rule in kind_rules(policy)} <= {rule.anchor for rule in RULES}


def test_every_link_within_the_page_leads_somewhere() -> None:
    links = re.findall(r"\]\(#([^)]+)\)", TEXT)
    assert links
    assert set(links) <= sections().keys()


def test_every_saved_query_is_listed_and_no_other() -> None:
    rows = re.findall(r"^\| ([A-Z][a-z ]+) \| (?:all pollers'|the \w+'s) logs \|", TEXT, flags=re.MULTILINE)
    assert rows == [query.name for query in QUERIES]
    named = set(re.findall(r'saved query\s"([^"]+)"', TEXT))
    assert named <= {query.name for query in QUERIES}
