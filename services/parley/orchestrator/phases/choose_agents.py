"""Who debates and who judges: a team by its ratings, and a judge by its ratings or by a vote of the agents.

Both are chosen before the first round. An agent that votes for a judge reads the roles of the others, not their names.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.judge_choice import Nominee
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task, user_part
from parley.orchestrator.phases.prompting import preamble
from parley.orchestrator.phases.schemas import prompt_schema, schema_text
from parley.v1.agent_pb2 import Agent
from parley.v1.arena_pb2 import TeamSettings
from parley.v1.event_pb2 import StepFailed, TeamSelected
from parley.v1.ratings_pb2 import Candidate, GetWeightsRequest, Rating, SelectTeamRequest

TEAM: Final = Activity("team", "choosing the team", title="choice of the team")


async def select_team(debate: Debate, settings: TeamSettings) -> None:
    """Let as many of the agents debate as the settings say, those that the ratings choose; if they say nothing, all do.

    Who was chosen is recorded, with what is known of every agent. If the ratings are away, the first agents debate.
    """
    agents = [each.id for each in debate.agents]
    if not 0 < settings.size < len(agents):
        return
    request = SelectTeamRequest(
        debate_id=debate.id,
        candidate_agent_ids=agents,
        size=settings.size,
        domain=settings.domain or debate.spec.domain,
        exploration_share=settings.exploration_share if settings.HasField("exploration_share") else None,
    )
    found = await debate.call_service(
        TEAM.name, TEAM.create_work(), request, lambda: debate.services.ratings.select_team(request)
    )
    candidates: list[Candidate] = []
    if isinstance(found, StepFailed):
        chosen = set(agents[: settings.size])
        message = f"the first {settings.size} agents debate, since no team could be chosen: {found.message}"
        debate.warn(TEAM.name, message)
    else:
        candidates = list(found.candidates)
        chosen = {each.agent_id for each in candidates if each.chosen}
    debate.set_participants(chosen)
    team = [each for each in agents if each in chosen]
    debate.record_event(f"{TEAM.name}/selected", TeamSelected(agent_ids=team, candidates=candidates))


JUDGE_RATINGS: Final = Activity("judge-ratings", "looking up who judges best", title="ratings of the judges")


async def rate_judges(debate: Debate, able: Sequence[Agent], *, by_calibration: bool) -> Sequence[Nominee]:
    """Return those who may judge, the best by Elo rating or by calibration first; none if nothing is known of any.

    Equal ones stand in their order.
    """
    key = JUDGE_RATINGS.name
    request = GetWeightsRequest(agent_ids=[each.id for each in able], domain=debate.spec.domain)
    found = await debate.call_service(
        key, JUDGE_RATINGS.create_work(), request, lambda: debate.services.ratings.get_weights(request)
    )
    if isinstance(found, StepFailed):
        return _warn_no_judge(debate, key, found.message)
    ratings = {each.agent_id: each.rating for each in found.weights}
    if not any(_is_rated(each, by_calibration=by_calibration) for each in ratings.values()):
        what = "states its confidence in an answer that was judged" if by_calibration else "has a match"
        return _warn_no_judge(debate, key, f"no agent {what} yet")
    best_first = sorted(
        able, key=lambda each: -(ratings[each.id].calibration if by_calibration else ratings[each.id].elo)
    )
    return [
        Nominee(each, _describe_rating(ratings[each.id], by_calibration=by_calibration))
        for each in best_first
    ]


def _warn_no_judge(debate: Debate, key: str, why: str) -> Sequence[Nominee]:
    debate.warn(key, f"{debate.judge.id} judges, since no judge could be chosen by the ratings: {why}")
    return ()


def _is_rated(rating: Rating, *, by_calibration: bool) -> bool:
    return rating.HasField("brier_score") if by_calibration else rating.matches > 0


def _describe_rating(rating: Rating, *, by_calibration: bool) -> str:
    if by_calibration:
        return f"calibration {rating.calibration:.2f} after {rating.judged_answers} judged answers"
    return f"Elo rating {rating.elo:.0f} after {rating.matches} matches"


JUDGE_VOTE: Final = Activity(
    "judge-vote", "votes for a judge", "Votes for the judge", title="vote for the judge"
)
_VOTE_PROMPT: Final = (
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


async def elect_judge(debate: Debate, able: Sequence[Agent], voters: Sequence[Agent]) -> Sequence[Nominee]:
    """Return those who may judge, the one with the most votes first; none if no agent has voted.

    Equal ones stand in an order that is drawn. If only one may judge, there is no vote.
    """
    if len(able) == 1:
        return [Nominee(able[0], "the only one that proposes nothing")]
    asked = [each for each in voters if any(one.id != each.id for one in able)]
    votes = await asyncio.gather(*(_ask_vote(debate, each, able) for each in asked))
    counted = Counter(each for each in votes if each)
    if not counted:
        debate.warn(JUDGE_VOTE.name, f"{debate.judge.id} judges, since nobody has voted for a judge")
        return ()
    in_order = list(able)
    debate.random(JUDGE_VOTE.name).shuffle(in_order)
    in_order.sort(key=lambda each: -counted[each.id])
    cast = counted.total()
    return [Nominee(each, f"{counted[each.id]} of {cast} agents voted for it") for each in in_order]


async def _ask_vote(debate: Debate, voter: Agent, able: Sequence[Agent]) -> str:
    """Return the id of an agent's choice; empty if it has made none."""
    key = f"{JUDGE_VOTE.name}/{voter.id}"
    shown = [each for each in able if each.id != voter.id]
    debate.random(key).shuffle(shown)
    roles = "\n".join(f"{number}. {each.role}" for number, each in enumerate(shown, start=1))
    prompt = (*preamble(debate, voter, documents=False), user_part(_VOTE_PROMPT.format(roles=roles)))
    schema = prompt_schema(_JudgeBallot)
    schema["properties"]["choice"]["maximum"] = len(shown)
    shape = AnswerShape("judge_ballot", _JudgeBallot, schema_text(schema), partial(_render, shown))
    cast = await debate.ask_structured(key, voter, Task(JUDGE_VOTE.create_work(voter.id), prompt), shape)
    if isinstance(cast, StepFailed) or cast.choice > len(shown):
        return ""
    return shown[cast.choice - 1].id


def _render(shown: Sequence[Agent], ballot: _JudgeBallot) -> str:
    choice = shown[ballot.choice - 1].id if ballot.choice <= len(shown) else "nobody that stands for it"
    return f"Votes for {choice}: {' '.join(ballot.reason.split())}"
