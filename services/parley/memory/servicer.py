"""MemoryService over gRPC: protobuf in and out, requests checked, nothing decided."""

import re
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from typing import Final

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from parley.memory.debate import RememberedDebate
from parley.memory.memories import DebateReusedError, Memories
from parley.runtime.errors import FieldViolation, ParleyError, invalid_argument, unavailable
from parley.runtime.tenancy import current_tenant
from parley.storage.ports import StorageError
from parley.v1 import memory_pb2 as pb
from parley.v1 import memory_pb2_grpc as pb_grpc

__all__ = ["MemoryServicer"]

_DEBATE_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
_MOST_BYTES: Final = 256 * 1024
_MOST_CHARACTERS: Final = 100_000
_MOST_RECALLED: Final = 100
_RECALLED: Final = 5
_GENERAL: Final = "general"


class MemoryServicer(pb_grpc.MemoryServiceServicer):
    """Answers the calls of MemoryService."""

    def __init__(self, memories: Memories, floor_percent: int) -> None:
        self._memories = memories
        self._floor_percent = floor_percent

    async def Recall(self, request: pb.RecallRequest, _context: object) -> AsyncIterator[pb.RecallResponse]:  # noqa: N802
        """Sends the past debates most like a text, best first."""
        _refuse(*_recall_violations(request))
        try:
            async for found in self._memories.recall(
                current_tenant(),
                request.text,
                domain=request.domain,
                excluded=request.excluded_debate_ids,
                limit=request.limit or _RECALLED,
                floor=(request.floor_percent or self._floor_percent) / 100,
            ):
                yield pb.RecallResponse(
                    debate_id=found.debate.debate_id,
                    question=found.debate.question,
                    conclusion=found.debate.conclusion,
                    domain=found.debate.domain,
                    likeness_percent=100 * found.likeness,
                    concluded_at=_timestamp(found.debate.concluded_at),
                )
        except StorageError as error:
            raise _store_unavailable(error) from error

    async def RecordDebate(  # noqa: N802
        self, request: pb.RecordDebateRequest, _context: object
    ) -> pb.RecordDebateResponse:
        """Records what a debate was asked and what it concluded."""
        _refuse(*_record_violations(request))
        debate = RememberedDebate(
            debate_id=request.debate_id,
            question=request.question,
            conclusion=request.conclusion,
            domain=request.domain or _GENERAL,
            concluded_at=request.concluded_at.ToDatetime(UTC),
        )
        try:
            existed = await self._memories.record(current_tenant(), debate)
        except DebateReusedError:
            raise ParleyError(
                grpc.StatusCode.ALREADY_EXISTS,
                "DEBATE_REUSED",
                f"other content is recorded for the debate {request.debate_id}",
                resource=("debate", request.debate_id),
            ) from None
        except StorageError as error:
            raise _store_unavailable(error) from error
        return pb.RecordDebateResponse(existed=existed)


def _store_unavailable(error: StorageError) -> ParleyError:
    return unavailable("STORE_UNAVAILABLE", f"the store of the memory failed: {error}", retry_after=1.0)


def _timestamp(moment: datetime) -> Timestamp:
    found = Timestamp()
    found.FromDatetime(moment)
    return found


def _refuse(*violations: FieldViolation) -> None:
    if violations:
        raise invalid_argument(violations)


def _recall_violations(request: pb.RecallRequest) -> Iterable[FieldViolation]:
    if not request.text.strip():
        yield FieldViolation("text", "is blank")
    elif len(request.text) > _MOST_CHARACTERS:
        yield FieldViolation(
            "text", f"has {len(request.text)} characters, at most {_MOST_CHARACTERS} are allowed"
        )
    if not 0 <= request.limit <= _MOST_RECALLED:
        yield FieldViolation(
            "limit", f"is {request.limit}, must be 1 to {_MOST_RECALLED}, or 0 for the default"
        )
    if not 0 <= request.floor_percent <= 100:
        yield FieldViolation(
            "floor_percent", f"is {request.floor_percent}, must be 1 to 100, or 0 for the default"
        )
    yield from _domain_violations(request.domain)
    if len(request.excluded_debate_ids) > _MOST_RECALLED:
        yield FieldViolation("excluded_debate_ids", f"at most {_MOST_RECALLED} are allowed")


def _record_violations(request: pb.RecordDebateRequest) -> Iterable[FieldViolation]:
    if not _DEBATE_ID.fullmatch(request.debate_id):
        yield FieldViolation("debate_id", "must be 1 to 128 characters of [A-Za-z0-9._-]")
    for name, text in (("question", request.question), ("conclusion", request.conclusion)):
        if not text.strip():
            yield FieldViolation(name, "is blank")
        elif len(text.encode()) > _MOST_BYTES:
            yield FieldViolation(name, f"is longer than {_MOST_BYTES // 1024} KiB")
        elif "\0" in text:
            yield FieldViolation(name, "holds a NUL character")
    yield from _domain_violations(request.domain)
    if not request.HasField("concluded_at"):
        yield FieldViolation("concluded_at", "is not set")


def _domain_violations(domain: str) -> Iterable[FieldViolation]:
    if len(domain) > 64 or "\0" in domain:
        yield FieldViolation("domain", "must be at most 64 characters, without NUL")
