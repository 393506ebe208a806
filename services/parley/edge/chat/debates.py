"""Debates that answer chat completions, at the orchestrator."""

import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractContextManager, aclosing
from typing import Any, Final

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message
from grpc import StatusCode
from msgspec import Struct

from parley.edge.calls import OrchestratorCalls
from parley.runtime.backoff import retry
from parley.runtime.clock import SystemClock
from parley.runtime.errors import ParleyError
from parley.runtime.printable import printable
from parley.runtime.watching import RECONNECTION
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import Cancel, DebateFailure, DebateSpec, Intervention
from parley.v1.event_pb2 import Concluded, Event
from parley.v1.orchestrator_pb2 import (
    DEBATE_VIEW_SUMMARY,
    CreateDebateRequest,
    CreateDebateResponse,
    GetAnswerRequest,
    GetAnswerResponse,
    GetDebateRequest,
    GetDebateResponse,
    InterveneRequest,
)

_CREATE_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 60.0
"""How long what a debate came to is asked for while the orchestrator is away: it would be a pity to lose it then."""
_TOO_LARGE: Final = "DEBATE_TOO_LARGE"


class Caller(Struct, frozen=True):
    """Who asks: the headers of the request, by lowercase names, and the address."""

    headers: Mapping[str, str]
    address: str


class Answer(Struct, frozen=True):
    """What a debate came to (CommonMark without control characters, for terminals), and what it used by then."""

    text: str
    usage: Usage


class ChatDebates:
    """The debates of callers."""

    def __init__(self, service: ServiceDescriptor, calls: OrchestratorCalls) -> None:
        self._methods = service.methods_by_name
        self._calls = calls

    def count_stream(self, caller: Caller) -> AbstractContextManager[None]:
        """Count a completion as a stream of its caller while the block runs. Raise ParleyError if there are too many."""
        return self._calls.count_stream(caller.headers, caller.address)

    async def check_reader(self, caller: Caller) -> None:
        """Raise ParleyError unless the orchestrator knows the caller, who may read debates."""
        await self._calls.check_reader(caller.headers)

    async def create(self, spec: DebateSpec, caller: Caller) -> str:
        """Start a debate and return its id; the same `Idempotency-Key` is the same debate."""
        request_id = caller.headers.get("idempotency-key") or uuid.uuid4().hex
        request = CreateDebateRequest(request_id=request_id, spec=spec)
        created = await self._call("CreateDebate", request, caller, _CREATE_SECONDS)
        assert isinstance(created, CreateDebateResponse)
        return created.debate_id

    async def follow(self, debate_id: str, caller: Caller) -> AsyncGenerator[Event, None]:
        """Yield the events up to `concluded` with an outcome. Raise ParleyError if the debate ends without one."""
        failure: DebateFailure | None = None
        method = self._methods["WatchDebate"]
        async with aclosing(self._calls.watch(method, debate_id, caller.headers)) as events:
            async for event in events:
                match event.WhichOneof("payload"):
                    case "concluded":
                        _check_outcome(debate_id, event.concluded)
                        yield event
                        return
                    case "debate_failed":
                        failure = event.debate_failed.failure
                    case "resumed":
                        failure = None
                yield event
        reason = f": {failure.reason}: {failure.message}" if failure is not None else ""
        raise ParleyError(StatusCode.INTERNAL, "DEBATE_FAILED", f"debate {debate_id} failed{reason}")

    async def get_answer(self, debate_id: str, concluded: Concluded, caller: Caller) -> Answer:
        """Return the answer of a debate that has concluded."""
        request = GetDebateRequest(debate_id=debate_id, view=DEBATE_VIEW_SUMMARY)
        found = await self._call("GetDebate", request, caller, _ANSWER_SECONDS)
        assert isinstance(found, GetDebateResponse)
        try:
            answer = await self._call(
                "GetAnswer", GetAnswerRequest(debate_id=debate_id), caller, _ANSWER_SECONDS
            )
        except ParleyError as error:
            if error.reason != _TOO_LARGE:
                raise
            return Answer(printable(concluded.outcome.description), found.debate.usage)
        assert isinstance(answer, GetAnswerResponse)
        return Answer(printable(answer.markdown), found.debate.usage)

    async def cancel(self, debate_id: str, caller: Caller) -> None:
        """Cancel a debate whose client has hung up. One that has ended stays as it is."""
        cancel = Intervention(cancel=Cancel(reason="the client hung up"))
        request = InterveneRequest(request_id=uuid.uuid4().hex, debate_id=debate_id, intervention=cancel)
        await self._call("Intervene", request, caller, _ANSWER_SECONDS)

    async def _call(self, name: str, request: Message, caller: Caller, seconds: float) -> Any:
        """Return the answer of a call that may be repeated, and is while nobody answers."""
        return await retry(
            lambda: self._calls.call(self._methods[name], request, caller.headers),
            on=_is_away,
            backoff=RECONNECTION,
            clock=SystemClock(),
            seconds=seconds,
        )


def _is_away(error: BaseException) -> bool:
    return isinstance(error, ParleyError) and error.code is StatusCode.UNAVAILABLE


def _check_outcome(debate_id: str, concluded: Concluded) -> None:
    if not concluded.HasField("outcome"):
        raise ParleyError(StatusCode.ABORTED, "DEBATE_CANCELLED", f"debate {debate_id} was cancelled")
