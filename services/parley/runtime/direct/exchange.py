"""One call, as both of its sides see it: messages, metadata, deadline, and how it ended."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

import grpc
from msgspec import Struct

from parley.runtime.direct.message_pipe import MessagePipe
from parley.runtime.direct.waiters import Waiters
from parley.runtime.identity.identity import Identity
from parley.runtime.message_limits import MAX_MESSAGE_BYTES

Metadata = tuple[tuple[str, str | bytes], ...]


class CallStatus(Struct, frozen=True):
    """How a call ended."""

    code: grpc.StatusCode
    details: str = ""
    trailing: Metadata = ()


OK: Final = CallStatus(grpc.StatusCode.OK)
LATE: Final = CallStatus(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
CANCELLED: Final = CallStatus(grpc.StatusCode.CANCELLED, "Locally cancelled by application!")


class Exchange(Waiters):
    """A call that runs, or has ended.

    Attributes:
        metadata: What the caller sent.
        caller: Who it is, without a proof: it runs in this process. None: the metadata prove it.
        requests: From the caller to the handler.
        responses: From the handler to the caller.
        initial: What the handler sent first; None: nothing yet.
        status: How the call ended for its caller; None: it runs, or the caller has not read all answers.
    """

    __slots__ = (
        "_callbacks",
        "_deadline",
        "_final",
        "_loop",
        "_one_answer",
        "_task",
        "_timer",
        "caller",
        "initial",
        "metadata",
        "requests",
        "responses",
        "status",
    )

    def __init__(self, metadata: Metadata, caller: Identity | None, *, one_answer: bool) -> None:
        """Begin a call. `one_answer`: its caller takes one answer, which comes with the status."""
        super().__init__()
        self.metadata = metadata
        self.caller = caller
        self.requests = MessagePipe()
        self.responses = MessagePipe()
        self.initial: Metadata | None = None
        self.status: CallStatus | None = None
        self._one_answer = one_answer
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._final: CallStatus | None = None
        self._callbacks: list[Callable[[], object]] = []

    def start(self, task: asyncio.Task[None], timeout: float | None) -> None:
        """Let `task` answer, within `timeout` seconds if given."""
        self._task = task
        if timeout is not None:
            self._deadline = self._loop.time() + timeout
            self._timer = self._loop.call_at(self._deadline, self.cut, LATE)

    def time_remaining(self) -> float | None:
        """Return the seconds until the deadline; None without one."""
        return None if self._deadline is None else max(self._deadline - self._loop.time(), 0.0)

    def send_initial(self, metadata: Metadata) -> None:
        """Send what comes before the answers. A second call does nothing."""
        if self.initial is None:
            self.initial = metadata
            self.wake()

    async def read_response(self) -> bytes | None:
        """Return the next answer; None: the call has ended."""
        message = self.responses.take()
        if message is None:
            message = await self.responses.read()
        if self.status is None and self._final is not None and self.responses.is_empty:
            self._end(self._final)
        return message

    def finish(self, status: CallStatus) -> None:
        """End the call as its handler says: for the caller when it has read all answers. Only the first end counts."""
        if self._final is None and self.status is None:
            self._final = status
            self.responses.close()
            if self._one_answer or self.responses.is_empty:
                self._end(status)
            else:
                self.requests.cut()  # nobody reads them: their writer must not wait

    def cut(self, status: CallStatus) -> bool:
        """End the call at once, on both sides; return False if it was over."""
        if self.status is not None:
            return False
        self.responses.cut()
        task = self._task
        self._end(status)
        if task is not None and not task.done():
            task.cancel()
        return True

    def add_done_callback(self, callback: Callable[[], object]) -> None:
        """Call back when the call has ended for its caller, or now."""
        if self.status is None:
            self._callbacks.append(callback)
        else:
            callback()

    async def wait_until_ended(self) -> CallStatus:
        """Wait for the end and return it."""
        while self.status is None:
            await self.wait()
        return self.status

    async def wait_until_reached(self) -> None:
        """Wait until the handler has sent something, or the call has ended."""
        while self.initial is None and self.status is None:
            await self.wait()

    def _end(self, status: CallStatus) -> None:
        self.status = status
        self.initial = self.initial or ()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._task = None  # both refer to this call
        self.requests.cut()
        self.wake()
        callbacks, self._callbacks = self._callbacks, []
        for each in callbacks:
            each()


def to_metadata(given: Iterable[tuple[str, str | bytes]] | None) -> Metadata:
    """Return metadata as they are kept."""
    return tuple(given or ())


def describe_excess(message: bytes) -> CallStatus:
    """Return how a call ends with a message of more than MAX_MESSAGE_BYTES."""
    details = f"Sent message larger than max ({len(message)} vs. {MAX_MESSAGE_BYTES})"
    return CallStatus(grpc.StatusCode.RESOURCE_EXHAUSTED, details)
