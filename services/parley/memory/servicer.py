"""MemoryService over gRPC: checks requests and converts messages, without logic of its own."""

from collections.abc import AsyncIterator
from typing import Final

import grpc

from parley.memory.memories import DebateReusedError, Memories
from parley.memory.moments import Moments
from parley.memory.patterns import Patterns, lowest_of_related
from parley.memory.positions import Positions
from parley.memory.requests import (
    check_debate_id,
    check_list_moments,
    check_list_patterns,
    check_list_positions,
    check_rate,
    check_recall,
    check_record,
)
from parley.runtime.errors import ParleyError, not_found
from parley.runtime.identity.identity import current_tenant
from parley.runtime.page_tokens import to_token
from parley.storage.service_errors import map_store_errors
from parley.v1 import memory_pb2 as pb
from parley.v1 import memory_pb2_grpc as pb_grpc

_DEFAULT_LIMIT: Final = 5
_GENERAL: Final = "general"
_STORE: Final = "the store of the memory"


class MemoryServicer(pb_grpc.MemoryServiceServicer):
    """The calls of MemoryService."""

    def __init__(
        self,
        memories: Memories,
        patterns: Patterns,
        positions: Positions,
        moments: Moments,
        floor_percent: int,
    ) -> None:
        self._memories = memories
        self._patterns = patterns
        self._positions = positions
        self._moments = moments
        self._floor_percent = floor_percent

    async def Recall(self, request: pb.RecallRequest, _context: object) -> AsyncIterator[pb.RecallResponse]:  # noqa: N802
        """Send the past debates that are most similar to a text, best first."""
        check_recall(request)
        with map_store_errors(_STORE):
            async for found in self._memories.recall(
                current_tenant(),
                request.text,
                domain=request.domain,
                excluded=request.excluded_debate_ids,
                limit=request.limit or _DEFAULT_LIMIT,
                floor=(request.floor_percent or self._floor_percent) / 100,
            ):
                yield pb.RecallResponse(debate=found)

    async def GetRecord(  # noqa: N802
        self, request: pb.GetRecordRequest, _context: object
    ) -> pb.GetRecordResponse:
        """Return all that is remembered of a debate."""
        check_debate_id(request.debate_id)
        with map_store_errors(_STORE):
            found = await self._memories.get(current_tenant(), request.debate_id)
        if found is None:
            raise not_found("remembered debate", request.debate_id)
        return pb.GetRecordResponse(debate=found.debate, stands=found.stands, issues=found.issues)

    async def RecordDebate(  # noqa: N802
        self, request: pb.RecordDebateRequest, _context: object
    ) -> pb.RecordDebateResponse:
        """Record what a debate leaves."""
        check_record(request)
        request.DiscardUnknownFields()  # of a newer caller: they are not kept, and the same again would differ from what is
        debate = request.debate
        debate.domain = debate.domain or _GENERAL
        try:
            with map_store_errors(_STORE):
                existed = await self._memories.record(current_tenant(), request)
        except DebateReusedError:
            raise ParleyError(
                grpc.StatusCode.ALREADY_EXISTS,
                "DEBATE_REUSED",
                f"debate {debate.debate_id} is already recorded with other content",
                resource=("debate", debate.debate_id),
            ) from None
        return pb.RecordDebateResponse(existed=existed)

    async def ForgetDebate(  # noqa: N802
        self, request: pb.ForgetDebateRequest, _context: object
    ) -> pb.ForgetDebateResponse:
        """Delete a debate."""
        check_debate_id(request.debate_id)
        with map_store_errors(_STORE):
            existed = await self._memories.forget(current_tenant(), request.debate_id)
        return pb.ForgetDebateResponse(existed=existed)

    async def RateDebate(  # noqa: N802
        self, request: pb.RateDebateRequest, _context: object
    ) -> pb.RateDebateResponse:
        """Record a person's feedback on a debate."""
        check_rate(request)
        with map_store_errors(_STORE):
            existed = await self._memories.rate(
                current_tenant(), request.debate_id, request.number, request.value
            )
        return pb.RateDebateResponse(existed=existed)

    async def ListPatterns(  # noqa: N802
        self, request: pb.ListPatternsRequest, _context: object
    ) -> pb.ListPatternsResponse:
        """List critique patterns."""
        size, after = check_list_patterns(request)
        with map_store_errors(_STORE):
            found, more = await self._patterns.list_page(
                current_tenant(),
                text=request.text.strip(),
                domain=request.domain,
                only_successful=request.only_successful,
                floor=lowest_of_related(self._floor_percent) if request.only_related else 0.0,
                after=after,
                size=size,
            )
        return pb.ListPatternsResponse(patterns=found, next_page_token=to_token(more) if more else "")

    async def ListPositions(  # noqa: N802
        self, request: pb.ListPositionsRequest, _context: object
    ) -> pb.ListPositionsResponse:
        """List the position ledger."""
        size, after = check_list_positions(request)
        with map_store_errors(_STORE):
            found, more = await self._positions.list_page(
                current_tenant(),
                agent=request.agent_id,
                only_flips=request.only_flips,
                after=after,
                size=size,
            )
        return pb.ListPositionsResponse(positions=found, next_page_token=to_token(more) if more else "")

    async def ListMoments(  # noqa: N802
        self, request: pb.ListMomentsRequest, _context: object
    ) -> pb.ListMomentsResponse:
        """List moments."""
        size, after = check_list_moments(request)
        with map_store_errors(_STORE):
            found, more = await self._moments.list_page(current_tenant(), request.kind, after, size)
        return pb.ListMomentsResponse(moments=found, next_page_token=to_token((0, more)) if more else "")
