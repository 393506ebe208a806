"""A memory that answers what a test sets."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from parley.v1 import memory_pb2 as pb
from parley.v1 import memory_pb2_grpc
from parley.v1.effect_pb2 import DecisionConfidence
from parley.v1.voting_pb2 import VOTE_STRENGTH_MODERATE
from tests.support.orchestration import until

KAFKA = "deb-20260301-101112-aaaaaaaa"
RABBITMQ = "deb-20260302-101112-bbbbbbbb"
LATER = "deb-20260303-101112-cccccccc"
Item = TypeVar("Item")


class ScriptedMemory:
    """What is remembered, each list a page for each item.

    Attributes:
        asked: Every request for a search or a list, in order.
        records: What is remembered of debates, by id.
        is_forgetful: Whether it forgets what it is asked to forget; else it is away.
        refusal: What a list of patterns without a text is refused with; empty: it is sent.
    """

    def __init__(self) -> None:
        self.debates: list[pb.PastDebate] = []
        self.positions: list[pb.LedgerPosition] = []
        self.patterns: list[pb.CritiquePattern] = []
        self.moments: list[pb.Moment] = []
        self.records: dict[str, pb.GetRecordResponse] = {}
        self.asked: list[Message] = []
        self.is_forgetful = True
        self.refusal = ""

    @asynccontextmanager
    async def served_at(self, address: str) -> AsyncGenerator[None, None]:
        server = grpc.aio.server()
        servicer: Any = self
        memory_pb2_grpc.add_MemoryServiceServicer_to_server(servicer, server)
        server.add_insecure_port(address)
        await server.start()
        try:
            yield
        finally:
            await server.stop(None)

    async def until_asked(self, *wanted: Message) -> None:
        """Wait until each of these was asked."""

        async def all_asked() -> bool:
            return all(each in self.asked for each in wanted)

        await until(all_asked, f"{wanted} were asked")

    async def Recall(  # noqa: N802
        self, request: pb.RecallRequest, _context: Any
    ) -> AsyncIterator[pb.RecallResponse]:
        self.asked.append(request)
        for each in self.debates:
            yield pb.RecallResponse(debate=each)

    async def ListPositions(  # noqa: N802
        self, request: pb.ListPositionsRequest, _context: Any
    ) -> pb.ListPositionsResponse:
        self.asked.append(request)
        found, token = _page(self.positions, request.page_token)
        return pb.ListPositionsResponse(positions=found, next_page_token=token)

    async def ListPatterns(  # noqa: N802
        self, request: pb.ListPatternsRequest, context: Any
    ) -> pb.ListPatternsResponse:
        self.asked.append(request)
        if self.refusal and not request.text:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, self.refusal)
        found, token = _page(self.patterns, request.page_token)
        return pb.ListPatternsResponse(patterns=found, next_page_token=token)

    async def ListMoments(  # noqa: N802
        self, request: pb.ListMomentsRequest, _context: Any
    ) -> pb.ListMomentsResponse:
        self.asked.append(request)
        found, token = _page(self.moments, request.page_token)
        return pb.ListMomentsResponse(moments=found, next_page_token=token)

    async def GetRecord(  # noqa: N802
        self, request: pb.GetRecordRequest, context: Any
    ) -> pb.GetRecordResponse:
        found = self.records.get(request.debate_id)
        if found is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "nothing is remembered of it")
        assert found is not None
        return found

    async def ForgetDebate(  # noqa: N802
        self, request: pb.ForgetDebateRequest, context: Any
    ) -> pb.ForgetDebateResponse:
        if not self.is_forgetful:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "away")
        self.debates = [each for each in self.debates if each.debate_id != request.debate_id]
        self.positions = [each for each in self.positions if each.debate_id != request.debate_id]
        return pb.ForgetDebateResponse(existed=self.records.pop(request.debate_id, None) is not None)

    def __getattr__(self, name: str) -> Any:
        """Return None for what is not served."""
        return None


def _page(items: list[Item], token: str) -> tuple[list[Item], str]:
    start = int(token or 0)
    return items[start : start + 1], str(start + 1) if len(items) > start + 1 else ""


def make_time(day: int) -> Timestamp:
    return Timestamp(seconds=1_772_359_200 + (day - 1) * 86_400)


def make_past_debate(**fields: Any) -> pb.PastDebate:
    debate = pb.PastDebate(
        debate_id=KAFKA,
        question="Kafka or RabbitMQ for orders?",
        conclusion="Use **Kafka** for orders.",
        concluded_at=make_time(1),
        strength=VOTE_STRENGTH_MODERATE,
        confidence=DecisionConfidence(percent=83.5, votes=2, votes_cast=3),
        relevance=pb.Relevance(similarity_percent=49.2),
    )
    debate.dissents.add(agent_id="cy", text="It is hard to run.")
    debate.MergeFrom(pb.PastDebate(**fields))
    return debate
