"""How the rounds of a debate went, for those who make its answer: how they ended, and what is missing."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.log.replay import Steering
from parley.orchestrator.model.limits import COST_BUDGET, TOKEN_BUDGET, TOTAL_TIMEOUT
from parley.v1.debate_pb2 import (
    STOP_REASON_ALL_ROUNDS_COMPLETED,
    STOP_REASON_COST_BUDGET,
    STOP_REASON_PERSON,
    STOP_REASON_TOKEN_BUDGET,
    STOP_REASON_TOO_FEW_AGENTS,
    STOP_REASON_TOTAL_TIMEOUT,
)
from parley.v1.event_pb2 import RoundsEnded, StepFailed

_LIMITS: Final = {
    TOTAL_TIMEOUT: (STOP_REASON_TOTAL_TIMEOUT, "the debate's time limit was reached"),
    TOKEN_BUDGET: (STOP_REASON_TOKEN_BUDGET, "the debate's budget of tokens was used up"),
    COST_BUDGET: (STOP_REASON_COST_BUDGET, "the debate's budget of money was used up"),
}


def end_of_all_rounds(total: int) -> RoundsEnded:
    """Return that the rounds ended by themselves."""
    explanation = f"all {total} rounds were held" if total > 1 else "the one round was held"
    return RoundsEnded(reason=STOP_REASON_ALL_ROUNDS_COMPLETED, explanation=explanation)


def end_of_drafts() -> RoundsEnded:
    """Return that only drafts were asked for."""
    explanation = "only independent drafts were asked for, without critiques and refinements"
    return RoundsEnded(reason=STOP_REASON_ALL_ROUNDS_COMPLETED, explanation=explanation)


def end_for_want_of_agents(number: int, why: object) -> RoundsEnded:
    """Return that too few agents could be asked in the round with this number, and why."""
    explanation = f"too few agents could be asked in round {number}: {why}"
    return RoundsEnded(reason=STOP_REASON_TOO_FEW_AGENTS, explanation=" ".join(explanation.split()))


def end_from_outside(steering: Steering, number: int) -> RoundsEnded:
    """Return which limit, or that a person, ended the rounds in or after the one with this number."""
    if steering.limit:
        reason, explanation = _LIMITS[steering.limit]
        return RoundsEnded(reason=reason, explanation=f"{explanation} in round {number}")
    return RoundsEnded(
        reason=STOP_REASON_PERSON, explanation=f"a person ended the rounds after round {number}"
    )


def describe_rounds(
    debate: Debate,
    completed: int,
    total: int,
    ended: RoundsEnded,
    failed: Sequence[StepFailed],
    muted: Collection[str],
) -> str:
    """Return how many rounds were run, why they ended, and what of them is missing."""
    why = ended.explanation
    if ended.reason == STOP_REASON_ALL_ROUNDS_COMPLETED:
        lines = [f"{why[0].upper()}{why[1:]}."]
    else:
        were = "was" if completed == 1 else "were"
        lines = [f"{completed} of at most {total} rounds {were} held. They ended early: {why}."]
    missing = [*_list_missing(debate, failed), *_list_muted(debate, muted)]
    if missing:
        lines += ["What is missing:", *(f"- {each}" for each in missing)]
    return "\n".join(lines)


def _list_missing(debate: Debate, failed: Sequence[StepFailed]) -> Iterator[str]:
    for each in failed:
        work = each.work
        of = f" of agent {debate.letter(work.target_agent_id)}'s proposal" if work.target_agent_id else ""
        agent = debate.letter(work.agent_id)
        yield f"agent {agent} failed in round {work.round}: there is no {work.activity}{of} by it"


def _list_muted(debate: Debate, muted: Collection[str]) -> Iterator[str]:
    for each in debate.participants:
        if each.id in muted:
            yield f"agent {debate.letter(each.id)} was left out of later rounds by the person who asks"
