"""What ratings know of a panel before a vote: debates that a judge has judged, rightly nine times in ten."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from parley.ratings.calibration import JudgedAnswer, Record
from parley.ratings.elo import START, rating_changes
from parley.ratings.weights import WeightRule, weigh
from tests.bench.decisions.agents import SEATS, Panel, questions

JUDGED: Final = 60
"""Debates that were judged before."""
JUDGE_RIGHT: Final = 0.9
"""Probability that the judge tells a right answer from a wrong one."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each agent's vote weighs, seat by seat."""

    elo: tuple[float, ...]
    accuracy: tuple[float, ...]


def weights_after(panel: Panel, dice: np.random.Generator) -> Weights:
    """Return the weights that ratings come to after so many debates of the panel."""
    agents = range(len(panel.skills))
    elo = dict.fromkeys(map(str, agents), START)
    records = [Record() for _ in agents]
    drawn = list(questions(panel, JUDGED, dice, readings=0))
    for question, falls in zip(drawn, dice.random((JUDGED, SEATS)), strict=True):
        found = [
            (question.first[agent] == question.right) == (falls[agent] < JUDGE_RIGHT) for agent in agents
        ]
        for name, gain in rating_changes(
            elo, {str(agent): 8.0 if found[agent] else 4.0 for agent in agents}
        ).items():
            elo[name] += gain
        for agent in agents:
            answer = JudgedAnswer(str(agent), bool(found[agent]), question.confidences[agent])
            records[agent] = records[agent].with_answer(answer)
    return Weights(
        *(
            tuple(weigh(elo[str(agent)], records[agent], rule)[0] for agent in agents)
            for rule in (WeightRule.ELO, WeightRule.ACCURACY)
        )
    )
