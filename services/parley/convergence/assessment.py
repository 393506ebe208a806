"""The assessment of a round: agreement, who keeps its position, novelty, and the verdict."""

from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import combinations
from typing import Final

from msgspec import Struct

from parley.convergence.agreement import Relation
from parley.convergence.grouping import Reading, group
from parley.convergence.vectors import Vector, cosine

_REPEATED_FROM: Final = 0.7
"""Cosine of two sentences' fast vectors from which the second one repeats the first."""


class Critic(Struct, frozen=True):
    """Whether an agent agrees with another agent's work."""

    agent_id: str
    target_id: str
    agrees: bool


class Verdict(Enum):
    """The verdict of an assessment."""

    CONVERGED = "converged"
    STABLE_DISAGREEMENT = "stable disagreement"
    CONTINUING = "continuing"
    REFINING = "refining"
    DIVERGING = "diverging"
    UNDETERMINED = "cannot be told"


class Thresholds(Struct, frozen=True):
    """In percent."""

    agreement: int = 90
    novelty: int = 20


class Round(Struct, frozen=True):
    """A round with the relations and vectors of its positions.

    Attributes:
        reading: The relations of its positions.
        texts: Fast vectors of whole texts, relative to the question, one for each agent; empty if an agent has no text.
        sentences: Fast vectors of all agents' sentences.
    """

    reading: Reading
    texts: tuple[Vector, ...]
    sentences: tuple[Vector, ...]


class _Bounds(Struct, frozen=True):
    """Agreement in percent: the least if all unsure pairs are apart, the most if they are the same answer."""

    least: float
    most: float


class Assessment(Struct, frozen=True):
    """Figures in percent; None if there is nothing to compute them from."""

    verdict: Verdict
    agreement: float
    position_agreement: float
    text_agreement: float | None
    critic_agreement: float | None
    kept: Mapping[str, bool | None]
    novelty: float | None
    reading: Reading
    reason: str


def assess(
    present: Round,
    previous: Round | None,
    kept: Mapping[str, bool | None],
    critics: Sequence[Critic],
    thresholds: Thresholds,
) -> Assessment:
    """Assess `present` against `previous`.

    `kept`: whether each agent of both rounds has kept its position, None if that is unknown; `critics` are the critics'
    verdicts since. A verdict does not count if its critic or author has another position since then.
    """
    said = [float(each.agrees) for each in critics if not _has_moved(each, kept)]
    critic = _mean_percent(said) if said else None
    agreement = _agreement(present.reading, critic)
    novelty = _novelty(present, previous) if previous is not None else None
    verdict = _verdict(agreement, present, previous, kept, novelty, thresholds)
    return Assessment(
        verdict=verdict,
        agreement=agreement.least,
        position_agreement=_share(present.reading, unsure=False),
        text_agreement=_text_agreement(present.texts),
        critic_agreement=critic,
        kept={agent: kept[agent] for agent in sorted(kept)},
        novelty=novelty,
        reading=present.reading,
        reason=_reason(verdict, agreement.least, critic, present.reading, kept, novelty, thresholds),
    )


def _has_moved(critic: Critic, kept: Mapping[str, bool | None]) -> bool:
    return any(kept.get(agent) is False for agent in (critic.agent_id, critic.target_id))


def _agreement(reading: Reading, critic: float | None) -> _Bounds:
    least, most = _share(reading, unsure=False), _share(reading, unsure=True)
    return _Bounds(least, most) if critic is None else _Bounds((least + critic) / 2, (most + critic) / 2)


def _share(reading: Reading, *, unsure: bool) -> float:
    """Return the percentage of pairs that are the same answer, with or without the unsure ones."""
    counted = len(reading.pairs(Relation.SAME)) + (len(reading.pairs(Relation.UNSURE)) if unsure else 0)
    return 100 * counted / len(reading.relations)


def _verdict(
    agreement: _Bounds,
    present: Round,
    previous: Round | None,
    kept: Mapping[str, bool | None],
    novelty: float | None,
    thresholds: Thresholds,
) -> Verdict:
    if agreement.least >= thresholds.agreement:
        return Verdict.CONVERGED
    if agreement.most >= thresholds.agreement:
        return Verdict.UNDETERMINED
    is_complete = kept.keys() == present.reading.positions.keys() and False not in kept.values()
    if is_complete and novelty is not None and novelty <= thresholds.novelty:
        return Verdict.UNDETERMINED if None in kept.values() else Verdict.STABLE_DISAGREEMENT
    if previous is None or not previous.reading.relations:
        return Verdict.CONTINUING
    if _share(present.reading, unsure=True) < _share(previous.reading, unsure=False):
        return Verdict.DIVERGING
    at_least, before = _share(present.reading, unsure=False), _share(previous.reading, unsure=True)
    return Verdict.REFINING if at_least >= before else Verdict.CONTINUING


def _novelty(present: Round, previous: Round) -> float:
    if not present.sentences:
        return 0.0
    if not previous.sentences:
        return 100.0
    import numpy as np

    nearest = (np.stack(present.sentences) @ np.stack(previous.sentences).T).max(axis=1)
    return 100 * float((nearest < _REPEATED_FROM).mean())


def _text_agreement(texts: Sequence[Vector]) -> float | None:
    if len(texts) < 2:
        return None
    return _mean_percent([max(cosine(one, other), 0.0) for one, other in combinations(texts, 2)])


def _mean_percent(shares: Sequence[float]) -> float:
    return min(100 * sum(shares) / len(shares), 100.0)


def _reason(
    verdict: Verdict,
    agreement: float,
    critic: float | None,
    reading: Reading,
    kept: Mapping[str, bool | None],
    novelty: float | None,
    thresholds: Thresholds,
) -> str:
    parts = [f"{verdict.value}: agreement {agreement:.0f} % (converged from {thresholds.agreement} %)"]
    parts.append(f"positions {len(group(reading).groups)}")
    if critic is not None:
        parts.append(f"critics that agree {critic:.0f} %")
    if apart := reading.pairs(Relation.APART):
        parts.append(f"{apart[0][0]} and {apart[0][1]} are apart")
    if unsure := reading.pairs(Relation.UNSURE):
        parts.append(f"pairs that cannot be told {len(unsure)}")
    if kept:
        parts.append(f"{list(kept.values()).count(True)} of {len(kept)} agents keep their positions")
    if novelty is not None:
        parts.append(f"novelty {novelty:.0f} %")
    return ", ".join(parts)
