"""Reports and decision documents as resources, and what past debates decided."""

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from mcp.shared.exceptions import MCPError

from parley.v1.effect_pb2 import DecisionConfidence
from parley.v1.memory_pb2 import PastDebate, RecallResponse
from parley.v1.voting_pb2 import VOTE_STRENGTH_MODERATE
from tests.integration.mcp.conftest import Connect, structured
from tests.support.moderated_debates import ModeratedScript
from tests.support.orchestration import Orchestrator
from tests.support.scripted_gateway import ScriptedGateway

PAST = "deb-20260301-101112-aaaaaaaa"


@pytest.fixture
def gateway() -> ScriptedGateway:
    script = ModeratedScript().gateway()
    past = PastDebate(
        debate_id=PAST,
        question="Kafka or RabbitMQ?",
        conclusion="Use Kafka.",
        domain="general",
        concluded_at=Timestamp(seconds=1_772_000_000),
        strength=VOTE_STRENGTH_MODERATE,
        confidence=DecisionConfidence(percent=83.5, votes=2, votes_cast=3),
    )
    past.dissents.add(agent_id="cy", text="It is hard to run.")
    script.past = [RecallResponse(debate=past)]
    return script


async def test_reports_and_decisions_are_resources_and_past_decisions_are_found(
    connect: Connect, orchestrator: Orchestrator
) -> None:
    async with connect() as client:
        arguments = {"question": "Redis or PostgreSQL?", "format": "moderated", "context": "We have Redis."}
        result = structured(await client.call_tool("debate", arguments))
        debate = await orchestrator.get(result["debate_id"])
        (report,) = (await client.read_resource(result["report"])).contents
        (decision,) = (await client.read_resource(result["decision"])).contents
        found = structured(await client.call_tool("search_past_debates", {"text": "a queue?", "limit": 3}))
        with pytest.raises(MCPError, match="deb-20260303-101112-cccccccc"):
            await client.read_resource("parley://debates/deb-20260303-101112-cccccccc/report")
    assert [(each.path, each.text) for each in debate.spec.context] == [("context.md", "We have Redis.")]
    assert result["confidence"]["writer_word"]
    for each, part in ((report, "Redis or PostgreSQL?"), (decision, "Decision")):
        assert each.mime_type == "text/markdown"
        assert part in getattr(each, "text", "")
    (past,) = found["debates"]
    assert (past["debate_id"], past["conclusion"], past["strength"]) == (PAST, "Use Kafka.", "moderate")
    assert (past["percent"], past["dissent"]) == (83.5, [{"agent_id": "cy", "text": "It is hard to run."}])
