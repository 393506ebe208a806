"""What the gateway says, as messages."""

from math import ceil
from typing import Final

from parley.gateway.calls.registry import Cancelled
from parley.gateway.calls.stream import Delta, Event, RouteAttempt
from parley.gateway.discovery import FoundServer
from parley.gateway.failures import Failure
from parley.gateway.prompt.tools import ToolUse
from parley.gateway.routing.breaker import BreakerState
from parley.gateway.routing.route import LiveRoute
from parley.gateway.usage import Usage
from parley.runtime.errors import ParleyError
from parley.v1 import agent_pb2, gateway_pb2

__all__ = ["cancelled", "error", "found_server", "response", "route_status"]

_STATES: Final = {
    BreakerState.CLOSED: gateway_pb2.BREAKER_STATE_CLOSED,
    BreakerState.OPEN: gateway_pb2.BREAKER_STATE_OPEN,
    BreakerState.HALF_OPEN: gateway_pb2.BREAKER_STATE_HALF_OPEN,
}


def response(event: Event) -> gateway_pb2.GenerateResponse:
    """Return one message of a Generate stream."""
    if isinstance(event, Delta):
        return gateway_pb2.GenerateResponse(
            delta=gateway_pb2.TextDelta(
                route_attempt=event.route_attempt, offset=event.offset, text=event.text
            )
        )
    if isinstance(event, RouteAttempt):
        return gateway_pb2.GenerateResponse(
            route_attempt=gateway_pb2.RouteAttemptStarted(number=event.number, route=event.route)
        )
    answer = event.answer
    completed = gateway_pb2.GenerateCompleted(
        text=answer.text,
        route=answer.route,
        model=answer.model,
        usage=_usage(event.usage),
        truncated=answer.truncated,
        prompt_characters_left_out=answer.characters_left_out,
        repeats=answer.reasks,
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
        requests=usage.requests,
    )


def cancelled(call: Cancelled) -> gateway_pb2.CancelCallResponse:
    """Return what became of a call that was to be stopped."""
    return gateway_pb2.CancelCallResponse(
        was_running=call.was_running,
        usage=_usage(call.usage) if call.usage is not None else None,
        run=call.run,
    )


def error(failure: Failure, usage: Usage) -> ParleyError:
    """Return what a caller hears of a call without an answer."""
    metadata = {
        "route": failure.route,
        "provider_status": str(failure.status) if failure.status else "",
        "input_tokens": str(usage.input_tokens),
        "output_tokens": str(usage.output_tokens),
        "requests": str(usage.requests),
    }
    if usage.cost_micros is not None:
        metadata["cost_micros"] = str(usage.cost_micros)
    return ParleyError(
        failure.kind.code, failure.kind.reason, failure.message, metadata, retry_after=failure.retry_after
    )


def route_status(live: LiveRoute) -> gateway_pb2.RouteStatus:
    """Return a route and how it does."""
    snapshot = live.breaker.snapshot()
    status = gateway_pb2.RouteStatus(
        name=live.route.name,
        provider=live.route.provider,
        model=live.route.model,
        context_tokens=live.route.known_context_tokens,
        breaker=_STATES[snapshot.state],
        failures_in_a_row=snapshot.failures_in_a_row,
        last_failure=snapshot.last_failure,
        in_flight=live.queue.in_flight,
        queued=live.queue.waiting,
        local=live.route.local,
        priced=live.route.is_priced,
        demonstration=live.route.demonstration,
    )
    if live.route.input_price is not None and live.route.output_price is not None:
        status.input_price_micros = _a_million(live.route.input_price)
        status.output_price_micros = _a_million(live.route.output_price)
    if snapshot.retry_at is not None:
        status.retry_at.FromDatetime(snapshot.retry_at)
    return status


def _a_million(price: float) -> int:
    """Return what a million tokens cost, by the price of one; rounded up."""
    return ceil(price * 1_000_000)


def found_server(found: FoundServer) -> gateway_pb2.FoundServer:
    """Return a model server that was found on this machine."""
    return gateway_pb2.FoundServer(
        provider=found.provider, title=found.title, base_url=found.base_url, models=found.models
    )
