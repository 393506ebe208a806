"""The RPCs about memory: protobuf in and out."""

from collections.abc import AsyncGenerator
from typing import Final

from parley.orchestrator.api.requests import check_id
from parley.orchestrator.peers.for_clients import ClientMemory
from parley.runtime import audit
from parley.runtime.validation import Violations
from parley.v1 import memory_pb2, orchestrator_pb2, orchestrator_pb2_grpc

_DEFAULT_LIMIT: Final = 10
_MAX_LIMIT: Final = 100
_MAX_CHARACTERS: Final = 100_000
_MAX_DOMAIN: Final = 64


class MemoryServicer(orchestrator_pb2_grpc.OrchestratorServiceServicer):
    """Answers for what is remembered of the caller's tenant."""

    __slots__ = ()

    memory: ClientMemory

    async def SearchMemory(  # noqa: N802
        self, request: orchestrator_pb2.SearchMemoryRequest, _context: object
    ) -> AsyncGenerator[orchestrator_pb2.SearchMemoryResponse, None]:
        """Send the past debates that are most like a text."""
        _check_search(request)
        recall = memory_pb2.RecallRequest(
            text=request.text, limit=request.limit or _DEFAULT_LIMIT, domain=request.domain
        )
        async for debate in self.memory.search(recall):
            yield orchestrator_pb2.SearchMemoryResponse(debate=debate)

    async def GetMemory(  # noqa: N802
        self, request: orchestrator_pb2.GetMemoryRequest, _context: object
    ) -> orchestrator_pb2.GetMemoryResponse:
        """Return all that is remembered of a debate."""
        found = await self.memory.get(check_id("debate_id", request.debate_id))
        return orchestrator_pb2.GetMemoryResponse(
            debate=found.debate, stands=found.stands, issues=found.issues
        )

    async def ForgetMemory(  # noqa: N802
        self, request: orchestrator_pb2.ForgetMemoryRequest, _context: object
    ) -> orchestrator_pb2.ForgetMemoryResponse:
        """Forget a debate, which stays itself."""
        debate = check_id("debate_id", request.debate_id)
        existed = await self.memory.forget(debate)
        audit.report_act(f"memory of debate {debate}")
        return orchestrator_pb2.ForgetMemoryResponse(existed=existed)

    async def ListMemoryPatterns(  # noqa: N802
        self, request: orchestrator_pb2.ListMemoryPatternsRequest, _context: object
    ) -> orchestrator_pb2.ListMemoryPatternsResponse:
        """Return a page of critique patterns."""
        page = await self.memory.list_patterns(
            memory_pb2.ListPatternsRequest(
                text=request.text,
                domain=request.domain,
                only_successful=request.only_successful,
                page_size=request.page_size,
                page_token=request.page_token,
            )
        )
        return orchestrator_pb2.ListMemoryPatternsResponse(
            patterns=page.patterns, next_page_token=page.next_page_token
        )

    async def ListMemoryPositions(  # noqa: N802
        self, request: orchestrator_pb2.ListMemoryPositionsRequest, _context: object
    ) -> orchestrator_pb2.ListMemoryPositionsResponse:
        """Return a page of the position ledger."""
        page = await self.memory.list_positions(
            memory_pb2.ListPositionsRequest(
                agent_id=request.agent_id,
                only_flips=request.only_flips,
                page_size=request.page_size,
                page_token=request.page_token,
            )
        )
        return orchestrator_pb2.ListMemoryPositionsResponse(
            positions=page.positions, next_page_token=page.next_page_token
        )

    async def ListMemoryMoments(  # noqa: N802
        self, request: orchestrator_pb2.ListMemoryMomentsRequest, _context: object
    ) -> orchestrator_pb2.ListMemoryMomentsResponse:
        """Return a page of moments."""
        page = await self.memory.list_moments(
            memory_pb2.ListMomentsRequest(
                kind=request.kind, page_size=request.page_size, page_token=request.page_token
            )
        )
        return orchestrator_pb2.ListMemoryMomentsResponse(
            moments=page.moments, next_page_token=page.next_page_token
        )


def _check_search(request: orchestrator_pb2.SearchMemoryRequest) -> None:
    violations = Violations()
    violations.check_text("text", request.text, max_characters=_MAX_CHARACTERS)
    violations.check_setting("limit", request.limit, _MAX_LIMIT)
    violations.check(
        that=len(request.domain) <= _MAX_DOMAIN and "\0" not in request.domain,
        field="domain",
        otherwise=f"must be at most {_MAX_DOMAIN} characters, without NUL",
    )
    violations.refuse()
