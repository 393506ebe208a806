"""A memory service over real gRPC, what it is asked, and a convergence service that embeds by words."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from parley.convergence.agreement import Agreements
from parley.convergence.embeddings import open_embeddings
from parley.convergence.servicer import ConvergenceServicer
from parley.memory.__main__ import build
from parley.memory.settings import MemorySettings
from parley.runtime.channel import channel
from parley.runtime.server import Service, start_server
from parley.v1 import memory_pb2 as pb
from parley.v1.convergence_pb2_grpc import add_ConvergenceServiceServicer_to_server
from parley.v1.critique_pb2 import ISSUE_STATUS_TAKEN_UP, Issue
from parley.v1.effect_pb2 import DECISION_RELATION_REVERSES, DecisionConfidence
from parley.v1.memory_pb2_grpc import MemoryServiceStub
from parley.v1.voting_pb2 import VOTE_STRENGTH_MODERATE
from tests.support.hash_embedder import HashEmbedder
from tests.support.word_agreement import WordAgreement

ACME = (("parley-tenant", "acme"),)
KAFKA = ("Kafka or RabbitMQ for orders?", "Use Kafka for orders.")
PRICES = ("Should we raise prices?", "Raise prices in spring.")


@asynccontextmanager
async def convergence(embedder: HashEmbedder | None = None, words: Sequence[str] = ()) -> AsyncIterator[str]:
    async with open_embeddings(embedder or HashEmbedder()) as shared:
        servicer = ConvergenceServicer(shared, shared, Agreements(WordAgreement(words), cache=100))
        service = Service(
            "parley.v1.ConvergenceService",
            lambda server: add_ConvergenceServiceServicer_to_server(servicer, server),
        )
        async with start_server([service]) as server:
            yield server.address


@asynccontextmanager
async def run_memory(folder: Path, address: str) -> AsyncIterator[MemoryServiceStub]:
    settings = MemorySettings(
        store=f"sqlite:///{folder / 'store'}", vectors=f"edge:{folder / 'vectors'}", convergence=address
    )
    async with (
        build(settings) as service,
        start_server([service]) as server,
        channel(server.address) as opened,
    ):
        yield MemoryServiceStub(opened)


def debate(debate_id: str, content: tuple[str, str] = KAFKA, domain: str = "") -> pb.RecordDebateRequest:
    question, conclusion = content
    concluded_at = Timestamp()
    concluded_at.FromDatetime(datetime(2026, 5, 4, 12, 30, 15, 250_000, tzinfo=UTC))
    return pb.RecordDebateRequest(
        debate=pb.PastDebate(
            debate_id=debate_id,
            question=question,
            conclusion=conclusion,
            domain=domain,
            concluded_at=concluded_at,
        )
    )


async def recall(
    stub: MemoryServiceStub, text: str, metadata: Sequence[tuple[str, str]] = (), **request: object
) -> list[pb.PastDebate]:
    found = stub.Recall(pb.RecallRequest(text=text, **request), metadata=metadata)  # type: ignore[arg-type]
    return [each.debate async for each in found]


def with_all_that_a_debate_leaves(request: pb.RecordDebateRequest) -> pb.RecordDebateRequest:
    """The same debate with every part set."""
    debate = request.debate
    debate.strength = VOTE_STRENGTH_MODERATE
    debate.confidence.CopyFrom(DecisionConfidence(percent=83.5, votes=2, votes_cast=3))
    debate.dissents.add(agent_id="cy", text="It is hard to run.")
    debate.evidence.add(text="Kafka keeps order in a partition.", source="docs/kafka.md")
    request.stands.add(
        agent_id="ada",
        agent_name="Ada",
        text="Use Kafka.",
        for_decision=True,
        first_text="Wait.",
        first_for_decision=False,
        first_position=2,
    )
    request.stands.add(agent_id="cy", text="Use RabbitMQ.")
    issue = Issue(number=1, text="No figures.", severity=7)
    request.issues.add(critic_agent_id="ada", target_agent_id="cy", issue=issue, status=ISSUE_STATUS_TAKEN_UP)
    return request


def with_a_reversal(request: pb.RecordDebateRequest) -> pb.RecordDebateRequest:
    request.debate.related.add(
        debate_id="deb-0", decision="Use RabbitMQ.", relation=DECISION_RELATION_REVERSES, reason="It grew."
    )
    return request
