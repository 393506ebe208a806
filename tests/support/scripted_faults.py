"""What befalls calls of the gateway of tests: they fail, or hang until they are released."""

import asyncio
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import grpc

from parley.runtime.errors import DRAINING, ParleyError, unavailable

_CODES = {
    "PROVIDER_AUTH": grpc.StatusCode.PERMISSION_DENIED,
    "PROVIDER_QUOTA": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "PROVIDER_RATE_LIMIT": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "PROVIDER_UNAVAILABLE": grpc.StatusCode.UNAVAILABLE,
    "PROVIDER_UNREACHABLE": grpc.StatusCode.UNAVAILABLE,
    "NO_ROUTE_AVAILABLE": grpc.StatusCode.UNAVAILABLE,
    "UNKNOWN_ROUTE": grpc.StatusCode.NOT_FOUND,
    "CALL_TIMEOUT": grpc.StatusCode.DEADLINE_EXCEEDED,
    "CALL_CANCELLED": grpc.StatusCode.CANCELLED,
    "ENCRYPTION_KEY_MISSING": grpc.StatusCode.FAILED_PRECONDITION,
    "BAD_REQUEST": grpc.StatusCode.FAILED_PRECONDITION,
    "CONTEXT_OVERFLOW": grpc.StatusCode.FAILED_PRECONDITION,
    "INVALID_STRUCTURED_ANSWER": grpc.StatusCode.FAILED_PRECONDITION,
}


def refusal(reason: str = "BAD_REQUEST", message: str = "the provider said no") -> ParleyError:
    """A failure that is an answer of the gateway, and so an outcome of the step."""
    metadata = {
        "route": "p/m",
        "input_tokens": "3",
        "output_tokens": "0",
        "requests": "2",
        "cost_micros": "5",
    }
    return ParleyError(_CODES[reason], reason, message, metadata)


def away() -> ParleyError:
    """Trouble on the way to the gateway, which is no outcome."""
    return unavailable(DRAINING, "this server is stopping; resume on another one")


@dataclass(slots=True)
class Fault:
    """What befalls the calls of steps that match `pattern`: `times` of them, of one attempt or (None) of any."""

    pattern: str
    error: ParleyError
    attempt: int | None = None
    times: int | None = None


@dataclass(slots=True)
class Hold:
    """Calls of steps that match `pattern` hang until it is released."""

    pattern: str
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        self.released.set()


class ScriptedFaults:
    """Which calls fail or hang, by patterns of their steps."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._holds: list[Hold] = []

    def fail(
        self,
        pattern: str,
        error: ParleyError | None = None,
        *,
        attempt: int | None = None,
        times: int | None = None,
    ) -> Fault:
        """Let calls fail; by default with an agent's final failure."""
        fault = Fault(pattern, error or refusal(), attempt, times)
        self._faults.append(fault)
        return fault

    def mend(self) -> None:
        """Forget all faults."""
        self._faults.clear()

    def hold(self, pattern: str) -> Hold:
        """Let calls hang until the hold is released."""
        hold = Hold(pattern)
        self._holds.append(hold)
        return hold

    def holds(self, pattern: str) -> list[Hold]:
        """The holds of this pattern; `weights` holds up what ratings say of votes."""
        return [hold for hold in self._holds if hold.pattern == pattern]

    def release(self, pattern: str) -> None:
        """Release the holds of this pattern."""
        for hold in self.holds(pattern):
            hold.release()

    async def wait_for_release(self, step: str, stop: asyncio.Event) -> None:
        """Wait until all holds of a step are released. A call that is stopped meanwhile fails."""
        for hold in self._holds:
            if fnmatchcase(step, hold.pattern):
                hold.reached.set()
                await _wait_for_first(hold.released, stop)
                if stop.is_set():
                    raise refusal("CALL_CANCELLED", "the call was cancelled")

    def raise_fault(self, step: str, attempt: int) -> None:
        """Raise what the script wants this attempt of a step to fail with, if it wants it to fail."""
        for fault in self._faults:
            fits = fnmatchcase(step, fault.pattern) and fault.attempt in (None, attempt)
            if fits and fault.times != 0:
                if fault.times is not None:
                    fault.times -= 1
                raise fault.error


async def _wait_for_first(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(each.wait()) for each in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
