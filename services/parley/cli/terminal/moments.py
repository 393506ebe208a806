"""What stands out in a debate itself, from its result alone, by the rules that memory has: a lone dissenter who won, or a unanimous flip."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from parley.cli.terminal.words import debating_agents
from parley.client import Debate
from parley.moment_rules import find_moments
from parley.runtime.printable import printable_line
from parley.v1.debate_pb2 import Outcome
from parley.v1.effect_pb2 import TakenPosition
from parley.v1.memory_pb2 import (
    MOMENT_KIND_LONE_DISSENTER_WON,
    MOMENT_KIND_UNANIMOUS_FLIP,
    FinalStand,
    MomentKind,
    RecordDebateRequest,
)

_TITLES: Final[Mapping[MomentKind.ValueType, str]] = {
    MOMENT_KIND_LONE_DISSENTER_WON: "A lone dissenter won",
    MOMENT_KIND_UNANIMOUS_FLIP: "All agents changed their minds",
}


def moment_lines(debate: Debate) -> Iterator[str]:
    """Yield `A lone dissenter won. At first Ada alone stood for “Use Kafka”, …`; nothing in most debates."""
    for each in find_moments(RecordDebateRequest(stands=_list_stands(debate))):
        yield f"{_TITLES[each.kind]}. {each.text}"


def _list_stands(debate: Debate) -> Iterator[FinalStand]:
    """Yield where each agent stood at first and in the end, as far as the result says it."""
    positions, decided = debate.outcome.effect.positions, debate.outcome.effect.decided_position
    firsts = {agent: place for place, each in enumerate(positions, 1) for agent in each.first_agent_ids}
    lasts = {agent: place for place, each in enumerate(positions, 1) for agent in each.last_agent_ids}
    names = {each.id: each.name for each in debating_agents(debate)}
    against = _list_objectors(debate.outcome)
    for agent in firsts | lasts:
        first, last = firsts.get(agent, 0), lasts.get(agent, 0)
        yield FinalStand(
            agent_id=printable_line(agent),
            agent_name=printable_line(names.get(agent, "")),
            text=_text_of(positions, last),
            for_decision=agent not in against and last == decided if last and decided else None,
            first_text=_text_of(positions, first),
            first_for_decision=first == decided if first and decided else None,
            first_position=first,
        )


def _list_objectors(outcome: Outcome) -> frozenset[str]:
    """Return who disagrees with the decision, whatever position it takes."""
    objections = (*outcome.panel.objections, *outcome.arena.dissent, *outcome.moderated.dissents)
    return frozenset(each.agent_id for each in objections)


def _text_of(positions: Sequence[TakenPosition], number: int) -> str:
    return printable_line(positions[number - 1].text) if number else ""
