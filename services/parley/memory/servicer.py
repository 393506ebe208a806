"""MemoryService over gRPC: checks requests and converts messages, without logic of its own."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Final

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from parley.memory.debate import RememberedDebate
from parley.memory.memories import DebateReusedError, Memories
from parley.runtime.errors import ParleyError
from parley.runtime.identity.identity import current_tenant
from parley.runtime.validation import NAME, Violations
from parley.storage.ports import StorageError
from parley.storage.service_errors import to_service_error
from parley.v1 import memory_pb2 as pb
from parley.v1 import memory_pb2_grpc as pb_grpc

_MAX_BYTES: Final = 256 * 1024
_MAX_CHARACTERS: Final = 100_000
_MAX_LIMIT: Final = 100
_DEFAULT_LIMIT: Final = 5
_GENERAL: Final = "general"


class MemoryServicer(pb_grpc.MemoryServiceServicer):
    """The calls of MemoryService."""

    def __init__(self, memories: Memories, floor_percent: int) -> None:
        self._memories = memories
        self._floor_percent = floor_percent

    async def Recall(self, request: pb.RecallRequest, _context: object) -> AsyncIterator[pb.RecallResponse]:  # noqa: N802
        """Send the past debates that are most similar to a text, best first."""
        _check_recall(request)
        try:
            async for found in self._memories.recall(
                current_tenant(),
                request.text,
                domain=request.domain,
                excluded=request.excluded_debate_ids,
                limit=request.limit or _DEFAULT_LIMIT,
                floor=(request.floor_percent or self._floor_percent) / 100,
            ):
                yield pb.RecallResponse(
                    debate_id=found.debate.debate_id,
                    question=found.debate.question,
                    conclusion=found.debate.conclusion,
                    domain=found.debate.domain,
                    similarity_percent=100 * found.likeness,
                    concluded_at=_timestamp(found.debate.concluded_at),
                )
        except StorageError as error:
            raise to_service_error(error, "the store of the memory") from error

    async def RecordDebate(  # noqa: N802
        self, request: pb.RecordDebateRequest, _context: object
    ) -> pb.RecordDebateResponse:
        """Record the question and the conclusion of a debate."""
        concluded_at = _check_record(request)
        debate = RememberedDebate(
            debate_id=request.debate_id,
            question=request.question,
            conclusion=request.conclusion,
            domain=request.domain or _GENERAL,
            concluded_at=concluded_at,
        )
        try:
            existed = await self._memories.record(current_tenant(), debate)
        except DebateReusedError:
            raise ParleyError(
                grpc.StatusCode.ALREADY_EXISTS,
                "DEBATE_REUSED",
                f"debate {request.debate_id} is already recorded with other content",
                resource=("debate", request.debate_id),
            ) from None
        except StorageError as error:
            raise to_service_error(error, "the store of the memory") from error
        return pb.RecordDebateResponse(existed=existed)

    async def ForgetDebate(  # noqa: N802
        self, request: pb.ForgetDebateRequest, _context: object
    ) -> pb.ForgetDebateResponse:
        """Delete a debate."""
        violations = Violations()
        _check_debate_id(violations, request.debate_id)
        violations.refuse()
        try:
            existed = await self._memories.forget(current_tenant(), request.debate_id)
        except StorageError as error:
            raise to_service_error(error, "the store of the memory") from error
        return pb.ForgetDebateResponse(existed=existed)


def _timestamp(moment: datetime) -> Timestamp:
    found = Timestamp()
    found.FromDatetime(moment)
    return found


def _check_recall(request: pb.RecallRequest) -> None:
    violations = Violations()
    violations.check_text("text", request.text, max_characters=_MAX_CHARACTERS)
    violations.check_setting("limit", request.limit, _MAX_LIMIT)
    violations.check_setting("floor_percent", request.floor_percent, 100)
    _check_domain(violations, request.domain)
    violations.check(
        that=len(request.excluded_debate_ids) <= _MAX_LIMIT,
        field="excluded_debate_ids",
        otherwise=f"at most {_MAX_LIMIT} are allowed",
    )
    violations.refuse()


def _check_record(request: pb.RecordDebateRequest) -> datetime:
    """Return when the debate was concluded. Raise ParleyError for a bad request."""
    violations = Violations()
    _check_debate_id(violations, request.debate_id)
    violations.check_stored_text("question", request.question, max_bytes=_MAX_BYTES)
    violations.check_stored_text("conclusion", request.conclusion, max_bytes=_MAX_BYTES)
    _check_domain(violations, request.domain)
    violations.check(that=request.HasField("concluded_at"), field="concluded_at", otherwise="is not set")
    concluded_at = datetime.min.replace(tzinfo=UTC)
    try:
        concluded_at = request.concluded_at.ToDatetime(UTC)
    except (ValueError, OverflowError):
        violations.add("concluded_at", "is not a time of the years 1 to 9999")
    violations.refuse()
    return concluded_at


def _check_debate_id(violations: Violations, debate_id: str) -> None:
    violations.check(
        that=bool(NAME.fullmatch(debate_id)),
        field="debate_id",
        otherwise="must be 1 to 128 characters of [A-Za-z0-9._-]",
    )


def _check_domain(violations: Violations, domain: str) -> None:
    violations.check(
        that=len(domain) <= 64 and "\0" not in domain,
        field="domain",
        otherwise="must be at most 64 characters, without NUL",
    )
