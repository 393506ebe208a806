"""Simulated agents: what each holds first, how sure it says it is, and what reading its peers does to that.

An agent is right where its margin, made of the question's difficulty, its family's luck and its own, is beyond its skill. Of wrong
answers most are the same lure.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

OPTIONS: Final = ("copper", "gold", "iron", "silver")
LURE: Final = 0.78
"""Probability that a wrong answer is the lure: two wrong agents then agree on about 60 % of questions, as real pairs do."""
DIFFICULTY: Final = 0.35
"""Of a margin's variance, what all agents share."""
OVERCONFIDENCE: Final = 0.15
"""By how much agents say they are surer than they are right."""
READINGS: Final = 8
"""How often an agent may read its peers in a debate."""
SEATS: Final = 7
JUDGE_SEAT: Final = SEATS - 1
"""The seat of the judge, an agent of a family of its own; before it stand up to six that debate."""
JUDGE_SKILL: Final = 0.75

Answers = npt.NDArray[np.int64]


class Kind(Enum):
    """How an agent reads its peers."""

    OPEN = "open"
    SYCOPHANT = "sycophant"
    LOUD_FOOL = "loud fool"


@dataclass(frozen=True, slots=True)
class Panel:
    """Agents by skill; `family`: how much of their luck those of one family share; `families`: which each is of.

    `dice` tells panels apart whose questions are drawn differently. `judge`: the skill of the judge, which is of
    `judge_family`. With `own_lures` the wrong answers of a family are all the same, and those of other families another one.
    """

    name: str
    dice: int
    skills: tuple[float, ...]
    families: tuple[int, ...] = (0, 1, 2, 3, 4)
    family: float = 0.15
    kinds: tuple[Kind, ...] = (Kind.OPEN,) * 5
    judge: float = JUDGE_SKILL
    judge_family: int = JUDGE_SEAT
    own_lures: bool = False


@dataclass(frozen=True, slots=True)
class Regime:
    """What reading its peers does to an agent, each time it revises.

    Attributes:
        conform: Probability that it takes over the answer of a strict majority of all stands that it reads, its own among
            them; with `draws`, that it takes over one of them, whichever.
        pull: Probability that an agent that is wrong is persuaded where a critic or a neighbour argues for the truth; several
            who do make one argument.
        fragile: Probability that one that is right gives way where all arguments that it reads are for something else;
            where some are, in proportion.
        draws: The belief in the truth is a martingale then, as in Choi et al., "Debate or vote" (2025), arXiv:2508.17536:
            on average an agent is right as often as before.
    """

    name: str
    conform: float
    pull: float = 0.0
    fragile: float = 0.0
    draws: bool = False


PANELS: Final = (
    Panel("equal", 0, (0.7,) * 5),
    Panel("mixed skill", 1, (0.55, 0.6, 0.65, 0.75, 0.85)),
    Panel("one strong", 2, (0.55, 0.55, 0.6, 0.6, 0.85)),
    Panel("echo of one family", 3, (0.6, 0.6, 0.6, 0.7, 0.8), (0,) * 5, 0.5),
)
REGIMES: Final = (
    Regime("martingale", 0.3, draws=True),
    Regime("weak", 0.8, 0.01, 0.12),
    Regime("corrective", 0.6, 0.12, 0.12),
)


@dataclass(frozen=True, slots=True)
class Question:
    """One question as its agents meet it, seat by seat.

    Attributes:
        right: The option that is true; which one that is changes from question to question.
        first: What each would answer by itself.
        confidences: How sure each says it is, 0 to 1.
        dice: Of each seat and reading, three numbers from 0 to 1.
    """

    number: int
    right: str
    first: tuple[str, ...]
    confidences: tuple[float, ...]
    dice: Sequence[Sequence[Sequence[float]]]


def with_another(panel: Panel, kind: Kind) -> Panel:
    """Return a panel with a sixth agent; the others hold and say first what they do without it."""
    skill, family = (1 / len(OPTIONS), 5) if kind is Kind.LOUD_FOOL else (0.6, 5)
    return Panel(
        f"{panel.name} and a {kind.value}",
        panel.dice,
        (*panel.skills, skill),
        (*panel.families, family),
        panel.family,
        (*panel.kinds, kind),
    )


def answers(panel: Panel, count: int, dice: np.random.Generator) -> Answers:
    """What each seat answers to each question by itself: 0 is right, 1 the lure; the last seat is the judge's."""
    return _draw(panel, count, dice)[0]


