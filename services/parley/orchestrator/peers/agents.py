"""The client of the gateway: one call of an agent at a time."""

from collections.abc import AsyncIterable, Callable, Sequence
from functools import partial
from typing import Any

import grpc
from msgspec import Struct

from parley.orchestrator.model.errors import ServiceUnavailableError, StepError
from parley.orchestrator.model.positions import position_of
from parley.orchestrator.model.tasks import AnswerShape, Task
from parley.orchestrator.peers.documents import (
    MAX_INLINE_BYTES,
    Uploads,
    fill_in_documents,
    is_documents_missing,
    size_of_documents,
    with_documents,
)
from parley.orchestrator.peers.fit_prompt import MAX_PROMPT_BYTES, fit_prompt
from parley.runtime.errors import UNKNOWN_CALLER, ParleyError, from_rpc_error, is_transport
from parley.runtime.large_texts import in_thread_per_tenant
from parley.runtime.logs import get_logger
from parley.v1 import gateway_pb2, gateway_pb2_grpc
from parley.v1.agent_pb2 import Agent, ToolCall, Usage
from parley.v1.debate_pb2 import Reply
from parley.v1.orchestrator_pb2 import StepDelta

_logger = get_logger(__name__)

Publish = Callable[[str, StepDelta], None]
"""Publish a piece of a debate's text."""

_UNAVAILABLE_CODES = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_NO_OUTCOMES = frozenset(
    {"STORE_UNAVAILABLE", "ENCRYPTION_KEY_MISSING", "GATEWAY_UNAVAILABLE", "CALL_CANCELLED", *UNKNOWN_CALLER}
)
"""Reasons that do not depend on the agent. An owner that stops a call does not wait for its outcome; so if an owner waits for
a stopped call, an earlier owner stopped it, or a gateway gave it up."""
_MAX_FORGOTTEN = 256
"""Calls that one request lets the gateway forget."""
_MARGIN_SECONDS = 5.0
"""The time beyond the call's own limit to wait for the gateway, so that its own error arrives first."""
_MAX_ARGUMENT_CHARACTERS = 500
_MAX_PARTIAL_CHARACTERS = 100_000
"""Characters that are kept of an unfinished answer."""


class Call(Struct, frozen=True, order=True):
    """The lasting name of a model call."""

    tenant: str
    debate: str
    step: str
    attempt: int

    def to_proto(self) -> gateway_pb2.CallId:
        """Return the call as the gateway names it."""
        return gateway_pb2.CallId(
            tenant=self.tenant, debate_id=self.debate, step=self.step, step_attempt=self.attempt
        )


class CancelResult(Struct, frozen=True):
    """The result of stopping a call.

    Attributes:
        was_running: Whether it ran, or may have run.
        run: Names the run that `usage` belongs to; empty if unknown.
        usage: What it had used; None: nothing, or unknown.
        is_answered: Whether an answer came, whose usage counts once the call is made again.
    """

    was_running: bool
    run: str = ""
    usage: Usage | None = None
    is_answered: bool = False

    @property
    def counts(self) -> bool:
        """Whether it used something, or may have."""
        return self.was_running or self.usage is not None


def generate_request(
    agent: Agent,
    task: Task,
    shape: AnswerShape[Any] | None,
    seconds: float,
    affordable: int = 0,
    readable: int = 0,
) -> gateway_pb2.GenerateRequest:
    """Return what an agent is asked for, within so many seconds, as the gateway takes it; without the call's id.

    `affordable` is how many tokens of an answer can be paid for, `readable` how many tokens all its requests may read; 0: as many as it likes.
    """
    request = gateway_pb2.GenerateRequest(
        agent=agent,
        prompt=task.prompt,
        max_output_tokens=task.max_output_tokens,
        answer_start=task.answer_start,
        affordable_output_tokens=affordable,
        affordable_input_tokens=readable,
    )
    request.timeout.FromMilliseconds(round(seconds * 1000))
    if shape is not None:
        request.schema.name = shape.name
        request.schema.json_schema = shape.json_schema
        request.schema.accepts_prose = shape.from_prose is not None
    return request


