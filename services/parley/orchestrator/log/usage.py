"""What a debate has used so far: time, tokens and money, as a fold of recorded events."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from parley.v1.agent_pb2 import Usage
from parley.v1.event_pb2 import StepFailed, StepSucceeded, StoppedCall

__all__ = ["Mode", "RunningTime", "UsageMeter", "add_usage", "usage_of", "usage_of_stopped"]


class Mode(Enum):
    """What a debate does while time passes."""

    RESTING = "resting"
    WORKING = "working"
    WAITING = "waiting"


@dataclass(slots=True)
class RunningTime:
    """How long a debate has been worked on. Time without an owner, paused or at a checkpoint does not count.

    Attributes:
        working: Seconds.
        waiting: Seconds in which providers were waited for.
    """

    working: float = 0.0
    waiting: float = 0.0
    mode: Mode = Mode.RESTING
    _epoch: int = 0
    _since: float = 0.0

    def advance(self, epoch: int, at: float) -> None:
        """Count the time up to an event. Between two owners none passes, so that each may count by a clock of its own."""
        if epoch == self._epoch and epoch > 0:
            self.working += self._seconds_since(at, Mode.WORKING)
            self.waiting += self._seconds_since(at, Mode.WAITING)
        self._epoch, self._since = epoch, at

    def work_seconds(self, now: float) -> float:
        """Return the seconds of work up to now, by the clock that the owner's events are passed on with."""
        return self.working + self._seconds_since(now, Mode.WORKING)

    def total_seconds(self, now: float) -> float:
        """Return the same with the seconds in which providers were waited for."""
        return self.work_seconds(now) + self.waiting + self._seconds_since(now, Mode.WAITING)

    def restart(self) -> None:
        """Count from nothing again."""
        self.working = self.waiting = 0.0

    def _seconds_since(self, now: float, mode: Mode) -> float:
        return max(now - self._since, 0.0) if self.mode is mode else 0.0


@dataclass(slots=True)
class UsageMeter:
    """What calls used. A call whose price is not known counts in `tokens` alone."""

    tokens: int = 0
    written: int = 0
    cost_micros: int = 0
    priced_tokens: int = 0

    def add(self, outcome: StepSucceeded | StepFailed) -> None:
        """Count a step's outcome."""
        self.count(usage_of(outcome))

    def count(self, usage: Usage) -> None:
        """Count what a call used."""
        tokens = usage.input_tokens + usage.output_tokens
        self.tokens += tokens
        self.written += usage.output_tokens
        if usage.HasField("cost_micros"):
            self.cost_micros += usage.cost_micros
            self.priced_tokens += tokens

    def estimate_cost(self, tokens: int) -> float:
        """Return what so many tokens may cost, by the calls so far, in millionths of a US dollar."""
        return tokens * self.cost_micros / self.priced_tokens if self.priced_tokens else 0.0


def usage_of(outcome: StepSucceeded | StepFailed) -> Usage:
    """Return what a step's attempt used."""
    return outcome.usage if isinstance(outcome, StepFailed) else outcome.reply.usage


def usage_of_stopped(calls: Iterable[StoppedCall]) -> Usage:
    """Return what calls had used that were stopped; a call of which that is not known makes the cost unknown."""
    used = Usage()
    for each in calls:
        used = add_usage(used, each.usage if each.HasField("usage") else Usage(requests=1))
    return used


def add_usage(one: Usage, other: Usage) -> Usage:
    """Return the sum; an unknown cost makes it unknown, unless nothing was asked of a model there."""
    known = [each for each in (one, other) if each.requests]
    cost = None
    if known and all(each.HasField("cost_micros") for each in known):
        cost = sum(each.cost_micros for each in known)
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cost_micros=cost,
        requests=one.requests + other.requests,
    )
