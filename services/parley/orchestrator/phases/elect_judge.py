"""The election of a judge: before the first round, each agent votes for another one, whose role alone it is told."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.judge_choice import Nominee
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task, user_part
from parley.orchestrator.phases.prompting import preamble
from parley.orchestrator.phases.schemas import asked_schema, schema_text
from parley.v1.event_pb2 import StepFailed, Warned

__all__ = ["JUDGE_VOTE", "elect_judge"]

JUDGE_VOTE: Final = Activity(
    "judge-vote", "votes for a judge", "Votes for the judge", title="vote for the judge"
)
_TOLD: Final = (
    "Several agents will debate this question, and one of them judges in the end: it scores all proposals and writes"
    " the answer. Vote for the one of them whose field lets it weigh the proposals best and most fairly. You cannot vote"
    " for yourself. Do not answer the question yet. Those you can vote for:\n{roles}\n"
    "Give the number of your choice, and the reason in a sentence."
)


class _JudgeBallot(BaseModel):
    """A vote for a judge, as it is asked for."""

    model_config = ConfigDict(extra="forbid")

    choice: Annotated[int, Field(ge=1, description="The number of your choice.")]
    reason: Annotated[str, Field(description="Why, in a sentence.")]


async def elect_judge(
    debate: Debate, able: Sequence[AgentSpec], voters: Sequence[AgentSpec]
) -> Sequence[Nominee]:
    """Return those who may judge, the one with the most votes first; nobody where nobody has voted.

    Equal ones stand in an order that is drawn. Where only one may judge, there is no vote.
    """
    if len(able) == 1:
        return [Nominee(able[0], "the only one that proposes nothing")]
    asked = [each for each in voters if any(one.id != each.id for one in able)]
    votes = await asyncio.gather(*(_vote(debate, each, able) for each in asked))
    counted = Counter(each for each in votes if each)
    if not counted:
        message = f"{debate.spec.judge.id} judges, since nobody has voted for a judge"
        debate.record_event(f"{JUDGE_VOTE.name}/warning", Warned(message=message))
        return ()
    in_order = list(able)
    debate.random(JUDGE_VOTE.name).shuffle(in_order)
    in_order.sort(key=lambda each: -counted[each.id])
    cast = counted.total()
    return [Nominee(each, f"{counted[each.id]} of {cast} agents voted for it") for each in in_order]


async def _vote(debate: Debate, voter: AgentSpec, able: Sequence[AgentSpec]) -> str:
    """Return the id of an agent's choice; empty where it has made none."""
    key = f"{JUDGE_VOTE.name}/{voter.id}"
    shown = [each for each in able if each.id != voter.id]
    debate.random(key).shuffle(shown)
    roles = "\n".join(f"{number}. {each.role}" for number, each in enumerate(shown, start=1))
    prompt = (
        *preamble(debate, voter, documents=False),
        user_part(_TOLD.format(roles=roles)),
    )
    schema = asked_schema(_JudgeBallot)
    schema["properties"]["choice"]["maximum"] = len(shown)
    shape = AnswerShape("judge_ballot", _JudgeBallot, schema_text(schema), partial(_rendered, shown))
    cast = await debate.ask_structured(key, voter, Task(JUDGE_VOTE.create_work(voter.id), prompt), shape)
    if isinstance(cast, StepFailed) or cast.choice > len(shown):
        return ""
    return shown[cast.choice - 1].id


def _rendered(shown: Sequence[AgentSpec], ballot: _JudgeBallot) -> str:
    choice = shown[ballot.choice - 1].id if ballot.choice <= len(shown) else "nobody that stands for it"
    return f"Votes for {choice}: {' '.join(ballot.reason.split())}"
