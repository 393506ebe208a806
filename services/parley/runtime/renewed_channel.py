"""A channel that is made again when the certificates change that it was made with.

gRPC for Python reads a client's certificates once, when a channel is made.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

import grpc

__all__ = ["RenewedChannel"]

_LAST_CALLS_SECONDS: Final = 900.0
"""How long calls on a channel that was replaced may still run: as long as on a connection that has grown old."""

_Multi = Callable[..., Any]


class RenewedChannel(grpc.aio.Channel):
    """Calls go over the channel of the time; those that run on the one before end there."""

    def __init__(self, version: Callable[[], object], make: Callable[[], grpc.aio.Channel]) -> None:
        """Make a channel, and another one as soon as `version` returns something else."""
        self._version = version
        self._make = make
        self._made_with = version()
        self._channel = make()
        self._ending: dict[asyncio.Task[None], grpc.aio.Channel] = {}

    async def __aenter__(self) -> Self:
        await self._channel.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        await self.close()
        return None

    async def close(self, grace: float | None = None) -> None:
        """Close the channel, and those before it; running calls have `grace` seconds to end."""
        channels = [self._channel, *self._ending.values()]
        for task in self._ending:
            task.cancel()
        await asyncio.gather(*(each.close(grace) for each in channels))

    def get_state(  # the signature is grpc.aio.Channel's
        self,
        try_to_connect: bool = False,  # noqa: FBT001, FBT002
    ) -> grpc.ChannelConnectivity:
        """Return the state of the connection."""
        return self._current().get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait until the state is another one."""
        await self._current().wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Wait until there is a connection."""
        await self._current().channel_ready()

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a method of one request and one answer."""
        return self._multi(lambda channel: channel.unary_unary(method, *args, **kwargs))

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a method of one request and a stream of answers."""
        return self._multi(lambda channel: channel.unary_stream(method, *args, **kwargs))

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a method of a stream of requests and one answer."""
        return self._multi(lambda channel: channel.stream_unary(method, *args, **kwargs))

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a method of a stream of requests and a stream of answers."""
        return self._multi(lambda channel: channel.stream_stream(method, *args, **kwargs))

    def _multi(self, of: Callable[[grpc.aio.Channel], _Multi]) -> _Multi:
        made: tuple[grpc.aio.Channel, _Multi] | None = None

        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal made
            channel = self._current()
            if made is None or made[0] is not channel:
                made = channel, of(channel)
            return made[1](*args, **kwargs)

        return call

    def _current(self) -> grpc.aio.Channel:
        version = self._version()
        if version != self._made_with:
            task = asyncio.create_task(self._channel.close(_LAST_CALLS_SECONDS))
            self._ending[task] = self._channel
            task.add_done_callback(self._ending.pop)
            self._made_with, self._channel = version, self._make()
        return self._channel
