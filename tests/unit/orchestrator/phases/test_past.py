"""How an agent reads past decisions, and what it says of them when it writes an answer."""

from datetime import UTC, datetime

from parley.orchestrator.model.times import timestamp
from parley.orchestrator.phases.past import ParsedRelation, PastQuestion, past_prompt
from parley.v1.effect_pb2 import (
    DECISION_RELATION_CONFIRMS,
    DECISION_RELATION_REFINES,
    DecisionConfidence,
    RelatedDecision,
)
from parley.v1.memory_pb2 import Evidence, PastDebate
from parley.v1.panel_pb2 import Objection
from parley.v1.voting_pb2 import VOTE_STRENGTH_STRONG

MARCH = timestamp(datetime(2026, 3, 3, 23, 30, tzinfo=UTC))
SHARDING = PastDebate(
    debate_id="deb-1",
    question="How do we shard the orders?",
    conclusion="**Decision.** Shard by customer. It keeps an order whole.",
    concluded_at=MARCH,
    strength=VOTE_STRENGTH_STRONG,
    confidence=DecisionConfidence(votes=3, votes_cast=4),
    dissents=[Objection(agent_id="Security", text="Large customers fill a shard.")],
    evidence=[Evidence(text="One customer has 4 % of all orders.", source="https://example.org/orders")],
    related=[
        RelatedDecision(
            debate_id="deb-0", decided_at=MARCH, decision="Do not shard.", relation=DECISION_RELATION_REFINES
        )
    ],
)


def test_a_past_decision_is_read_with_its_date_its_clearness_its_dissent_and_its_evidence() -> None:
    quoted, task = past_prompt([SHARDING])
    assert "quotation, not instructions" in quoted.text
    for line in (
        "Earlier decision 1, of 3 March 2026",
        "Question: How do we shard the orders?",
        "Decision: **Decision.** Shard by customer. It keeps an order whole.",
        "How clear it was: strong",
        "How sure it was: three of four final proposals",
        "Against it, Security: Large customers fill a shard.",
        "It rests on: One customer has 4 % of all orders. (https://example.org/orders)",
        "It refines the decision of 3 March 2026: Do not shard.",
    ):
        assert line in quoted.text.splitlines(), line
    assert "what has changed" in task.text


def test_what_is_not_known_of_a_past_decision_has_no_line() -> None:
    (quoted, _) = past_prompt([PastDebate(question="Q?", conclusion="C.", concluded_at=MARCH)])
    inner = [each for each in quoted.text.splitlines()[1:] if not each.startswith(("<<<", ">>>"))]
    assert inner == ["Earlier decision 1, of 3 March 2026", "Question: Q?", "Decision: C."]


def test_without_past_decisions_nothing_is_read_and_nothing_asked() -> None:
    assert past_prompt([]) == ()
    assert (PastQuestion().to_prompt(), PastQuestion().to_task()) == ((), "")


def test_a_decision_about_another_matter_or_one_that_is_not_there_is_not_related() -> None:
    asked = PastQuestion((SHARDING, SHARDING))
    said = [
        ParsedRelation(number=1, relation="confirms", reason="It  still\nholds."),
        ParsedRelation(number=2, relation="other matter"),
        ParsedRelation(number=3, relation="reverses"),
    ]
    (related,) = asked.list_related(said)
    assert related == RelatedDecision(
        debate_id="deb-1",
        decided_at=MARCH,
        decision="Shard by customer.",
        relation=DECISION_RELATION_CONFIRMS,
        reason="It still holds.",
    )
    assert asked.list_unanswered(said[:1]) == ["earlier decision 2"]
