"""The gateway's methods: protobuf in and out, nothing decided here."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, cast

from grpc.aio import ServicerContext

from parley.gateway.agents import Roster
from parley.gateway.breaker import BreakerState
from parley.gateway.call import Answer, Call, Usage
from parley.gateway.calling import Calling
from parley.gateway.calls import Calls
from parley.gateway.endpoint import TraceLabels
from parley.gateway.errors_table import UNKNOWN_MODEL, AttemptFailed
from parley.gateway.requests import CheckedRequest, check_call_id, check_generate
from parley.gateway.routes import LiveRoute, RouteTable
from parley.gateway.running import Attempt, CallFailed, Delta, Event, RunningCall
from parley.gateway.tools import ToolUse
from parley.runtime import deadline, logs
from parley.runtime.draining import Draining
from parley.runtime.errors import ParleyError, not_found
from parley.v1 import agent_pb2, gateway_pb2, gateway_pb2_grpc

__all__ = ["GatewayServicer"]

_logger = logs.get_logger(__name__)

_Context = ServicerContext[Any, Any]
_Changes = AsyncGenerator[LiveRoute, None]
_MARGIN_SECONDS: Final = 0.25
_MARGIN_SHARE: Final = 0.05
_STATES: Final = {
    BreakerState.CLOSED: gateway_pb2.BREAKER_STATE_CLOSED,
    BreakerState.OPEN: gateway_pb2.BREAKER_STATE_OPEN,
    BreakerState.HALF_OPEN: gateway_pb2.BREAKER_STATE_HALF_OPEN,
}


@dataclass(slots=True)
class GatewayServicer(gateway_pb2_grpc.GatewayServiceServicer):
    """Answers for agents."""

    roster: Roster
    table: RouteTable
    calling: Calling
    calls: Calls
    call_seconds: float
    draining: Draining

    async def Generate(  # noqa: N802
        self,
        request: gateway_pb2.GenerateRequest,
        context: _Context,  # noqa: ARG002
    ) -> AsyncIterator[gateway_pb2.GenerateResponse]:
        """Generates one text, or one structured answer."""
        checked = check_generate(request)
        digest = _digest(request) if checked.key is not None else ""
        # From here on: waiting for the store, or for another replica, is part of the call's time.
        ends = asyncio.get_running_loop().time() + self._seconds(checked)

        def answering(running: RunningCall) -> Coroutine[Any, Any, Answer]:
            return self._run(checked, ends, running)

        try:
            async with aclosing(self.calls.listen(checked.key, digest, answering, ends)) as events:
                async for event in events:
                    yield _response(event)
        except CallFailed as failed:
            raise _error(failed.failure, failed.usage) from None

    async def CancelCall(  # noqa: N802
        self,
        request: gateway_pb2.CancelCallRequest,
        context: _Context,  # noqa: ARG002
    ) -> gateway_pb2.CancelCallResponse:
        """Stops a call by its id at once."""
        return gateway_pb2.CancelCallResponse(was_running=await self.calls.cancel(check_call_id(request)))

    async def ListAgents(  # noqa: N802
        self,
        request: gateway_pb2.ListAgentsRequest,  # noqa: ARG002
        context: _Context,  # noqa: ARG002
    ) -> gateway_pb2.ListAgentsResponse:
        """Lists the configured agents, ordered by id."""
        return gateway_pb2.ListAgentsResponse(
            agents=self.roster.agents.values(),
            default_team=self.roster.default_team,
            default_judge=self.roster.default_judge,
        )

    async def GetAgent(  # noqa: N802
        self,
        request: gateway_pb2.GetAgentRequest,
        context: _Context,  # noqa: ARG002
    ) -> gateway_pb2.GetAgentResponse:
        """Returns one configured agent."""
        agent: agent_pb2.Agent | None = self.roster.agents.get(request.agent_id)
        if agent is None:
            raise not_found("agent", request.agent_id)
        return gateway_pb2.GetAgentResponse(agent=agent)

    async def ListRoutes(  # noqa: N802
        self,
        request: gateway_pb2.ListRoutesRequest,  # noqa: ARG002
        context: _Context,  # noqa: ARG002
    ) -> gateway_pb2.ListRoutesResponse:
        """Lists the routes with their breaker states, ordered by name."""
        return gateway_pb2.ListRoutesResponse(
            routes=[_status(live) for live in self.table.listing()],
            default_routes=self.table.known_defaults(),
            open_providers=self.table.open_providers,
        )

    async def WatchRoutes(  # noqa: N802
        self,
        request: gateway_pb2.WatchRoutesRequest,  # noqa: ARG002
        context: _Context,  # noqa: ARG002
    ) -> AsyncIterator[gateway_pb2.WatchRoutesResponse]:
        """Sends every route's state, then each change, until the caller hangs up."""
        async with aclosing(cast(_Changes, self.draining.until(self._route_changes()))) as changes:
            async for live in changes:
                yield gateway_pb2.WatchRoutesResponse(route=_status(live))

    async def _run(self, checked: CheckedRequest, ends: float, running: RunningCall) -> Answer:
        labels = TraceLabels(
            checked.agent_name,
            checked.key.debate_id if checked.key is not None else logs.labels().get("debate", ""),
        )
        call = Call(
            self._routes(checked.routes),
            checked.prompt,
            max(ends - asyncio.get_running_loop().time(), 0.0),
            checked.shape,
            checked.max_output_tokens,
            checked.temperature,
            labels,
            checked.tools,
            checked.tool_call_limit,
        )
        return await self.calling.run(call, running.tally, running)

    def _routes(self, names: Sequence[str]) -> tuple[LiveRoute, ...]:
        """The routes of these names, or the default ones. One that is not there is passed over if another one is."""
        if not names:
            return self.table.defaults()
        found = {name: self.table.get(name) for name in names}
        gone = [name for name, live in found.items() if live is None]
        known = ", ".join(self.table.names()) or "none"
        said = f"there is no route {' or '.join(map(repr, gone))}; routes: {known}"
        if len(gone) == len(found):
            raise AttemptFailed(UNKNOWN_MODEL, said, route=gone[0])
        if gone:
            _logger.error("route needs attention", route=gone[0], what=UNKNOWN_MODEL.name, said=said)
        return tuple(live for live in found.values() if live is not None)

    def _seconds(self, checked: CheckedRequest) -> float:
        seconds = checked.seconds if checked.seconds is not None else self.call_seconds
        left = deadline.remaining()
        if left is None:
            return seconds
        # A margin before the caller's own deadline, so that it hears from us what happened.
        return max(min(seconds, left - min(_MARGIN_SECONDS, _MARGIN_SHARE * left)), 0.0)

    async def _route_changes(self) -> AsyncIterator[LiveRoute]:
        async with self.table.watching() as watcher:
            for live in self.table.listing():
                yield live
            while True:
                await watcher.wake.wait()
                watcher.wake.clear()
                names, watcher.changed = list(watcher.changed), {}
                for name in names:
                    live_now = self.table.get(name)
                    if live_now is not None:
                        yield live_now


