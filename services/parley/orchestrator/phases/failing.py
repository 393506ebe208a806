"""How a debate fails for want of steps that it cannot go on without."""

from collections.abc import Mapping
from typing import Final

from parley.orchestrator.engine.budget import is_transient
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.steps import INVALID_ANSWER, UNUSABLE_ANSWER
from parley.orchestrator.model.errors import DebateFailedError
from parley.v1.event_pb2 import StepFailed

_WITHOUT_WORDS: Final = {INVALID_ANSWER, UNUSABLE_ANSWER, "EMPTY_ANSWER", "TRUNCATED"}


def answer_failure(
    debate: Debate, failed: Mapping[str, StepFailed], phase: str, needed: int = 1
) -> DebateFailedError:
    """Return why an answer is not made, as `debate_failure` does. The debate goes on without it, after it has waited.

    Only while its steps are waited for, it names them.
    """
    failure = debate_failure(failed, phase, needed)
    failure.has_stand_in = True
    if debate.is_given_up(phase):
        failure.steps_to_wait_for = ()
    return failure


def is_without_words(failed: StepFailed) -> bool:
    """Return whether an agent answered, and wrote nothing that can be used: to ask it elsewhere or later would not help."""
    return failed.reason in _WITHOUT_WORDS


def debate_failure(failed: Mapping[str, StepFailed], phase: str, needed: int = 1) -> DebateFailedError:
    """Return why the debate fails, naming one of the agents that `failed`, by the keys of their steps; not empty.

    If as many as are `needed` failed for reasons that may pass, these are waited for and one of them is named, else one
    that failed for good.
    """
    passing = {key: each for key, each in failed.items() if is_transient(each.reason)}
    lasting = {key: each for key, each in failed.items() if key not in passing}
    awaited = passing if len(passing) >= needed else {}
    named = next(iter((awaited or lasting or failed).values()))
    return DebateFailedError(
        named.reason,
        named.message,
        agent=named.work.agent_id,
        phase=phase,
        steps=tuple(failed),
        awaited=tuple(awaited),
    )
