"""A call that runs at this replica, in a task of its own, and those that listen to it."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Final

from msgspec import Struct, field

from parley.gateway.failures import CALL_CANCELLED, CALL_TIMEOUT, Failure
from parley.gateway.usage import UsageMeter
from parley.runtime.direct.waiters import Waiters
from parley.v1.agent_pb2 import Usage
from parley.v1.gateway_pb2 import GenerateCompleted, GenerateResponse, RouteAttemptStarted, TextDelta

_GATHER_SECONDS: Final = 0.025
"""The shortest time between two pieces of text: a message a word would cost more than the words are worth."""
_LATE: Final = "no answer within the time of this caller; the call may go on"


Digest = Callable[[], str]
"""Makes a short text of what a call asks, once: nearly no call of a debate is compared or written down."""


class CallFailed(Exception):  # noqa: N818 (an outcome, not an error of this program)
    """There is no answer; with what was used nevertheless."""

    def __init__(self, failure: Failure, usage: Usage) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.usage = usage


class RunningCall(Struct, eq=False):
    """A call in a task of its own, so that it does not depend on the speed of those that listen."""

    digest: Digest
    meter: UsageMeter = field(default_factory=UsageMeter)
    listeners: int = 0
    others: int = 0
    """How many of the listeners do not record the answer themselves."""
    cancelled: bool = False
    """Whether a caller asked for the stop, rather than this replica."""
    stopping: bool = False
    _task: "asyncio.Task[None] | None" = None
    _attempts: list[str] = field(default_factory=list)
    _pieces: list[str] = field(default_factory=list)
    _gathered: list[str] = field(default_factory=list)
    _flushed_at: float = -math.inf
    _flush_timer: asyncio.TimerHandle | None = None
    _unstored: GenerateCompleted | None = None
    _recorded: "asyncio.Future[bool] | None" = None
    _completed: GenerateCompleted | None = None
    _error: BaseException | None = None
    _listening: Waiters = field(default_factory=Waiters)
    _first_attempt_at: float | None = None

    @property
    def over(self) -> bool:
        """Whether it was answered, failed or was stopped."""
        return self._completed is not None or self._error is not None

    @property
    def is_answered(self) -> bool:
        """Whether its answer is there, if perhaps not stored yet."""
        return self._completed is not None or self._unstored is not None

    @property
    def only_recorders(self) -> bool:
        """Whether there are listeners, and all of them record the answer themselves."""
        return self.listeners > self.others == 0

    @property
    def seconds(self) -> float:
        """How long ago its first route attempt began; 0.0 before that."""
        if self._first_attempt_at is None:
            return 0.0
        return asyncio.get_running_loop().time() - self._first_attempt_at

    def start(self, work: "Work", on_end: Callable[[], None] = lambda: None) -> None:
        """Begin; `work` reports to this object."""
        self._task = asyncio.create_task(self._run(work))
        self._task.add_done_callback(lambda _: on_end())

    async def stop(self, *, cancelled: bool = False) -> None:
        """End the call now, and returns when its HTTP request is closed."""
        self.cancelled = self.cancelled or cancelled
        self.stopping = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            if not self.over:  # stopped before its first step
                self._end(asyncio.CancelledError())

    async def wait_until_over(self) -> None:
        """Wait until it is over."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def start_route_attempt(self, route: str) -> None:
        """Note that a route attempt starts; text of earlier ones is void."""
        self._flush()  # leaves nothing gathered, and no timer
        if self._first_attempt_at is None:
            self._first_attempt_at = asyncio.get_running_loop().time()
        self._attempts.append(route)
        self._pieces, self._flushed_at = [], -math.inf
        self._listening.wake()

    def mark_alive(self) -> None:
        """Do nothing: callers get the text alone."""

    def add_text(self, piece: str) -> None:
        """Add text of the present route attempt: the first is passed on at once, then at most one piece every 25 ms."""
        self._gathered.append(piece)
        if self._flush_timer is None:
            loop = asyncio.get_running_loop()
            show_at = self._flushed_at + _GATHER_SECONDS
            if loop.time() >= show_at:
                self._flush()
            else:
                self._flush_timer = loop.call_at(show_at, self._flush)

    def hand_on(self, completed: GenerateCompleted) -> None:
        """Give the answer to listeners that take it before it is stored."""
        self._flush()
        self._unstored = completed
        self._listening.wake()

    async def wait_until_recorded(self, seconds: float) -> bool:
        """Wait until a listener says that it has recorded the answer. Return whether one does within so many seconds."""
        loop = asyncio.get_running_loop()
        recorded: asyncio.Future[bool] = loop.create_future()
        self._recorded = recorded
        timer = loop.call_later(seconds, self.end_hold)
        try:
            return await recorded
        finally:
            timer.cancel()

    def mark_recorded(self) -> bool:
        """Note that a listener has recorded the answer. Return False if the call does not wait for that."""
        return self._end_wait(is_recorded=True)

    def end_hold(self) -> None:
        """Let the call wait no longer for a listener that records the answer."""
        self._end_wait(is_recorded=False)

    def _end_wait(self, *, is_recorded: bool) -> bool:
        if self._recorded is None or self._recorded.done():
            return False
        self._recorded.set_result(is_recorded)
        return True

    async def events(
        self, until: float = math.inf, *, unstored: bool = False
    ) -> AsyncGenerator[GenerateResponse, None]:
        """Yield what happened so far and what happens on, to the end. Raises what the call failed with.

        `unstored`: whether the listener takes an answer that is not stored yet.

        Text that came while the listener was busy comes as one piece; text of a route attempt that is over is left out.
        A listener that still waits at `until`, in the loop's time, gets CallFailed, while the call goes on.
        """
        attempts = taken = offset = 0
        late = False

        def end() -> None:
            nonlocal late
            late = True
            self._listening.wake()

        timer = asyncio.get_running_loop().call_at(until, end)
        try:
            while True:
                if attempts < len(self._attempts):
                    for number in range(attempts, len(self._attempts)):
                        began = RouteAttemptStarted(number=number + 1, route=self._attempts[number])
                        yield GenerateResponse(route_attempt=began)
                        attempts = number + 1
                    taken = offset = 0
                elif taken < len(self._pieces):
                    text = "".join(self._pieces[taken:])
                    delta = TextDelta(route_attempt=attempts, offset=offset, text=text)
                    taken, offset = len(self._pieces), offset + len(text)
                    yield GenerateResponse(delta=delta)
                elif self._completed is not None:
                    yield GenerateResponse(completed=self._completed)
                    return
                elif unstored and self._unstored is not None:
                    held = GenerateResponse(completed=self._unstored)
                    held.completed.held = True
                    yield held
                    return
                elif self._error is not None:
                    raise self._error
                elif late:
                    raise CallFailed(Failure(CALL_TIMEOUT, _LATE), self.meter.usage())
                else:
                    await self._listening.wait()
        finally:
            timer.cancel()

    async def _run(self, work: "Work") -> None:
        try:
            completed = await work(self)
        except BaseException as error:
            self._end(error)
            if not isinstance(error, Exception | asyncio.CancelledError):
                raise  # it ends the process, or the loop reports it; those who listen must not wait for more
        else:
            self._flush()
            self._completed = completed
            self._listening.wake()

    def _end(self, error: BaseException) -> None:
        self._flush()
        if not isinstance(error, Exception):
            said = "the call was cancelled" if self.cancelled else "the gateway gave the call up"
            error = Failure(CALL_CANCELLED, said)
        if isinstance(error, Failure):
            error = CallFailed(error, self.meter.usage())
        self._error = error
        self._listening.wake()

    def _flush(self) -> None:
        """Hand the text on that was gathered, as one piece."""
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        if self._gathered:
            self._pieces.append("".join(self._gathered))
            self._gathered.clear()
            self._flushed_at = asyncio.get_running_loop().time()
            self._listening.wake()


Work = Callable[[RunningCall], Coroutine[Any, Any, GenerateCompleted]]
"""Answers a call, and reports to it."""
