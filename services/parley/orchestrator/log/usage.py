"""What a debate has used so far: time, tokens and money, computed from its recorded events."""

from collections.abc import Iterable
from enum import Enum

from msgspec import Struct, field

from parley.v1.agent_pb2 import Usage
from parley.v1.event_pb2 import StepFailed, StepSucceeded, StoppedCall


class Mode(Enum):
    """What a debate does while time passes."""

    RESTING = "resting"
    WORKING = "working"
    WAITING = "waiting"


class RunningTime(Struct):
    """How long a debate has run. Time without an owner, in a pause or at a checkpoint does not count.

    Attributes:
        working: Seconds.
        waiting: Seconds of waits for providers.
    """

    working: float = 0.0
    waiting: float = 0.0
    mode: Mode = Mode.RESTING
    _epoch: int = 0
    _since: float = 0.0

    def advance(self, epoch: int, at: float) -> None:
        """Count the time up to an event. No time counts between two owners, so that each may use its own clock."""
        if epoch == self._epoch and epoch > 0:
            passed = max(at - self._since, 0.0)
            if self.mode is Mode.WORKING:
                self.working += passed
            elif self.mode is Mode.WAITING:
                self.waiting += passed
        self._epoch, self._since = epoch, at

    def work_seconds(self, now: float) -> float:
        """Return the seconds of work up to now, by the clock that the owner passes to `advance`."""
        return self.working + self._seconds_since(now, Mode.WORKING)

    def total_seconds(self, now: float) -> float:
        """Return the seconds of work and of waits for providers up to now."""
        return self.work_seconds(now) + self.waiting + self._seconds_since(now, Mode.WAITING)

    def restart(self) -> None:
        """Set the times to 0."""
        self.working = self.waiting = 0.0

    def _seconds_since(self, now: float, mode: Mode) -> float:
        return max(now - self._since, 0.0) if self.mode is mode else 0.0


class UsageMeter(Struct):
    """What calls used. A call of unknown price is only part of `tokens` and `written`.

    `longest` holds the tokens of the longest text that each agent wrote: its present proposal has no more.
    """

    tokens: int = 0
    written: int = 0
    cost_micros: int = 0
    priced_tokens: int = 0
    longest: dict[str, int] = field(default_factory=dict)

    def add(self, outcome: StepSucceeded | StepFailed) -> None:
        """Add the usage of a step's outcome."""
        usage, agent = usage_of(outcome), outcome.work.agent_id
        self.count(usage)
        if isinstance(outcome, StepSucceeded) and agent:
            self.longest[agent] = max(self.longest.get(agent, 0), usage.output_tokens)

    def count(self, usage: Usage) -> None:
        """Add the usage of a call."""
        tokens = usage.input_tokens + usage.output_tokens
        self.tokens += tokens
        self.written += usage.output_tokens
        if usage.HasField("cost_micros"):
            self.cost_micros += usage.cost_micros
            self.priced_tokens += tokens

    def estimate_cost(self, tokens: int) -> float:
        """Return the likely cost of tokens at the average price so far, in millionths of a US dollar."""
        return tokens * self.cost_micros / self.priced_tokens if self.priced_tokens else 0.0


def usage_of(outcome: StepSucceeded | StepFailed) -> Usage:
    """Return the usage of a step's attempt."""
    return outcome.usage if isinstance(outcome, StepFailed) else outcome.reply.usage


def usage_of_stopped(calls: Iterable[StoppedCall]) -> Usage:
    """Return the sum of what stopped calls used. A call of unknown usage makes the cost unknown."""
    used = Usage()
    for each in calls:
        add_usage(used, each.usage if each.HasField("usage") else Usage(requests=1))
    return used


def add_usage(total: Usage, more: Usage) -> None:
    """Add to a sum. An unknown cost makes the sum's cost unknown, unless that part has no requests."""
    if more.requests:
        before = total.cost_micros
        if more.HasField("cost_micros") and (not total.requests or total.HasField("cost_micros")):
            total.cost_micros = before + more.cost_micros
        else:
            total.ClearField("cost_micros")
    total.input_tokens += more.input_tokens
    total.output_tokens += more.output_tokens
    total.requests += more.requests
