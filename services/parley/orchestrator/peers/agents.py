"""Agents as the orchestrator reaches them: through the gateway, one call at a time."""

from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc

from parley.orchestrator.model.delta import Delta
from parley.orchestrator.model.errors import ServiceUnavailableError, StepError
from parley.orchestrator.model.positions import position_of
from parley.orchestrator.model.tasks import AnswerShape, Task
from parley.orchestrator.peers.fit_prompt import MAX_PROMPT_BYTES, fit_prompt
from parley.runtime.errors import UNKNOWN_CALLER, ParleyError, from_rpc_error, is_transport
from parley.runtime.large_texts import in_thread_per_tenant
from parley.v1 import gateway_pb2, gateway_pb2_grpc
from parley.v1.agent_pb2 import Agent, ToolCall, Usage
from parley.v1.debate_pb2 import Reply

__all__ = ["Agents", "Call", "CancelResult", "generate_request"]

Publish = Callable[[str, Delta], None]
"""Hands on a piece of a debate's text."""

_UNAVAILABLE_CODES = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_NO_OUTCOMES = frozenset({"STORE_UNAVAILABLE", "GATEWAY_UNAVAILABLE", "CALL_CANCELLED", *UNKNOWN_CALLER})
"""Reasons that say nothing of the agent. Who stops a call does not wait for its outcome; so where one is waited for, it
was stopped by an owner before, or by a gateway that gave it up."""
_MARGIN_SECONDS = 5.0
"""How much longer than the call's own limit the gateway is waited for, so that its own answer comes first."""
_MAX_ARGUMENT_CHARACTERS = 500
_MAX_PARTIAL_CHARACTERS = 100_000
"""Characters that are kept of an answer which never came to its end."""


@dataclass(frozen=True, slots=True)
class Call:
    """Names a model call for good."""

    tenant: str
    debate: str
    step: str
    attempt: int

    def to_proto(self) -> gateway_pb2.CallId:
        """Return the call as the gateway names it."""
        return gateway_pb2.CallId(
            tenant=self.tenant, debate_id=self.debate, step=self.step, step_attempt=self.attempt
        )


@dataclass(frozen=True, slots=True)
class CancelResult:
    """What became of a call that was to be stopped.

    Attributes:
        was_running: Whether it ran, or may have run.
        run: Names the run that `usage` is of; empty where that is not known.
        usage: What it had used; None: there was nothing, or nobody knows.
    """

    was_running: bool
    run: str = ""
    usage: Usage | None = None

    @property
    def counts(self) -> bool:
        """Whether it used something, or may have."""
        return self.was_running or self.usage is not None


def generate_request(
    agent: Agent, task: Task, shape: AnswerShape[Any] | None, seconds: float, affordable: int = 0
) -> gateway_pb2.GenerateRequest:
    """Return what an agent is asked for, within so many seconds, as the gateway takes it; without the call's id.

    `affordable` is how many tokens of an answer can be paid for; 0: as many as it likes.
    """
    request = gateway_pb2.GenerateRequest(
        agent=agent,
        prompt=task.prompt,
        max_output_tokens=task.max_output_tokens,
        answer_start=task.answer_start,
        affordable_output_tokens=affordable,
    )
    request.timeout.FromMilliseconds(round(seconds * 1000))
    if shape is not None:
        request.schema.name = shape.name
        request.schema.json_schema = shape.json_schema
        request.schema.accepts_prose = shape.from_prose is not None
    return request


