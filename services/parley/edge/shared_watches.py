"""Streams of one debate share a watch of the orchestrator, which alone decides who may follow.

So each stream begins with a call of its own. If that is accepted, the answer names the caller's tenant, and the stream goes on with the
others of this tenant's debate; its own call ends, or is the one that they share from then on. Now and then it asks again, as a client would
whose connection has aged. A stream that is far behind the others reads by a call of its own until it has caught up.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final

import grpc
from google.protobuf.descriptor import MethodDescriptor
from msgspec import Struct, field

from parley.edge.broadcast import Broadcast, FellBehindError, Place
from parley.edge.calls import OrchestratorCalls, to_error
from parley.edge.event_texts import write_text
from parley.runtime.identity.guard import TENANT
from parley.runtime.wake_queue import WakeQueues
from parley.v1.orchestrator_pb2 import WatchDebateRequest

ASK_SECONDS: Final = 600.0
"""After so long at most it is asked again whether a stream may go on."""
_ANSWER_SECONDS: Final = 10.0

_Key = tuple[str, str, bool]


class _Stream(Struct):
    """One stream: what it wants, the last event that it has, and where it is in a shared watch."""

    debate: str
    deltas: bool
    headers: Mapping[str, str]
    last: int
    is_over: bool = False
    key: _Key | None = None
    shared: tuple[Broadcast, Place] | None = None


class SharedWatches(Struct):
    """The watches that streams of this edge share. `ask_seconds`: after so long at most a stream asks again whether it may go on."""

    method: MethodDescriptor
    calls: OrchestratorCalls
    ask_seconds: float = ASK_SECONDS
    _broadcasts: dict[_Key, Broadcast] = field(default_factory=dict)
    _wake_queues: WakeQueues = field(default_factory=WakeQueues)

    async def follow(
        self, request: WatchDebateRequest, headers: Mapping[str, str], client: str
    ) -> AsyncGenerator[bytes, None]:
        """Yield a debate's messages as text until its end: each event once and in order.

        `client` is the caller's address, as in `OrchestratorCalls.stream`. Raise ParleyError as that does.
        """
        stream = _Stream(request.debate_id, request.text_deltas, headers, request.after_sequence)
        with self.calls.hold_stream(self.method, headers, client):
            while not stream.is_over:
                async with aclosing(self._follow_alone(stream)) as texts:
                    async for text in texts:
                        yield text
                if stream.shared is not None:
                    async with aclosing(self._follow_shared(stream, *stream.shared)) as texts:
                        async for text in texts:
                            yield text

    async def _follow_alone(self, stream: _Stream) -> AsyncGenerator[bytes, None]:
        """Read by a call of the stream's own until it can follow a shared watch, or to the end."""
        call = self._open(stream, stream.last)
        try:
            tenant = await _find_tenant(call)
            stream.key = (tenant, stream.debate, stream.deltas) if tenant else None
            messages = aiter(call)
            while not self._join(stream, call, messages):
                message = await anext(messages, None)
                if message is None:
                    stream.is_over = True
                    return
                each = await write_text(message)
                stream.last = max(stream.last, each.sequence)
                if not (each.is_delta and stream.key):  # the shared watch brings what is still of use
                    yield each.text
        except grpc.aio.AioRpcError as error:
            raise to_error(error) from None
        finally:
            if stream.shared is None or stream.shared[0].call is not call:
                call.cancel()

    def _join(self, stream: _Stream, call: Any, messages: Any) -> bool:
        """Let a stream whose own call was accepted follow the shared watch; its own call is that if there is none."""
        if stream.key is None:
            return False
        broadcast = self._broadcasts.get(stream.key)
        if broadcast is None or broadcast.is_over:
            queue = self._wake_queues.for_tenant(stream.key[0])
            broadcast = self._broadcasts[stream.key] = Broadcast(call, messages, stream.last, queue)
        place = broadcast.join(stream.last)
        if place is not None:
            stream.shared = broadcast, place
        return place is not None

    async def _follow_shared(
        self, stream: _Stream, broadcast: Broadcast, place: Place
    ) -> AsyncGenerator[bytes, None]:
        """Read the shared watch to its end, or until the stream has to begin again by a call of its own."""
        clock = asyncio.get_running_loop().time
        asks_at = clock() + self._wait_to_ask()
        try:
            while await broadcast.wait_for_text(place):
                if clock() >= asks_at:  # heartbeats come, so that this is looked at
                    if not await self._is_still_accepted(stream, place.last):
                        return  # the next call tells the reason
                    asks_at = clock() + self._wait_to_ask()
                if text := broadcast.take(place):
                    yield text
            stream.is_over = True
        except FellBehindError:
            pass
        finally:
            stream.last, stream.shared = place.last, None
            if await broadcast.leave(place) and self._broadcasts.get(_require_key(stream)) is broadcast:
                del self._broadcasts[_require_key(stream)]

    def _wait_to_ask(self) -> float:
        return self.ask_seconds * random.uniform(0.5, 1.0)  # noqa: S311 (so that not all ask at a time)

    async def _is_still_accepted(self, stream: _Stream, last: int) -> bool:
        call = self._open(stream, last, _ANSWER_SECONDS)
        try:
            return await _find_tenant(call) == _require_key(stream)[0]
        finally:
            call.cancel()

    def _open(self, stream: _Stream, last: int, seconds: float | None = None) -> Any:
        request = WatchDebateRequest(debate_id=stream.debate, after_sequence=last, text_deltas=stream.deltas)
        return self.calls.open_unread(self.method, request, stream.headers, seconds)


def _require_key(stream: _Stream) -> _Key:
    assert stream.key is not None, "its own call was accepted"
    return stream.key


async def _find_tenant(call: Any) -> str:
    """Return the caller's tenant once its call is accepted; empty if it is refused, or the orchestrator is of a version that does not say."""
    return str(dict(await call.initial_metadata() or ()).get(TENANT, ""))
