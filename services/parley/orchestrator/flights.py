"""A step on its way: what is asked, and how a limit puts an end to it."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field

from parley.orchestrator.events import StepFailed, Work
from parley.orchestrator.limits import Estimate
from parley.orchestrator.recorded import Outcome
from parley.runtime.clock import Clock

__all__ = ["Asked", "Flight", "either"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a step asks. `estimate` is what its call may take, None where a service is asked and no limit applies."""

    key: str
    work: Work
    digest: str
    estimate: Estimate | None = None

    @property
    def is_answer(self) -> bool:
        """Whether it makes the debate's answer, which is asked for in spite of limits."""
        return self.work.activity == "synthesis"


@dataclass(slots=True)
class Flight:
    """One attempt at a step.

    Attributes:
        started: Whether the log says, or is about to say, that it was begun.
        calling: Whether a call is being made now, rather than waited with for a service that is away.
        failed: What a limit made of it.
        recorded: Set once that is durable.
    """

    asked: Asked
    attempt: int
    started: bool
    calling: bool = False
    failed: StepFailed | None = None
    recorded: asyncio.Event = field(default_factory=asyncio.Event)
    _scope: asyncio.Timeout | None = None

    async def outcome_of(self, making: Awaitable[Outcome]) -> Outcome:
        """Return the outcome, or the failure that a limit makes of it first."""
        try:
            async with asyncio.timeout(None) as self._scope:
                return await making
        except TimeoutError:
            if self.failed is None:
                raise
            await self.recorded.wait()
            return self.failed
        finally:
            self._scope = None

    def fail(self, failed: StepFailed) -> None:
        """Stop the attempt at once. Its failure is returned once `recorded` is set."""
        self.failed = failed
        if self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())


async def either(event: asyncio.Event, clock: Clock, seconds: float) -> bool:
    """Wait for an event, but only so long by this clock; return whether it came."""
    waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(clock.sleep(seconds))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    return event.is_set()
