"""Agents as the orchestrator reaches them: through the gateway, one call at a time."""

from collections.abc import AsyncIterable
from dataclasses import dataclass

import grpc

from parley.orchestrator.agent_translation import agent_to_proto, tool_call_from_proto
from parley.orchestrator.deltas import Delta, Deltas
from parley.orchestrator.errors import OutOfReachError, StepError
from parley.orchestrator.events import Reply, Usage
from parley.orchestrator.positions import position_of
from parley.orchestrator.spec import AgentSpec
from parley.orchestrator.tasks import Task
from parley.orchestrator.translation import usage_from_proto
from parley.runtime.errors import ParleyError, from_rpc_error, is_transport
from parley.v1 import gateway_pb2, gateway_pb2_grpc

__all__ = ["Agents", "Call"]

_ROLES = {
    "system": gateway_pb2.PROMPT_ROLE_SYSTEM,
    "user": gateway_pb2.PROMPT_ROLE_USER,
    "assistant": gateway_pb2.PROMPT_ROLE_ASSISTANT,
}
_AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_NO_OUTCOMES = frozenset({"STORE_UNAVAILABLE", "CALL_CANCELLED"})
"""Reasons that say nothing of the agent. Who stops a call does not wait for its outcome; so where one is waited for, it
was stopped by an owner before, or by a gateway that gave it up."""
_MARGIN_SECONDS = 5.0
"""How much longer than the call's own limit the gateway is waited for, so that its own answer comes first."""


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
            tenant=self.tenant, debate_id=self.debate, step=self.step, attempt=self.attempt
        )


class Agents:
    """Asks agents through a gateway and hands their text on as it comes."""

    def __init__(self, channel: grpc.aio.Channel, deltas: Deltas) -> None:
        """Ask over `channel`."""
        self._gateway = gateway_pb2_grpc.GatewayServiceStub(channel)
        self._deltas = deltas

    async def generate(self, call: Call, agent: AgentSpec, task: Task, seconds: float) -> Reply:
        """Return the agent's answer.

        Raises:
            StepError: there is none, for good.
            OutOfReachError: the gateway is away or was drained, or the call was stopped; the same call may be made again.
        """
        request = _request(call, agent, task, seconds)
        stream = self._gateway.Generate(request, timeout=seconds + _MARGIN_SECONDS)
        try:
            completed = await self._completed(call, stream)
        except grpc.aio.AioRpcError as error:
            raise _sorted(error) from error
        return Reply(
            text=completed.text,
            position=position_of(completed.text),
            usage=usage_from_proto(completed.usage),
            latency_ms=round(completed.latency.ToMilliseconds()),
            route=completed.route,
            model=completed.model,
            truncated=completed.truncated,
            left_out=completed.prompt_characters_left_out,
            tool_calls=tuple(map(tool_call_from_proto, completed.tool_calls)),
        )

    async def cancel(self, call: Call) -> None:
        """Stop a call, wherever it runs. A gateway that is away is left alone: the call ends with its lease."""
        try:
            await self._gateway.CancelCall(
                gateway_pb2.CancelCallRequest(call_id=call.to_proto()), timeout=_MARGIN_SECONDS
            )
        except grpc.aio.AioRpcError as error:
            if not is_transport(error) and error.code() not in _AWAY:
                raise

    async def _completed(
        self, call: Call, stream: AsyncIterable[gateway_pb2.GenerateResponse]
    ) -> gateway_pb2.GenerateCompleted:
        completed = None
        async for message in stream:  # to its end, since leaving it early would count as hanging up
            kind = message.WhichOneof("event")
            if kind == "delta":
                delta = message.delta
                piece = Delta(call.step, call.attempt, delta.attempt, delta.offset, delta.text)
                self._deltas.publish(call.debate, piece)
            elif kind == "completed":
                completed = message.completed
        if completed is None:
            raise OutOfReachError("the gateway ended a call without an answer")
        return completed


def _request(call: Call, agent: AgentSpec, task: Task, seconds: float) -> gateway_pb2.GenerateRequest:
    request = gateway_pb2.GenerateRequest(
        call_id=call.to_proto(),
        agent=agent_to_proto(agent),
        prompt=[
            gateway_pb2.PromptPart(
                role=_ROLES[part.role], text=part.text, give=part.give, document=part.document
            )
            for part in task.prompt
        ],
        max_output_tokens=task.max_output_tokens,
    )
    request.timeout.FromMilliseconds(round(seconds * 1000))
    if task.shape is not None:
        request.schema.name = task.shape.name
        request.schema.json_schema = task.shape.json_schema
    return request


def _sorted(error: grpc.aio.AioRpcError) -> StepError | OutOfReachError:
    """Tell an answer of the gateway from trouble on the way to it."""
    if is_transport(error):
        return OutOfReachError(f"the gateway is away: {error.details()}")
    answered = from_rpc_error(error)
    if not answered.reason and answered.code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return OutOfReachError(
            "the gateway did not answer"
        )  # one that lives says by itself that time is over
    if answered.reason in _NO_OUTCOMES:
        return OutOfReachError(answered.message, _usage_of(answered))
    return StepError(answered.reason or answered.code.name, answered.message, _usage_of(answered))


def _usage_of(error: ParleyError) -> Usage:
    names = ("input_tokens", "output_tokens", "attempts", "cost_micros")
    counts = {name: error.metadata.get(name, "") for name in names}
    return Usage(**{name: int(count) for name, count in counts.items() if count.isdecimal()})
