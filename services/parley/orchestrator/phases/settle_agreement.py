"""Agreement that cannot be told from two positions is asked of an agent that reads all of them.

It reads the positions numbered, without names or letters. Where what it finds conflicts with what critics said of their own
agreement, it is asked again with the positions in the opposite order, and only what it finds both times counts: what stays
unclear is never agreement.
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task, user_part
from parley.orchestrator.phases.prompting import preamble, quotation
from parley.orchestrator.phases.schemas import asked_schema, schema_text
from parley.v1.convergence_pb2 import CriticVerdict, SettledPair, UnsurePair
from parley.v1.event_pb2 import StepFailed

__all__ = ["GROUPING", "settle_agreement"]

GROUPING = Activity("grouping", "groups the positions", title="grouping of the positions")
_TOLD = (
    "These are positions on the question, each from another agent. Group them by the answer they give: two belong together only"
    " if whoever follows one does what whoever follows the other does. Other words, other reasons and another language do not"
    " matter; another choice, number, order or condition does. Give each group as a list of numbers. A position that agrees with"
    " no other is a group of its own. Leave out a position of which you cannot tell what it answers."
)


class _Groups(BaseModel):
    """Groups of positions, as they are asked for."""

    model_config = ConfigDict(extra="forbid")

    groups: Annotated[
        list[list[int]], Field(description="The groups, each a list of the numbers of its positions.")
    ]


_SCHEMA = schema_text(asked_schema(_Groups))


async def settle_agreement(
    debate: Debate,
    number: int,
    agent: AgentSpec,
    work: Sequence[Contribution],
    unsure: Sequence[UnsurePair],
    critics: Sequence[CriticVerdict],
) -> list[SettledPair]:
    """Return which unsure pairs of agents are the same answer and which are not; those that stay unclear are left out."""
    key = f"round/{number}/grouping"
    shown = list(work)
    debate.random(key).shuffle(shown)
    pairs = [(each.agent_id, each.other_agent_id) for each in unsure]
    found = await _asked(debate, key, number, agent, shown)
    settled = {pair: same for pair in pairs if (same := _together(found, pair)) is not None}
    if _conflicts(settled, critics):
        again = await _asked(debate, f"{key}/again", number, agent, shown[::-1])
        settled = {pair: same for pair, same in settled.items() if _together(again, pair) is same}
    return [
        SettledPair(agent_id=one, other_agent_id=other, same=same) for (one, other), same in settled.items()
    ]


async def _asked(
    debate: Debate, key: str, number: int, agent: AgentSpec, shown: Sequence[Contribution]
) -> dict[str, int]:
    """Return the group of each agent that the one asked put in exactly one."""
    prompt = (
        *preamble(debate, agent),
        *(
            quotation(f"Position {place}", each.position or each.text)
            for place, each in enumerate(shown, start=1)
        ),
        user_part(_TOLD),
    )
    task = Task(GROUPING.create_work(agent.id, number), prompt)
    answer = await debate.ask_structured(
        key, agent, task, AnswerShape("grouping", _Groups, _SCHEMA, _rendered)
    )
    if isinstance(answer, StepFailed):
        return {}
    places: dict[str, list[int]] = {}
    for group, members in enumerate(answer.groups):
        for place in set(members):
            if 1 <= place <= len(shown):
                places.setdefault(shown[place - 1].agent, []).append(group)
    return {each: groups[0] for each, groups in places.items() if len(groups) == 1}


def _together(groups: dict[str, int], pair: tuple[str, str]) -> bool | None:
    """Return whether two agents are in one group; None where one of them is in none."""
    one, other = (groups.get(agent) for agent in pair)
    return None if one is None or other is None else one == other


def _conflicts(settled: dict[tuple[str, str], bool], critics: Sequence[CriticVerdict]) -> bool:
    """Return whether a critic said otherwise of its own position and the one that it read."""
    return any(
        settled.get(_ordered(each.critic_agent_id, each.target_agent_id), each.agrees) is not each.agrees
        for each in critics
    )


def _ordered(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _rendered(answer: _Groups) -> str:
    return (
        "; ".join(" and ".join(map(str, each)) for each in answer.groups) or "No position could be grouped."
    )
