"""One attempt at a step: what is asked, and how a limit puts an end to it."""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from parley.orchestrator.engine.budget import Estimate
from parley.orchestrator.log.replay import Outcome
from parley.runtime.clock import Clock
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import Work
from parley.v1.event_pb2 import StepFailed

__all__ = ["StepAttempt", "StepRequest", "wait_or_timeout"]


@dataclass(frozen=True, slots=True)
class StepRequest:
    """What a step asks.

    Attributes:
        estimate: What its call may take; None where a service is asked, which costs nothing.
        is_answer: Whether it makes the debate's answer, which is asked for in spite of limits.
        is_structured: Whether a structured answer is asked for.
        concurrency: The label of its limit; empty for none.
        retry_once: Whether it is asked once more where it failed for a reason that may soon have passed.
        scopes: The groups of steps that are settled together and that it belongs to.
    """

    key: str
    work: Work
    digest: str
    estimate: Estimate | None = None
    is_answer: bool = False
    is_structured: bool = False
    concurrency: str = ""
    scopes: frozenset[str] = frozenset()
    retry_once: bool = False


@dataclass(slots=True, eq=False)
class StepAttempt:
    """One attempt at a step.

    Attributes:
        number: From 1.
        started: Whether the log says, or is about to say, that it was begun.
        usage: What its latest call used; `partial_text`: what it had written where it was stopped.
        recorded: Set once its failure is durable.
        bound: Tokens that its answer may have, by what is left of the budgets; 0: as many as it likes.
        exceeds: The budget that has no room for it; empty for none.
    """

    request: StepRequest
    number: int
    started: bool
    usage: Usage = field(default_factory=Usage)
    partial_text: str = ""
    recorded: asyncio.Event = field(default_factory=asyncio.Event)
    bound: int = 0
    exceeds: str = ""
    _late: bool = False
    _failed: StepFailed | None = None
    _call: asyncio.Event | None = None
    _scope: asyncio.Timeout | None = None

    @property
    def is_calling(self) -> bool:
        """Whether a call is being made now, rather than waited with for a service that is away."""
        return self._call is not None

    @contextmanager
    def track_call(self) -> Iterator[None]:
        """Make the step's call in the block."""
        self._call = ended = asyncio.Event()
        try:
            yield
        finally:
            self._call = None
            ended.set()

    async def wait_for_call_end(self, seconds: float) -> None:
        """Wait until no call is being made, but only so long."""
        if self._call is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._call.wait()

    async def run_with_limits(self, making: Awaitable[Outcome]) -> Outcome:
        """Return the outcome, or the failure that a limit makes of it first."""
        try:
            async with asyncio.timeout(None) as self._scope:
                return await making
        except TimeoutError:
            if self._failed is None:
                raise
            return await self.wait_for_failure()
        finally:
            self._scope = None

    def is_late(self) -> bool:
        """Tell whether it fails for a limit that was reached, whatever its call comes to."""
        return self._late

    def mark_late(self) -> None:
        """Take the step out of its call's hands; what is left is to `fail` it."""
        self._late = True

    async def wait_for_failure(self) -> StepFailed:
        """Return what a limit makes of a step that is late, once that is recorded."""
        await self.recorded.wait()
        assert self._failed is not None
        return self._failed

    def fail(self, failed: StepFailed) -> None:
        """Stop the attempt at once. Its failure is returned once `recorded` is set."""
        self._failed = failed
        if self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())


async def wait_or_timeout(event: asyncio.Event, clock: Clock, seconds: float) -> bool:
    """Wait for an event, but only so long by this clock; return whether it came."""
    waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(clock.sleep(seconds))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    return event.is_set()
