"""Fairness: a summary that leaves a perspective out is noticed, and one that tells each is not."""

import pytest

from parley.orchestrator.formats.moderated.evaluate import ArguedPerspective, find_omitted

QUESTION = "Should sessions live in Redis or PostgreSQL?"
HEARD = (
    ArguedPerspective(
        "A",
        "Performance Advocate",
        "A.1: Redis answers from memory within a millisecond. A.2: Peaks at noon overload disks.",
    ),
    ArguedPerspective(
        "B",
        "Simplicity Advocate",
        "B.1: The team has operated PostgreSQL for years. B.2: Another daemon wants upgrades and alerts.",
    ),
    ArguedPerspective(
        "C",
        "Security Advocate",
        "C.1: Replication spreads credentials. C.2: Auditors ask for encryption at rest.",
    ),
)
ONE_SIDED = {
    "only one is told": ("Agent A showed that memory answers within a millisecond (A.1, A.2).", "BC"),
    "one is left out": ("A.1 stands. Agent B fears upgrades and alerts of another daemon (B.2).", "C"),
    "named in passing alone": ("A.1 and A.2 carried the round against agent B and agent C.", "BC"),
    "named by perspective alone": ("A.1 and B.1 are open. The Security Advocate spoke too.", "C"),
    "in the words of the question alone": ("Redis or PostgreSQL, that is how sessions go: A.1, B.1.", "C"),
    "empty": ("", "ABC"),
    "another's points under its name": (
        "Agent C agrees that memory answers in a millisecond (A.1); B.2 is open.",
        "C",
    ),
}
FAIR = (
    "A.1 is open. B.2 was answered. C.1 was conceded.",
    "Agent A points at peaks that overload disks; B.1 is conceded; agent C wants encryption for auditors.",
    (
        "The Performance Advocate holds that memory and a millisecond decide. The Simplicity Advocate warns of upgrades and alerts."
        " The Security Advocate asks who audits replication and credentials."
    ),
    (
        "Peaks overload disks at noon, so memory should answer. Operated for years, without another daemon, upgrades or alerts: that is"
        " the other side. Replication spreads credentials, and auditors want encryption at rest."
    ),
)


@pytest.mark.parametrize(("summary", "missing"), ONE_SIDED.values(), ids=ONE_SIDED.keys())
def test_a_one_sided_summary_is_noticed(summary: str, missing: str) -> None:
    assert "".join(each.letter for each in find_omitted(summary, HEARD, QUESTION)) == missing


@pytest.mark.parametrize("summary", FAIR)
def test_a_fair_summary_leaves_nobody_out(summary: str) -> None:
    assert find_omitted(summary, HEARD, QUESTION) == []


def test_one_who_says_nothing_of_its_own_need_only_be_named() -> None:
    heard = (HEARD[0], ArguedPerspective("B", "Echo", HEARD[0].text))
    assert find_omitted("A.1 is open, and agent B says the same.", heard, QUESTION) == []
    assert [each.letter for each in find_omitted("A.1 is open.", heard, QUESTION)] == ["B"]
