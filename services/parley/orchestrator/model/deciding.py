"""The material of a decision: the sides of the first drafts, the judge's choice and what it weighs. Pure functions."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from parley.orchestrator.model.voting import Group
from parley.v1.voting_pb2 import (
    JUDGE_STANDING_RECORD,
    JUDGE_STANDING_STRONGER,
    JUDGE_STANDING_TIES_ONLY,
    JudgeStanding,
)

_UNKNOWN: Final = (12, 12)
"""Right and wrong answers that a judge is assumed to have given before its first: as often wrong as right, it weighs nothing."""
_STRONGER: Final = (20, 4)
"""The same of one that is called stronger: right five times in six, it weighs 2.3, a panel's agent without a record 1."""


class JudgeWeight(Struct, frozen=True):
    """What a judge's ballot weighs, and by what; 0: it only breaks ties."""

    weight: float
    standing: JudgeStanding.ValueType


def weigh_judge(right: int, wrong: int, *, stronger: bool, weighted: bool = True) -> JudgeWeight:
    """Return what the ballot of a judge weighs whose answers were found right or wrong so often.

    It is the log-odds of being right, in bits, as those of agents are (`ratings/weights.py`), but shrunk towards nothing: an
    agent is weighed against its like, and a judge of which nothing is known would overrule the majority of three by itself.
    `weighted` says whether ballots are; otherwise one of a stronger judge counts 1.
    """
    before = _STRONGER if stronger else _UNKNOWN
    odds = (right + before[0]) / (wrong + before[1])
    weight = round(math.log2(odds), 6) if weighted else float(stronger)
    if weight <= 0:
        return JudgeWeight(0.0, JUDGE_STANDING_TIES_ONLY)
    return JudgeWeight(weight, JUDGE_STANDING_STRONGER if stronger else JUDGE_STANDING_RECORD)


def sides(groups: Iterable[Collection[str]], voters: Collection[str]) -> tuple[Group, ...]:
    """Return the voters by the position of their first drafts, in the order of the groups; who has no draft is in none."""
    found = (tuple(sorted(set(group).intersection(voters))) for group in groups)
    return tuple(group for group in found if group)


def single_best(scores: Mapping[str, float], groups: Iterable[Group]) -> str | None:
    """Return the option with the highest score; None if there is none, or several that do not form one group.

    In one group, it is the first by name.
    """
    best = sorted(option for option, score in scores.items() if score == max(scores.values()))
    alike = next((group for group in groups if best and best[0] in group), tuple(best[:1]))
    return best[0] if best and set(best) <= set(alike) else None


def positions_taken(
    unlike: Iterable[tuple[str, str]], positions: Sequence[str], agents: Collection[str]
) -> list[list[str]]:
    """Return which agents take each position, ordered; `unlike` are pairs that are not the same answer beyond doubt.

    An agent that is like several positions is counted for none of them.
    """
    apart = {frozenset(each) for each in unlike}
    found: list[list[str]] = [[] for _ in positions]
    for agent in sorted(agents):
        near = [place for place, each in enumerate(positions) if {agent, each} not in apart]
        if len(near) == 1:
            found[near[0]].append(agent)
    return found