def questions(
    panel: Panel, count: int, dice: np.random.Generator, readings: int = READINGS
) -> Iterator[Question]:
    """Yield questions with what agents hold of them, in the order in which they are drawn.

    How sure an agent says it is tells a right answer from a wrong one with an AUC of about 0.6, as of real models: Xiong et
    al., "Can LLMs express their uncertainty?" (2024), arXiv:2306.13063.
    """
    given, beyond = _draw(panel, count, dice)
    said = OVERCONFIDENCE + np.array(_skills(panel)) + 0.02 * (beyond - beyond.mean(axis=0))
    confidences = np.clip(said + 0.08 * dice.standard_normal(given.shape), 0.05, 0.99)
    for seat, kind in enumerate(panel.kinds):
        if kind is Kind.LOUD_FOOL:
            confidences[:, seat] = 0.99
    meanings = dice.permuted(np.tile(np.arange(len(OPTIONS)), (count, 1)), axis=1)
    falls = dice.random((count, SEATS, readings, 3)).tolist()
    for number in range(count):
        named = [OPTIONS[place] for place in meanings[number]]
        yield Question(
            number,
            named[0],
            tuple(named[each] for each in given[number]),
            tuple(map(float, confidences[number])),
            falls[number],
        )


def revise(
    kind: Kind,
    regime: Regime,
    right: str,
    own: str,
    stands: Sequence[str],
    arguments: Sequence[str],
    dice: Sequence[float],
) -> str:
    """Return what an agent answers after it has read its peers.

    Args:
        kind: How it reads.
        regime: What reading does.
        right: The truth.
        own: What it answered before.
        stands: What all agents answer, its own among them, seat by seat.
        arguments: What those answer whose critiques or texts it reads in full.
        dice: Three numbers from 0 to 1.
    """
    if kind is Kind.LOUD_FOOL:
        return own
    if kind is Kind.SYCOPHANT:
        return _find_most(stands, own)
    persuaded = _persuade(regime, right, own, arguments, dice)
    if persuaded != own:
        return persuaded
    if dice[2] >= regime.conform:
        return own
    if regime.draws:
        return stands[int(dice[2] / regime.conform * len(stands))]
    most = _find_most(stands, own)
    return most if 2 * sum(each == most for each in stands) > len(stands) else own


def _persuade(regime: Regime, right: str, own: str, arguments: Sequence[str], dice: Sequence[float]) -> str:
    if own != right:
        return right if right in arguments and dice[0] < regime.pull else own
    against = sorted(each for each in arguments if each != own)
    if against and dice[0] < regime.fragile * len(against) / len(arguments):
        return against[int(dice[1] * len(against))]
    return own


def _find_most(stands: Sequence[str], own: str) -> str:
    """Return the most frequent stand; one's own where it is as frequent."""
    counts = Counter(stands)
    most = max(counts.values())
    return own if counts[own] == most else next(each for each in stands if counts[each] == most)


def _skills(panel: Panel) -> tuple[float, ...]:
    spare = (0.5,) * (JUDGE_SEAT - len(panel.skills))
    return (*panel.skills, *spare, panel.judge)


def _draw(panel: Panel, count: int, dice: np.random.Generator) -> tuple[Answers, npt.NDArray[np.float64]]:
    """Return answers, and by how much each margin is beyond its bar. As many dice fall however many agents there are."""
    families = [*panel.families, *(5,) * (JUDGE_SEAT - len(panel.families)), panel.judge_family]
    difficulty = dice.standard_normal((count, 1))
    luck = dice.standard_normal((count, SEATS))[:, families]
    own = dice.standard_normal((count, SEATS))
    margin = (
        -math.sqrt(DIFFICULTY) * difficulty
        + math.sqrt(panel.family) * luck
        + math.sqrt(1 - DIFFICULTY - panel.family) * own
    )
    beyond = margin - [NormalDist().inv_cdf(1 - skill) for skill in _skills(panel)]
    wrong = np.where(dice.random(own.shape) < LURE, 1, dice.integers(2, len(OPTIONS), size=own.shape))
    if panel.own_lures:
        wrong = np.broadcast_to(1 + np.array(families) % (len(OPTIONS) - 1), own.shape)
    return np.where(beyond > 0, 0, wrong), beyond