class Agents:
    """Calls agents through a gateway and publishes their text as it arrives."""

    def __init__(self, channel: grpc.aio.Channel, publish: Publish) -> None:
        """Ask over `channel`."""
        self._gateway = gateway_pb2_grpc.GatewayServiceStub(channel)
        self._publish = publish
        self._uploads = Uploads()

    async def generate(self, call: Call, request: gateway_pb2.GenerateRequest) -> tuple[Reply, bool]:
        """Return the agent's answer to a request that `generate_request` made; one too large to be sent is fitted first.

        With it, whether the gateway waits for a moment for `forget` before it stores the answer.

        Raises:
            StepError: there is none, for good.
            ServiceUnavailableError: the gateway is away or was drained, or the call was stopped; the same call may be made again.
        """
        request.call_id.CopyFrom(call.to_proto())
        documents, left_out = size_of_documents(request), 0
        if request.ByteSize() + documents > MAX_PROMPT_BYTES:
            fill_in_documents(request, keep_digests=False)
            left_out = await in_thread_per_tenant(partial(fit_prompt, request))
        elif documents <= MAX_INLINE_BYTES:
            fill_in_documents(request, keep_digests=False)
        written = _StreamedText()
        try:
            completed = await self._ask(call, request, written)
        except grpc.aio.AioRpcError as error:
            raise _map_error(error, "" if request.HasField("schema") else written.text) from error
        reply = Reply(
            text=completed.text,
            position=position_of(completed.text),
            usage=completed.usage,
            latency=completed.latency,
            route=completed.route,
            model=completed.model,
            truncated=completed.truncated,
            prompt_characters_left_out=completed.prompt_characters_left_out + left_out,
            tool_calls=map(_shorten_arguments, completed.tool_calls),
        )
        return reply, completed.held

    async def forget(self, calls: Sequence[Call]) -> bool:
        """Let the gateway forget answers that are recorded; return whether it does. If it is away, they expire there in a day."""
        ids = [each.to_proto() for each in calls]
        try:
            for start in range(0, len(ids), _MAX_FORGOTTEN):
                some = gateway_pb2.ForgetAnswersRequest(call_ids=ids[start : start + _MAX_FORGOTTEN])
                await self._gateway.ForgetAnswers(some, timeout=_MARGIN_SECONDS)
        except grpc.aio.AioRpcError as error:
            _logger.info("the gateway keeps recorded answers until they expire", error=error.details())
            return False
        return True

    async def cancel(self, call: Call) -> CancelResult:
        """Stop a call on any replica. If the gateway is away, do nothing: the call ends with its lease."""
        try:
            response = await self._gateway.CancelCall(
                gateway_pb2.CancelCallRequest(call_id=call.to_proto()), timeout=_MARGIN_SECONDS
            )
        except grpc.aio.AioRpcError as error:
            if not is_transport(error) and error.code() not in _UNAVAILABLE_CODES:
                raise
            return CancelResult(was_running=True)  # it may have
        usage = response.usage if response.HasField("usage") else None
        return CancelResult(response.was_running, response.run, usage, response.answered)

    async def _ask(
        self, call: Call, request: gateway_pb2.GenerateRequest, written: "_StreamedText"
    ) -> gateway_pb2.GenerateCompleted:
        """Return what the gateway answers. Documents are sent only if it does not have them."""
        try:
            return await self._read_stream(call, self._start(request), written)
        except grpc.aio.AioRpcError as error:
            if not is_documents_missing(error):
                raise
        async with self._uploads.wait_for_turn(request) as turn:
            try:  # another call may have sent them meanwhile
                return await self._read_stream(call, self._start(request), written, turn.end)
            except grpc.aio.AioRpcError as error:
                if not is_documents_missing(error):
                    raise
            whole = await in_thread_per_tenant(partial(with_documents, request))
            return await self._read_stream(call, self._start(whole), written, turn.end)

    def _start(self, request: gateway_pb2.GenerateRequest) -> AsyncIterable[gateway_pb2.GenerateResponse]:
        seconds = request.timeout.ToMilliseconds() / 1000
        return self._gateway.Generate(request, timeout=seconds + _MARGIN_SECONDS)

    async def _read_stream(
        self,
        call: Call,
        stream: AsyncIterable[gateway_pb2.GenerateResponse],
        written: "_StreamedText",
        on_first: Callable[[], None] = lambda: None,
    ) -> gateway_pb2.GenerateCompleted:
        """Return the last message of a stream. `on_first` is called once the gateway has read the request."""
        completed = None
        async for message in stream:  # to its end, since leaving it early would cancel the call
            on_first()
            kind = message.WhichOneof("event")
            if kind == "delta":
                delta = message.delta
                piece = StepDelta(
                    key=call.step,
                    step_attempt=call.attempt,
                    route_attempt=delta.route_attempt,
                    offset=delta.offset,
                    text=delta.text,
                )
                written.append(piece)
                self._publish(call.debate, piece)
            elif kind == "completed":
                completed = message.completed
        if completed is None:
            raise ServiceUnavailableError("the gateway ended a call without an answer")
        return completed


class _StreamedText:
    """What a call has streamed so far, of its current route attempt only: a new one starts empty."""

    def __init__(self) -> None:
        self.text = ""
        self._attempt = 0

    def append(self, piece: StepDelta) -> None:
        """Append a piece; ignore text beyond the bound, and pieces that leave a gap."""
        if piece.route_attempt != self._attempt:
            self._attempt, self.text = piece.route_attempt, ""
        if piece.offset == len(self.text):
            self.text = f"{self.text}{piece.text}"[:_MAX_PARTIAL_CHARACTERS]


def _shorten_arguments(call: ToolCall) -> ToolCall:
    """Return a use of a tool as it is recorded."""
    return ToolCall(
        name=call.name,
        arguments=call.arguments[:_MAX_ARGUMENT_CHARACTERS],
        failed=call.failed,
        characters=call.characters,
    )


def _map_error(error: grpc.aio.AioRpcError, partial_text: str) -> StepError | ServiceUnavailableError:
    """Return the error of a call: an outcome by the gateway, or a gateway that is unavailable."""
    if is_transport(error):
        return ServiceUnavailableError(f"the gateway is away: {error.details()}", partial_text=partial_text)
    answered = from_rpc_error(error)
    if not answered.reason and answered.code == grpc.StatusCode.DEADLINE_EXCEEDED:
        # A gateway that is up would report the timeout by itself.
        return ServiceUnavailableError("the gateway did not answer", partial_text=partial_text)
    if answered.reason in _NO_OUTCOMES:
        return ServiceUnavailableError(answered.message, _usage_of(answered), partial_text)
    reason = answered.reason or answered.code.name
    return StepError(reason, answered.message, _usage_of(answered), partial_text)


def _usage_of(error: ParleyError) -> Usage:
    names = ("input_tokens", "output_tokens", "requests", "cost_micros")
    counts = {name: error.metadata.get(name, "") for name in names}
    return Usage(**{name: int(count) for name, count in counts.items() if count.isdecimal()})
