"""One call of the tool `debate`: the debate is followed, its checkpoints are put to the person, and the result is read."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
import grpc
from mcp.server.mcpserver import Context
from mcp_types import ElicitRequest, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from parley.client import DebateSpec, ParleyClient
from parley.mcp.asking import can_ask, create_form, send_answer
from parley.mcp.following import Progress, Stop, follow_debate
from parley.mcp.readings import read_debate
from parley.mcp.results import DebateResult
from parley.runtime.errors import FieldViolation, ParleyError, invalid_argument
from parley.runtime.validation import DEBATE_ID
from parley.v1.debate_pb2 import Waiting

_CANCEL_SECONDS: Final = 10.0


class DebateCall:
    """A call that follows one debate to its end, over several rounds of the protocol if a person is asked."""

    def __init__(
        self, parley: ParleyClient, context: Context[Any, Any], is_stopping: Callable[[], bool]
    ) -> None:
        self._parley = parley
        self._is_stopping = is_stopping
        self._context = context
        self._progress = Progress(self._report)

    async def run(self, spec: DebateSpec, *, cancel_with_call: bool) -> DebateResult | InputRequiredResult:
        """Create the debate, or go on with the one that the client was asked about, and return its result or a form. Raise ParleyError."""
        state = self._context.request_state
        if state is None:
            with anyio.CancelScope(shield=True):  # else a debate could begin that the call does not know
                stop = Stop(0)
                debate_id = await self._parley.create_debate(spec)
        else:
            debate_id, stop = _read_state(state)
        async with self._cancelling(debate_id, cancel_with_call=cancel_with_call):
            await self._progress.send(f"debate {debate_id}")
            if state is not None and not await self._send_given_answer(debate_id, stop):
                return await read_debate(self._parley, debate_id)
            return await self._follow(debate_id, stop)

    async def _follow(self, debate_id: str, stop: Stop) -> DebateResult | InputRequiredResult:
        while True:
            stop = await follow_debate(self._parley, debate_id, stop.sequence, self._progress)
            waiting = await self._find_open(debate_id, stop)
            if waiting is None:
                if stop.checkpoint:  # another person closed it meanwhile
                    continue
                break
            form = create_form(debate_id, waiting) if can_ask(self._context.client_capabilities) else None
            if form is None:
                break
            if self._context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                state = json.dumps([debate_id, stop.sequence, stop.checkpoint])
                return InputRequiredResult(
                    input_requests={stop.checkpoint: ElicitRequest(params=form)}, request_state=state
                )
            if not self._context.session.can_send_request:
                break
            answer = await self._context.session.elicit_form(
                form.message, form.requested_schema, self._context.request_id
            )
            if not await self._send_answer(debate_id, waiting, answer):
                break
        return await read_debate(self._parley, debate_id)

    async def _send_given_answer(self, debate_id: str, stop: Stop) -> bool:
        """Send the answer that came with this round. Return False if there is none."""
        given = (self._context.input_responses or {}).get(stop.checkpoint)
        waiting = await self._find_open(debate_id, stop)
        if waiting is None:
            return True
        return isinstance(given, ElicitResult) and await self._send_answer(debate_id, waiting, given)

    async def _send_answer(self, debate_id: str, waiting: Waiting, answer: ElicitResult) -> bool:
        try:
            return await send_answer(self._parley, debate_id, waiting, answer)
        except ParleyError as error:
            if error.code == grpc.StatusCode.FAILED_PRECONDITION:  # another person was first
                return True
            raise

    async def _find_open(self, debate_id: str, stop: Stop) -> Waiting | None:
        """Return what the checkpoint asks at which the following stopped; None if it is not open."""
        if not stop.checkpoint:
            return None
        waiting = (await self._parley.get_summary(debate_id)).waiting
        return waiting if waiting.checkpoint == stop.checkpoint else None

    @asynccontextmanager
    async def _cancelling(self, debate_id: str, *, cancel_with_call: bool) -> AsyncIterator[None]:
        """Cancel the debate if the call is cancelled in the block and its argument says so."""
        try:
            yield
        except anyio.get_cancelled_exc_class():
            if cancel_with_call and not self._is_stopping():
                with anyio.move_on_after(_CANCEL_SECONDS, shield=True), suppress(ParleyError):
                    await self._parley.cancel(debate_id, "the MCP call was cancelled")
            raise

    async def _report(self, number: float, text: str) -> None:
        await self._context.report_progress(number, None, text)


def _read_state(state: str) -> tuple[str, Stop]:
    """Return the debate and where its following stopped. The client may have changed it: the orchestrator decides what it may do."""
    try:
        debate_id, sequence, checkpoint = json.loads(state)
        if (
            DEBATE_ID.fullmatch(debate_id)
            and isinstance(sequence, int)
            and sequence >= 0
            and isinstance(checkpoint, str)
        ):
            return debate_id, Stop(sequence, checkpoint)
    except (ValueError, TypeError):
        pass
    raise invalid_argument([FieldViolation("requestState", "is not from this server; call the tool anew")])
