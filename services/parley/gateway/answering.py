"""From a checked request to an answer: its time, its routes, and what spans say of it."""

import asyncio
from typing import Final

from parley.gateway.answer import Answer
from parley.gateway.calls.stream import RunningCall
from parley.gateway.requests import CheckedRequest
from parley.gateway.routing.call import Call
from parley.gateway.routing.fallback import Fallback
from parley.gateway.routing.table import RouteTable
from parley.gateway.tracing import TraceLabels
from parley.runtime import deadline
from parley.runtime.labels import labels

__all__ = ["Answering"]

_MARGIN_SECONDS: Final = 0.25
_MARGIN_SHARE: Final = 0.05
"""The time before its caller's deadline at which a call ends, so that the caller hears from us what happened."""


class Answering:
    """Answers checked requests over the routes of a table. `call_seconds` is the time of calls that name none."""

    def __init__(self, table: RouteTable, fallback: Fallback, call_seconds: float) -> None:
        self._table = table
        self._fallback = fallback
        self._call_seconds = call_seconds

    def ends(self, checked: CheckedRequest) -> float:
        """Return when a call that begins now ends at the latest, in the loop's time."""
        seconds = checked.seconds if checked.seconds is not None else self._call_seconds
        left = deadline.remaining()
        if left is not None:
            seconds = max(min(seconds, left - min(_MARGIN_SECONDS, _MARGIN_SHARE * left)), 0.0)
        return asyncio.get_running_loop().time() + seconds

    async def answer(self, checked: CheckedRequest, ends: float, running: RunningCall) -> Answer:
        """Return the answer, and report to the running call. Raises Failure."""
        debate = checked.key.debate_id if checked.key is not None else labels().get("debate", "")
        routes = self._table.chosen(checked.routes)
        await self._table.learn_prices(routes)
        call = Call(
            routes,
            checked.prompt,
            max(ends - asyncio.get_running_loop().time(), 0.0),
            checked.shape,
            checked.max_output_tokens,
            checked.temperature,
            TraceLabels(checked.agent_name, debate),
            checked.tools,
            checked.tool_call_limit,
            checked.answer_start,
            checked.affordable_output_tokens,
        )
        return await self._fallback.run(call, running.meter, running)
