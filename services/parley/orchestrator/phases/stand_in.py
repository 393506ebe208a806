"""An answer in any case: a debate whose contributions stand ends with one of them if whoever was to make the answer made none."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.steps import INVALID_ANSWER, UNUSABLE_ANSWER
from parley.orchestrator.model.best_work import BestWork, describe_stand_in
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.tasks import Prompt, user_part
from parley.orchestrator.phases.failing import answer_failure
from parley.v1.debate_pb2 import StandIn
from parley.v1.event_pb2 import StepFailed

T = TypeVar("T")

Ask = Callable[[str, Prompt], Awaitable[T | StepFailed]]
"""Asks for an answer in the step of a key; the prompt ends with these parts."""


async def ask_for_answer(debate: Debate, key: str, phase: str, ask: Ask[T]) -> T:
    """Return what is answered. What cannot be used is asked for once more, unless the gateway has done so.

    Raises:
        DebateFailedError: there is no answer. If that may pass, it is waited for, and a stand-in takes its place after that.
    """
    answer = await ask(key, ())
    if isinstance(answer, StepFailed) and _is_worth_asking_again(answer):
        key, again = (
            f"{key}/again",
            f"You were asked this before, and {answer.message}. Write the answer now.",
        )
        answer = await ask(key, (user_part(again),))
    if isinstance(answer, StepFailed):
        raise answer_failure(debate, {key: answer}, phase)
    return answer


def _is_worth_asking_again(failed: StepFailed) -> bool:
    return failed.reason in {INVALID_ANSWER, UNUSABLE_ANSWER} and failed.usage.requests <= 1


def create_stand_in(
    debate: Debate, key: str, best: BestWork, failed: DebateFailedError, writer: str
) -> StandIn:
    """Return what is said of the work that stands in for an answer that was not made, and warn of it.

    `writer` is the agent that was to make it; empty: several were.

    Raise `failed` if the answer may still be made: it is waited for first.
    """
    if failed.steps_to_wait_for:
        raise failed
    stand_in = StandIn(
        agent_id=best.work.agent,
        choice=best.reason,
        writer_agent_id=writer,
        reason=failed.reason,
        message=" ".join(str(failed).split()),
    )
    debate.warn(f"{key}/stand-in", describe_stand_in(stand_in))
    return stand_in
