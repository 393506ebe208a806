"""Work on all that was said in a debate, which may be much."""

from collections.abc import Callable
from typing import TypeVar

from parley.orchestrator.engine.debate import Debate
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.debate_pb2 import Outcome

T = TypeVar("T")


async def read_whole_debate(debate: Debate, outcome: Outcome, work: Callable[[], T]) -> T:
    """Return the result of work that reads the answer and all replies; in a thread if they are long."""
    size = len(outcome.description) + sum(len(each.reply.text) for each in debate.replies)
    return await in_thread_if_large(size, work)