def _response(event: Event) -> gateway_pb2.GenerateResponse:
    if isinstance(event, Delta):
        return gateway_pb2.GenerateResponse(
            delta=gateway_pb2.TextDelta(attempt=event.attempt, offset=event.offset, text=event.text)
        )
    if isinstance(event, Attempt):
        return gateway_pb2.GenerateResponse(
            attempt=gateway_pb2.AttemptStarted(number=event.number, route=event.route)
        )
    answer = event.answer
    completed = gateway_pb2.GenerateCompleted(
        text=answer.text,
        route=answer.route,
        model=answer.model,
        usage=_usage(event.usage),
        truncated=answer.truncated,
        prompt_characters_left_out=answer.characters_left_out,
        reasks=answer.reasks,
        stored=event.stored,
        tool_calls=[_tool_call(each) for each in answer.tool_calls],
    )
    completed.latency.FromNanoseconds(round(event.seconds * 1e9))
    completed.queued.FromNanoseconds(round(event.usage.queued_seconds * 1e9))
    return gateway_pb2.GenerateResponse(completed=completed)


def _tool_call(used: ToolUse) -> agent_pb2.ToolCall:
    return agent_pb2.ToolCall(
        name=used.name, arguments=used.arguments, failed=used.failed, characters=used.characters
    )


def _usage(usage: Usage) -> agent_pb2.Usage:
    return agent_pb2.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_micros=usage.cost_micros,
        attempts=usage.requests,
    )


def _error(failure: AttemptFailed, usage: Usage) -> ParleyError:
    metadata = {
        "route": failure.route,
        "provider_status": str(failure.status) if failure.status else "",
        "input_tokens": str(usage.input_tokens),
        "output_tokens": str(usage.output_tokens),
        "attempts": str(usage.requests),
    }
    if usage.cost_micros is not None:
        metadata["cost_micros"] = str(usage.cost_micros)
    return ParleyError(
        failure.row.code, failure.row.reason, failure.message, metadata, retry_after=failure.retry_after
    )


def _status(live: LiveRoute) -> gateway_pb2.RouteStatus:
    snapshot = live.breaker.snapshot()
    status = gateway_pb2.RouteStatus(
        name=live.route.name,
        provider=live.route.provider,
        model=live.route.model,
        context_tokens=live.route.context_tokens,
        breaker=_STATES[snapshot.state],
        failures_in_a_row=snapshot.failures_in_a_row,
        last_failure=snapshot.last_failure,
        in_flight=live.queue.in_flight,
        queued=live.queue.waiting,
        local=live.route.local,
    )
    if snapshot.retry_at is not None:
        status.retry_at.FromDatetime(snapshot.retry_at)
    return status


def _digest(request: gateway_pb2.GenerateRequest) -> str:
    """What the call asks; its time is not part of it, since that is less with every try."""
    asked = gateway_pb2.GenerateRequest()
    asked.CopyFrom(request)
    asked.ClearField("timeout")
    return hashlib.blake2b(asked.SerializeToString(deterministic=True), digest_size=32).hexdigest()
