"""What calls are expected to cost, before any is made. Pure functions.

Texts are taken to be as long as debates on open questions write them; a prompt is what it quotes, and its instructions.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from parley.orchestrator.model.spec import price_of
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DebateEstimate

SHORT_TEXT: Final = 250
"""Tokens of a short contribution."""
LONG_TEXT: Final = 1000
"""Tokens of a long one."""
INSTRUCTION_TOKENS: Final = 500
"""Tokens of a prompt besides the question, its documents and what is quoted: the role, the task and the form of the answer."""
_MILLION: Final = 1_000_000


class ExpectedCalls(Struct, frozen=True):
    """Calls of one agent.

    Attributes:
        count: How many.
        read: Tokens that each of them reads.
        written: Tokens that each of them writes.
    """

    agent: Agent
    count: int
    read: int
    written: int

    @property
    def tokens(self) -> int:
        """Tokens that all of them read and write."""
        return self.count * (self.read + self.written)

    @property
    def cost_micros(self) -> float | None:
        """What they cost on the dearest of the agent's routes, in millionths of a US dollar; None if no price is known."""
        price = price_of(self.agent)
        if price is None:
            return None
        return self.count * (self.read * price.read + self.written * price.written) / _MILLION


def create_estimate(fewest: Sequence[ExpectedCalls], most: Sequence[ExpectedCalls]) -> DebateEstimate:
    """Return the estimate of a debate that makes at least `fewest` calls, and at most `most`."""
    return DebateEstimate(
        min_calls=sum(each.count for each in fewest),
        max_calls=sum(each.count for each in most),
        min_tokens=sum(each.tokens for each in fewest),
        max_tokens=sum(each.tokens for each in most),
        min_cost_micros=_total_cost(fewest),
        max_cost_micros=_total_cost(most),
    )


def _total_cost(calls: Iterable[ExpectedCalls]) -> int | None:
    costs = [each.cost_micros for each in calls if each.count]
    known = [each for each in costs if each is not None]
    return round(sum(known)) if len(known) == len(costs) else None
