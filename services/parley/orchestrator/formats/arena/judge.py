"""Who judges an arena: the designated agent, or one of the participants."""

from collections.abc import Sequence

from parley.orchestrator.formats.arena.discussion import Discussion
from parley.orchestrator.formats.arena.settings import agents_with_duty
from parley.orchestrator.model.judge_choice import Distance, Nominee, choose_judge
from parley.orchestrator.phases.choose_agents import elect_judge, rate_judges
from parley.v1 import arena_pb2
from parley.v1.agent_pb2 import Agent
from parley.v1.event_pb2 import JudgeChosen, Warned


async def nominate_judges(arena: Discussion) -> Sequence[Nominee]:
    """Return those who may judge, in the order that the debate's choice puts them in.

    Agents that propose nothing go without the others: one of them judges in any case. If there is no order, the designated
    judge judges.
    """
    debate = arena.debate
    participants = list(debate.participants)
    proposers = agents_with_duty(arena.settings, participants, arena_pb2.DUTY_PROPOSER)
    able = [each for each in participants if each not in proposers] or participants
    found: Sequence[Nominee] = ()
    match arena.settings.judge_choice:
        case arena_pb2.JUDGE_CHOICE_RANDOM:
            debate.random("judge").shuffle(able)
            found = [Nominee(each, "drawn by lot") for each in able]
        case arena_pb2.JUDGE_CHOICE_LAST:
            found = [Nominee(each, "the last that can judge") for each in able[::-1]]
        case arena_pb2.JUDGE_CHOICE_VOTED:
            found = await elect_judge(debate, able, participants)
        case arena_pb2.JUDGE_CHOICE_BY_RATING:
            found = await rate_judges(debate, able, by_calibration=False)
        case arena_pb2.JUDGE_CHOICE_BY_CALIBRATION:
            found = await rate_judges(debate, able, by_calibration=True)
    return found or arena.judges


def judge_of(arena: Discussion) -> Agent:
    """Return who judges; if it is the author of what it judges, the debate says so."""
    debate = arena.debate
    heard = [each for each in arena.judges if each.agent.id not in arena.steering.muted]
    candidates = [each.agent for each in heard] or [debate.judge]
    authors = [each for each in debate.participants if arena.transcript.has_work(each.id)]
    chosen = choose_judge(candidates, authors)
    judge = chosen.agent.id
    if judge != debate.judge.id:
        why = next(each.reason for each in heard if each.agent.id == judge)
        arena.record_once(f"judge/{judge}", JudgeChosen(agent_id=judge, reason=f"{why}; {chosen.reason}"))
    if chosen.distance == Distance.AUTHOR:
        message = f"{judge} judges its own work among the others: {chosen.reason}"
        arena.record_once("judge/warning", Warned(message=message))
    return chosen.agent


def grouping_agent(arena: Discussion) -> Agent:
    """Return who is asked which positions are the same answer: whom the settings name, else the designated judge."""
    asked = arena.settings.grouping_agent_id
    return next((each for each in arena.active_agents if each.id == asked), arena.debate.judge)
