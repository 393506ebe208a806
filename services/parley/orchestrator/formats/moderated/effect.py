"""What a moderated debate changed: where its debaters stood from their first arguments on, and which points they conceded."""

from parley.orchestrator.formats.moderated.discussion import Discussion, Round
from parley.orchestrator.formats.moderated.ends import CONFIDENCE_NAMES
from parley.orchestrator.formats.moderated.outcome import DecisionAnswer
from parley.orchestrator.formats.moderated.points import points_by_name
from parley.orchestrator.model.stands import FIRST_DRAFT, Stand
from parley.orchestrator.phases.effect import PositionQuestion, describe_effect, name_positions
from parley.orchestrator.phases.requirements import parse_kind
from parley.v1.effect_pb2 import DebateEffect, TakenUpIssue
from parley.v1.moderated_pb2 import ModeratedOutcome


def list_debater_stands(discussion: Discussion) -> list[Stand]:
    """Return where each debater stood: with its argument of the first round, which is its first draft, and in the end of each round."""
    rounds = discussion.rounds_with_arguments
    drafts = [
        Stand(agent, FIRST_DRAFT, speech.contribution.position)
        for agent, speech in rounds[0].arguments.items()
    ]
    stands = [
        Stand(each.agent, current.number, each.position, _list_conceded(current, each.agent))
        for current in rounds
        for each in current.positions()
    ]
    return [*drafts, *stands]


def _list_conceded(current: Round, agent: str) -> tuple[TakenUpIssue, ...]:
    """Return the points that a debater granted in a round."""
    points = points_by_name(current.speeches)
    names = current.rebuttals[agent].concedes if agent in current.rebuttals else ()
    return tuple(
        TakenUpIssue(critic_agent_id=points[name].agent, number=int(name.rpartition(".")[2]))
        for name in names
        if name in points
    )


def effect_of_decision(
    discussion: Discussion, asked: PositionQuestion, answer: DecisionAnswer, outcome: ModeratedOutcome
) -> DebateEffect:
    """Return what the debate changed, as far as the moderator said in its decision which positions are the same."""
    debate, stands = discussion.debate, list_debater_stands(discussion)
    found = discussion.analysis
    kind = parse_kind(found.analysis.kind if found else "")
    word = CONFIDENCE_NAMES[outcome.confidence] if answer.confidence else ""
    named = name_positions(stands, None, asked, answer.positions)
    return describe_effect(debate, debate.judge, stands, named, kind, word)
