"""What a panel's debate changed, for each way to make the answer."""

from msgspec.structs import replace

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.formats.panel.rounds import RoundsResult
from parley.orchestrator.model.effect import Ballots
from parley.orchestrator.phases.effect import PositionQuestion, describe_effect, name_positions, word_of
from parley.orchestrator.phases.synthesize import JudgeAnswer
from parley.v1.debate_pb2 import AnswerDetails
from parley.v1.effect_pb2 import DebateEffect
from parley.v1.voting_pb2 import Vote


def effect_of_answer(
    debate: Debate,
    result: RoundsResult,
    asked: PositionQuestion,
    answer: JudgeAnswer,
    details: AnswerDetails,
) -> DebateEffect:
    """Return what the debate changed, as far as the judge said in its answer which positions are the same."""
    named = name_positions(result.stands, result.first.groups, asked, answer.positions)
    return describe_effect(
        debate, debate.judge, result.stands, named, result.requirements.kind, word_of(details)
    )


def effect_of_merge(debate: Debate, result: RoundsResult) -> DebateEffect:
    """Return what the debate changed, as far as it is known without asking: a merged answer is prose."""
    named = name_positions(result.stands, result.first.groups)
    return describe_effect(debate, debate.judge, result.stands, named, result.requirements.kind)


def effect_of_work(
    debate: Debate, result: RoundsResult, author: str, vote: Vote | None = None
) -> DebateEffect:
    """Return what the debate changed if the last work of an author is the answer, by a vote or for want of another."""
    named = name_positions(result.stands, result.first.groups)
    last = {stand.agent: named.names.get(stand.words) for stand in result.stands}
    voted = [last[each.choice_agent_id] for each in vote.ballots] if vote is not None else []
    ballots = Ballots(last_vote=[each for each in voted if each is not None])
    named = replace(named, answer=last[author])
    return describe_effect(debate, None, result.stands, named, result.requirements.kind, ballots=ballots)