class Agents:
    """Asks agents through a gateway and hands their text on as it comes."""

    def __init__(self, channel: grpc.aio.Channel, publish: Publish) -> None:
        """Ask over `channel`."""
        self._gateway = gateway_pb2_grpc.GatewayServiceStub(channel)
        self._publish = publish

    async def generate(self, call: Call, request: gateway_pb2.GenerateRequest) -> Reply:
        """Return the agent's answer to a request that `generate_request` made; one too large to be sent is fitted first.

        Raises:
            StepError: there is none, for good.
            OutOfReachError: the gateway is away or was drained, or the call was stopped; the same call may be made again.
        """
        request.call_id.CopyFrom(call.to_proto())
        is_too_large = request.ByteSize() > MAX_PROMPT_BYTES
        left_out = await in_thread_per_tenant(partial(fit_prompt, request)) if is_too_large else 0
        seconds = request.timeout.ToMilliseconds() / 1000
        stream = self._gateway.Generate(request, timeout=seconds + _MARGIN_SECONDS)
        written = _StreamedText()
        try:
            completed = await self._read_stream(call, stream, written)
        except grpc.aio.AioRpcError as error:
            raise _map_error(error, "" if request.HasField("schema") else written.text) from error
        return Reply(
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

    async def cancel(self, call: Call) -> CancelResult:
        """Stop a call, wherever it runs. A gateway that is away is left alone: the call ends with its lease."""
        try:
            told = await self._gateway.CancelCall(
                gateway_pb2.CancelCallRequest(call_id=call.to_proto()), timeout=_MARGIN_SECONDS
            )
        except grpc.aio.AioRpcError as error:
            if not is_transport(error) and error.code() not in _UNAVAILABLE_CODES:
                raise
            return CancelResult(was_running=True)  # as far as anybody can know
        return CancelResult(told.was_running, told.run, told.usage if told.HasField("usage") else None)

    async def _read_stream(
        self, call: Call, stream: AsyncIterable[gateway_pb2.GenerateResponse], written: "_StreamedText"
    ) -> gateway_pb2.GenerateCompleted:
        completed = None
        async for message in stream:  # to its end, since leaving it early would count as hanging up
            kind = message.WhichOneof("event")
            if kind == "delta":
                delta = message.delta
                written.append(delta)
                piece = Delta(call.step, call.attempt, delta.route_attempt, delta.offset, delta.text)
                self._publish(call.debate, piece)
            elif kind == "completed":
                completed = message.completed
        if completed is None:
            raise ServiceUnavailableError("the gateway ended a call without an answer")
        return completed


class _StreamedText:
    """What a call has streamed so far, of its present route attempt alone: a new one begins anew."""

    def __init__(self) -> None:
        self.text = ""
        self._attempt = 0

    def append(self, delta: gateway_pb2.TextDelta) -> None:
        """Take a piece in; what is beyond the bound, or does not follow on what is there, is passed over."""
        if delta.route_attempt != self._attempt:
            self._attempt, self.text = delta.route_attempt, ""
        if delta.offset == len(self.text):
            self.text = f"{self.text}{delta.text}"[:_MAX_PARTIAL_CHARACTERS]


def _shorten_arguments(call: ToolCall) -> ToolCall:
    """Return a use of a tool as it is recorded."""
    return ToolCall(
        name=call.name,
        arguments=call.arguments[:_MAX_ARGUMENT_CHARACTERS],
        failed=call.failed,
        characters=call.characters,
    )


def _map_error(error: grpc.aio.AioRpcError, partial_text: str) -> StepError | ServiceUnavailableError:
    """Tell an answer of the gateway from trouble on the way to it."""
    if is_transport(error):
        return ServiceUnavailableError(f"the gateway is away: {error.details()}", partial_text=partial_text)
    answered = from_rpc_error(error)
    if not answered.reason and answered.code == grpc.StatusCode.DEADLINE_EXCEEDED:
        # One that lives says by itself that time is over.
        return ServiceUnavailableError("the gateway did not answer", partial_text=partial_text)
    if answered.reason in _NO_OUTCOMES:
        return ServiceUnavailableError(answered.message, _usage_of(answered), partial_text)
    reason = answered.reason or answered.code.name
    return StepError(reason, answered.message, _usage_of(answered), partial_text)


def _usage_of(error: ParleyError) -> Usage:
    names = ("input_tokens", "output_tokens", "requests", "cost_micros")
    counts = {name: error.metadata.get(name, "") for name in names}
    return Usage(**{name: int(count) for name, count in counts.items() if count.isdecimal()})
