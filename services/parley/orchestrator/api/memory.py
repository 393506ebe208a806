"""The RPCs about memory: protobuf in and out."""

from collections.abc import AsyncGenerator
from typing import Final

from parley.orchestrator.api.requests import check_id
from parley.orchestrator.peers.for_clients import SECONDS, pass_on_errors
from parley.runtime import audit
from parley.runtime.identity.identity import current_identity
from parley.runtime.identity.roles import allows, needed_role
from parley.runtime.validation import Violations
from parley.v1 import memory_pb2, orchestrator_pb2, orchestrator_pb2_grpc
from parley.v1.memory_pb2_grpc import MemoryServiceStub

_DEFAULT_LIMIT: Final = 10
_MAX_LIMIT: Final = 100
_MAX_CHARACTERS: Final = 100_000
_MAX_DOMAIN: Final = 64
_FORGET: Final = "parley.v1.OrchestratorService/ForgetMemory"


class MemoryServicer(orchestrator_pb2_grpc.OrchestratorServiceServicer):
    """Answers for what is remembered of the caller's tenant."""

    __slots__ = ()

    memory: MemoryServiceStub

    async def SearchMemory(  # noqa: N802
        self, request: orchestrator_pb2.SearchMemoryRequest, _context: object
    ) -> AsyncGenerator[orchestrator_pb2.SearchMemoryResponse, None]:
        """Send the past debates that are most like a text."""
        _check_search(request)
        recall = memory_pb2.RecallRequest(
            text=request.text, limit=request.limit or _DEFAULT_LIMIT, domain=request.domain
        )
        with pass_on_errors("memory"):
            async for found in self.memory.Recall(recall, timeout=SECONDS):
                yield orchestrator_pb2.SearchMemoryResponse(debate=found.debate)

    async def GetMemory(  # noqa: N802
        self, request: memory_pb2.GetRecordRequest, _context: object
    ) -> memory_pb2.GetRecordResponse:
        """Return all that is remembered of a debate, and whether the caller may forget it."""
        check_id(request.debate_id)
        with pass_on_errors("memory"):
            found = await self.memory.GetRecord(request, timeout=SECONDS)
        found.may_forget = allows(current_identity().roles, needed_role(_FORGET))
        return found

    async def ForgetMemory(  # noqa: N802
        self, request: memory_pb2.ForgetDebateRequest, _context: object
    ) -> memory_pb2.ForgetDebateResponse:
        """Forget a debate, which stays itself."""
        debate = check_id(request.debate_id)
        with pass_on_errors("memory"):
            forgotten = await self.memory.ForgetDebate(request, timeout=SECONDS)
        audit.report_act(f"memory of debate {debate}")
        return forgotten

    async def ListMemoryPatterns(  # noqa: N802
        self, request: memory_pb2.ListPatternsRequest, _context: object
    ) -> memory_pb2.ListPatternsResponse:
        """Return a page of critique patterns."""
        with pass_on_errors("memory"):
            return await self.memory.ListPatterns(request, timeout=SECONDS)

    async def ListMemoryPositions(  # noqa: N802
        self, request: memory_pb2.ListPositionsRequest, _context: object
    ) -> memory_pb2.ListPositionsResponse:
        """Return a page of the position ledger."""
        with pass_on_errors("memory"):
            return await self.memory.ListPositions(request, timeout=SECONDS)

    async def ListMemoryMoments(  # noqa: N802
        self, request: memory_pb2.ListMomentsRequest, _context: object
    ) -> memory_pb2.ListMomentsResponse:
        """Return a page of moments."""
        with pass_on_errors("memory"):
            return await self.memory.ListMoments(request, timeout=SECONDS)


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
