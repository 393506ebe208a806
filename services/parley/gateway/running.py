"""A call that runs at this replica, in a task of its own, and those that listen to it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from parley.gateway.call import Answer, Tally, Usage
from parley.gateway.errors_table import CALL_CANCELLED, AttemptFailed
from parley.runtime.deadline import deadline_scope

__all__ = ["Attempt", "CallFailed", "Completed", "Delta", "Event", "RunningCall", "Work"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """A try at a route began."""

    number: int
    route: str


@dataclass(frozen=True, slots=True)
class Delta:
    """More text of an attempt, from `offset` characters on."""

    attempt: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Completed:
    """The answer, what it took, and seconds from the first attempt's start to the last one's end.

    `stored` says that it was there before, and nothing was asked for it now.
    """

    answer: Answer
    usage: Usage
    seconds: float
    stored: bool = False


Event = Attempt | Delta | Completed


class CallFailed(Exception):  # noqa: N818 (an outcome, not an error of this program)
    """There is no answer; with what was used nevertheless."""

    def __init__(self, failure: AttemptFailed, usage: Usage) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.usage = usage


@dataclass(slots=True, eq=False)
class RunningCall:
    """A call in a task of its own, so that it does not depend on the speed of those that listen."""

    tally: Tally = field(default_factory=Tally)
    digest: str = ""
    listeners: int = 0
    cancelled: bool = False
    """Whether it is stopped because somebody asked for that, and not for reasons of this replica."""
    stopping: bool = False
    _task: "asyncio.Task[None] | None" = None
    _attempts: list[str] = field(default_factory=list)
    _pieces: list[str] = field(default_factory=list)
    _completed: Completed | None = None
    _error: BaseException | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _started: float = 0.0

    @property
    def over(self) -> bool:
        """Whether it was answered, failed or was stopped."""
        return self._completed is not None or self._error is not None

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return asyncio.get_running_loop().time() - self._started

    def start(self, work: "Work", on_end: Callable[[], None] = lambda: None) -> None:
        """Begins; `work` reports to this object. What it does is not bound to the deadline of who began it."""
        self._started = asyncio.get_running_loop().time()
        with deadline_scope(None):
            self._task = asyncio.create_task(self._run(work))
        self._task.add_done_callback(lambda _: on_end())

    async def stop(self, *, cancelled: bool = False) -> None:
        """Ends the call now, and returns when its HTTP request is closed."""
        self.cancelled = self.cancelled or cancelled
        self.stopping = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            if not self.over:  # stopped before its first step
                self._end(asyncio.CancelledError())

    async def ended(self) -> None:
        """Waits until it is over."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def attempt_started(self, route: str) -> None:
        """A try at a route begins; text of earlier ones is void."""
        self._attempts.append(route)
        self._pieces = []
        self._wake()

    def text(self, piece: str) -> None:
        """More text of the present try."""
        self._pieces.append(piece)
        self._wake()

    async def events(self) -> AsyncGenerator[Event, None]:
        """What happened so far and what happens on, to the end. Raises what the call failed with.

        Text that came while the listener was busy comes as one piece; text of an attempt that is over is left out.
        """
        attempts = taken = offset = 0
        while True:
            changed = self._changed
            if attempts < len(self._attempts):
                for number in range(attempts, len(self._attempts)):
                    yield Attempt(number + 1, self._attempts[number])
                    attempts = number + 1
                taken = offset = 0
                continue
            if taken < len(self._pieces):
                text = "".join(self._pieces[taken:])
                delta = Delta(attempts, offset, text)
                taken, offset = len(self._pieces), offset + len(text)
                yield delta
                continue
            if self._completed is not None:
                yield self._completed
                return
            if self._error is not None:
                raise self._error
            await changed.wait()

    async def _run(self, work: "Work") -> None:
        try:
            self._completed = await work(self)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 (raised for all who listen)
            self._end(error)
        else:
            self._wake()

    def _end(self, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError):
            said = "the call was cancelled" if self.cancelled else "the gateway gave the call up"
            error = AttemptFailed(CALL_CANCELLED, said)
        if isinstance(error, AttemptFailed):
            error = CallFailed(error, self.tally.usage())
        self._error = error
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


Work = Callable[[RunningCall], Coroutine[Any, Any, Completed]]
"""What answers a call, told to whom to report."""
