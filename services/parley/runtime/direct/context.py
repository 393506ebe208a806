"""A call as its handler sees it."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NoReturn

import grpc

from parley.runtime.direct.exchange import OK, CallStatus, Exchange, Metadata, describe_excess, to_metadata
from parley.runtime.identity.identity import Identity
from parley.runtime.message_limits import MAX_MESSAGE_BYTES

_Given = Iterable[tuple[str, str | bytes]]


class DirectContext(grpc.aio.ServicerContext[Any, Any]):
    """What `grpc.aio` gives to a handler, for a call without a socket."""

    def __init__(self, exchange: Exchange, serialize: Callable[[Any], bytes] | None) -> None:
        """Answer `exchange` with what `serialize` makes of messages; None: they are bytes."""
        self._exchange = exchange
        self._serialize = serialize
        self._code: grpc.StatusCode | None = None
        self._details = ""
        self._trailing: Metadata = ()
        self._is_aborted = False

    @property
    def caller(self) -> Identity | None:
        """Who calls; None: who the metadata prove."""
        return self._exchange.caller

    def status(self) -> CallStatus:
        """Return how the call ends if the handler is done now."""
        if self._code is None and not (self._details or self._trailing):
            return OK
        return CallStatus(self._code or grpc.StatusCode.OK, self._details, self._trailing)

    def put(self, message: Any) -> None:
        """Send the only answer. Raise InternalError, and end the call, if it is too large."""
        made = self._to_bytes(message)
        self._exchange.send_initial(())
        self._exchange.responses.put(made)

    async def read(self) -> Any:
        """Return the next request as bytes, or `grpc.aio.EOF`."""
        message = await self._exchange.requests.read()
        return grpc.aio.EOF if message is None else message

    async def write(self, message: Any) -> None:
        """Send an answer; wait while the caller is behind."""
        if self._is_aborted:
            raise grpc.aio.AbortError("Locally aborted.")
        if self._exchange.status is not None:
            raise grpc.aio.InternalError("the call has ended")
        made = self._to_bytes(message)
        if self._exchange.initial is None:
            self._exchange.send_initial(())
        await self._exchange.responses.write(made)

    async def send_initial_metadata(self, initial_metadata: _Given) -> None:
        """Send metadata before the first answer."""
        self._exchange.send_initial(to_metadata(initial_metadata))

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: _Given = ()
    ) -> NoReturn:
        """End the call with an error, by raising."""
        if self._is_aborted:
            raise grpc.aio.UsageError("Abort already called!")
        self._is_aborted = True
        self._code, self._details = code, details or self._details
        self._trailing = to_metadata(trailing_metadata) or self._trailing
        self._exchange.finish(self.status())
        raise grpc.aio.AbortError("Locally aborted.")

    async def abort_with_status(self, status: grpc.Status) -> NoReturn:
        """End the call with an error, by raising."""
        await self.abort(status.code, status.details, status.trailing_metadata)

    def set_trailing_metadata(self, trailing_metadata: _Given) -> None:
        """Set what is sent with the status."""
        self._trailing = to_metadata(trailing_metadata)

    def trailing_metadata(self) -> Any:
        """Return what is sent with the status."""
        return self._trailing

    def set_code(self, code: grpc.StatusCode) -> None:
        """Set the status for a handler that returns."""
        self._code = code

    def code(self) -> Any:
        """Return the status that was set, or None."""
        return self._code

    def set_details(self, details: str) -> None:
        """Set the words of the status."""
        self._details = details

    def details(self) -> str:
        """Return the words of the status."""
        return self._details

    def invocation_metadata(self) -> Any:
        """Return what the caller sent."""
        return self._exchange.metadata

    def peer(self) -> str:
        """Return the caller; it has no address."""
        caller = self._exchange.caller
        return f"in-process:{caller.subject if caller else ''}"

    def peer_identities(self) -> None:
        """Return None: there is no connection that proves a name."""

    def peer_identity_key(self) -> None:
        """Return None: there is no connection that proves a name."""

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """Return nothing: there is no certificate."""
        return {}

    def time_remaining(self) -> Any:
        """Return the seconds until the deadline; None without one."""
        return self._exchange.time_remaining()

    def set_compression(self, compression: grpc.Compression) -> None:
        """Do nothing: nothing is sent."""

    def disable_next_message_compression(self) -> None:
        """Do nothing: nothing is sent."""

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call back when the call has ended."""
        self._exchange.add_done_callback(partial(callback, self))

    def cancelled(self) -> bool:
        """Return whether the caller cancelled."""
        status = self._exchange.status
        return status is not None and status.code is grpc.StatusCode.CANCELLED

    def done(self) -> bool:
        """Return whether the call has ended."""
        return self._exchange.status is not None

    def _to_bytes(self, message: Any) -> bytes:
        made: bytes = message if self._serialize is None else self._serialize(message)
        if len(made) <= MAX_MESSAGE_BYTES:
            return made
        end = describe_excess(made)
        self._exchange.finish(end)
        raise grpc.aio.InternalError(end.details)
