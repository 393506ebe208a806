"""What stands out in a debate itself, from its result alone: a lone dissenter who won, or a unanimous flip.

Memory finds the same in what it records (`MomentKind` says the rules).
"""

from collections.abc import Iterator
from typing import Final

from parley.cli.terminal.words import debating_agents, one_line
from parley.client import Debate
from parley.v1.debate_pb2 import Outcome
from parley.v1.effect_pb2 import TakenPosition

_FEWEST_FLIPS: Final = 2
_MAX_QUOTED: Final = 160
_MAX_NAME: Final = 64


def moment_lines(debate: Debate) -> Iterator[str]:
    """Yield `A lone dissenter won: Ada. At first it stood alone for “Use Kafka”, and 2 of 3 agents for “Wait”.`; nothing in most debates."""
    effect = debate.outcome.effect
    decided = effect.positions[effect.decided_position - 1] if effect.decided_position else None
    leading = max(effect.positions, key=lambda each: len(each.first_agent_ids), default=None)
    if decided is None or leading is None or decided == leading:
        return
    count = len(leading.first_agent_ids)
    drafts = sum(len(each.first_agent_ids) for each in effect.positions)
    if len(decided.first_agent_ids) == 1 and 2 * count > drafts:  # so there are three at least
        yield (
            f"A lone dissenter won: {_name(debate, decided.first_agent_ids[0])}. At first it stood alone for {_quote(decided)},"
            f" and {count} of {drafts} agents for {_quote(leading)}."
        )
    if count == drafts >= _FEWEST_FLIPS and _all_stand_for(decided, leading, debate.outcome):
        yield f"All agents changed their minds: from {_quote(leading)} to {_quote(decided)}."


def _all_stand_for(decided: TakenPosition, left: TakenPosition, outcome: Outcome) -> bool:
    """Return whether all that left a position are all that take the one that was decided for, and none objects."""
    objects = outcome.panel.objections or outcome.arena.dissent or outcome.moderated.dissents
    elsewhere = any(each.last_agent_ids for each in outcome.effect.positions if each != decided)
    return set(decided.last_agent_ids) == set(left.first_agent_ids) and not elsewhere and not objects


def _name(debate: Debate, agent_id: str) -> str:
    names = {each.id: each.name for each in debating_agents(debate)}
    return one_line(names.get(agent_id) or agent_id, _MAX_NAME)


def _quote(position: TakenPosition) -> str:
    return f"“{one_line(position.text, _MAX_QUOTED).rstrip('.')}”"
