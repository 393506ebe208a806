"""Assesses a round: agreement, stability, novelty, and what follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from typing import Final

import numpy as np

from parley.convergence.grouping import Contradiction, Grouping, group
from parley.convergence.likeness import Placed, cosine, likeness
from parley.convergence.vectors import Vector

__all__ = ["Assessment", "Round", "Thresholds", "Verdict", "assess"]

_SAID_BEFORE: Final = 0.7
"""Cosine of two sentences' fast vectors from which the second says nothing new."""


class Verdict(Enum):
    """What follows from an assessment."""

    CONVERGED = "converged"
    STABLE_DISAGREEMENT = "stable disagreement"
    CONTINUING = "continuing"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """In percent."""

    agreement: int = 90
    stability: int = 80
    novelty: int = 20


@dataclass(frozen=True, slots=True)
class Round:
    """A round in vectors.

    Attributes:
        stands: One for each agent.
        texts: Fast vectors of whole texts, centred on the question, one an agent; empty where an agent has no text.
        sentences: Fast vectors of all agents' sentences.
    """

    stands: tuple[Placed, ...]
    texts: tuple[Vector, ...]
    sentences: tuple[Vector, ...]


@dataclass(frozen=True, slots=True)
class Assessment:
    """Figures in percent; None where there was nothing to tell them from."""

    verdict: Verdict
    agreement: float
    position_agreement: float
    text_agreement: float | None
    critic_agreement: float | None
    stability: Mapping[str, float]
    novelty: float | None
    contradictions: tuple[Contradiction, ...]
    reason: str


def assess(
    question: str, present: Round, previous: Round | None, critics: Sequence[bool], thresholds: Thresholds
) -> Assessment:
    """Assesses `present` against `previous`; `critics` says of each critic asked whether it agrees."""
    grouping = group(question, present.stands)
    positions = _mean_percent(list(grouping.likenesses.values()))
    critic = _mean_percent([float(agrees) for agrees in critics]) if critics else None
    agreement = positions if critic is None else (positions + critic) / 2
    stability = _stability(question, present, previous) if previous is not None else {}
    novelty = _novelty(present, previous) if previous is not None else None
    verdict = _verdict(agreement, stability, novelty, len(present.stands), thresholds)
    return Assessment(
        verdict=verdict,
        agreement=agreement,
        position_agreement=positions,
        text_agreement=_text_agreement(present.texts),
        critic_agreement=critic,
        stability=stability,
        novelty=novelty,
        contradictions=grouping.contradictions,
        reason=_reason(verdict, agreement, grouping, stability, novelty, thresholds),
    )


def _verdict(
    agreement: float,
    stability: Mapping[str, float],
    novelty: float | None,
    agents: int,
    thresholds: Thresholds,
) -> Verdict:
    if agreement >= thresholds.agreement:
        return Verdict.CONVERGED
    settled = len(stability) == agents and min(stability.values()) >= thresholds.stability
    if settled and novelty is not None and novelty <= thresholds.novelty:
        return Verdict.STABLE_DISAGREEMENT
    return Verdict.CONTINUING


def _stability(question: str, present: Round, previous: Round) -> dict[str, float]:
    before = {stand.agent_id: stand for stand in previous.stands}
    return {
        stand.agent_id: 100 * likeness(question, before[stand.agent_id], stand)[0]
        for stand in sorted(present.stands, key=lambda each: each.agent_id)
        if stand.agent_id in before
    }


def _novelty(present: Round, previous: Round) -> float:
    if not present.sentences:
        return 0.0
    if not previous.sentences:
        return 100.0
    nearest = (np.stack(present.sentences) @ np.stack(previous.sentences).T).max(axis=1)
    return 100 * float((nearest < _SAID_BEFORE).mean())


def _text_agreement(texts: Sequence[Vector]) -> float | None:
    if len(texts) < 2:
        return None
    return _mean_percent([max(cosine(one, other), 0.0) for one, other in combinations(texts, 2)])


def _mean_percent(shares: Sequence[float]) -> float:
    return min(100 * sum(shares) / len(shares), 100.0)


def _reason(
    verdict: Verdict,
    agreement: float,
    grouping: Grouping,
    stability: Mapping[str, float],
    novelty: float | None,
    thresholds: Thresholds,
) -> str:
    parts = [f"{verdict.value}: agreement {agreement:.0f} % (converged from {thresholds.agreement} %)"]
    parts.append(f"positions {len(grouping.groups)}")
    if grouping.contradictions:
        first = grouping.contradictions[0]
        parts.append(f"{first.one} contradicts {first.other} ({first.reason})")
    if stability:
        parts.append(f"least stability {min(stability.values()):.0f} %")
    if novelty is not None:
        parts.append(f"novelty {novelty:.0f} %")
    return ", ".join(parts)
