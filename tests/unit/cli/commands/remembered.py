"""What a scripted orchestrator remembers of two debates."""

from google.protobuf.timestamp_pb2 import Timestamp

from parley.v1.critique_pb2 import ISSUE_STATUS_REJECTED, Issue
from parley.v1.effect_pb2 import (
    DecisionConfidence,
)
from parley.v1.memory_pb2 import (
    GetRecordResponse,
    PastDebate,
    Relevance,
)
from parley.v1.voting_pb2 import VOTE_STRENGTH_MODERATE

KAFKA = "deb-20260301-101112-aaaaaaaa"


PRICES = "deb-20260302-101112-bbbbbbbb"


LONG = "Use Kafka for orders, since it keeps their order. " * 60
"""3,000 characters, as conclusions have them."""


def make_record(debate_id: str = KAFKA, conclusion: str = LONG, domain: str = "data") -> GetRecordResponse:
    """All that a debate can leave."""
    debate = PastDebate(
        debate_id=debate_id,
        question="Kafka or RabbitMQ for orders?",
        conclusion=conclusion,
        domain=domain,
        concluded_at=Timestamp(seconds=1_772_366_400),
        strength=VOTE_STRENGTH_MODERATE,
        confidence=DecisionConfidence(percent=83.5, votes=2, votes_cast=3),
        relevance=Relevance(similarity_percent=48.7),
    )
    debate.dissents.add(agent_id="cy", text="It is hard to run. " * 10)
    debate.dissents.add(agent_id="di", text="Nobody knows it.")
    debate.evidence.add(text="Kafka keeps order in a partition.", source="docs/kafka.md")
    found = GetRecordResponse(debate=debate)
    found.stands.add(agent_id="ada", agent_name="Ada", text="Use Kafka.", for_decision=True)
    found.stands.add(agent_id="cy", text="Use RabbitMQ.", for_decision=False)
    issue = Issue(number=1, text="No figures.", severity=7)
    found.issues.add(
        critic_agent_id="ada",
        target_agent_id="cy",
        issue=issue,
        status=ISSUE_STATUS_REJECTED,
        reason="They are in the annex.",
    )
    return found
