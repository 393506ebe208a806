"""When a simulated debate ends: by the rules of an arena, as far as they go by positions, confidence and critics' words."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

from parley.convergence.agreement import Relation
from parley.convergence.assessment import Critic, Round, Thresholds, Verdict, assess
from parley.convergence.grouping import Reading
from parley.orchestrator.formats.arena.settings import SETTINGS
from parley.orchestrator.model.stopping import (
    StatedPosition,
    asking_order,
    is_unanimous,
    measure_shift,
    posterior,
)
from parley.v1.arena_pb2 import ArenaSettings
from tests.bench.decisions.debates import AFTER_ALL, AFTER_DRAFTS, NAMES, ROUNDS, Course, End, edges

assert isinstance(SETTINGS.defaults, ArenaSettings)
_STOPPING: Final = SETTINGS.defaults.stopping


def adaptive_end(course: Course, confidences: Sequence[float], topology: str = "all to all") -> End:
    """Return where the default rules end a debate: unanimous drafts, agreement, or positions that hardly change."""
    if is_unanimous(course.drafts):
        return AFTER_DRAFTS
    for rounds in range(1, ROUNDS + 1):
        before, now = course.stands[rounds - 1], course.stands[rounds]
        if _agree(before, now, topology) or _is_stable(before, now, confidences, first=rounds == 1):
            return End(rounds)
    return AFTER_ALL


def ask_in_turn(drafts: Sequence[str], weights: Sequence[float]) -> Sequence[int] | None:
    """Return who is asked, seat by seat, until an answer is probable enough; None where it never is."""
    names = NAMES[: len(drafts)]
    known = dict(zip(names, weights, strict=True))
    asked: list[str] = []
    for group in asking_order(known, names):
        asked += group
        held = {name: drafts[names.index(name)] for name in asked}
        if 100 * max(posterior(held, known).values()) >= _STOPPING.sequential_percent:
            return [names.index(name) for name in asked]
    return None


def _agree(before: Sequence[str], now: Sequence[str], topology: str) -> bool:
    """Return whether positions and critics come to the share that is asked for; critics have read the texts of before."""
    names = NAMES[: len(now)]
    held = dict(zip(names, now, strict=True))
    relations = {
        pair: Relation.SAME if held[pair[0]] == held[pair[1]] else Relation.APART
        for pair in combinations(names, 2)
    }
    reading = Reading(held, relations, dict.fromkeys(relations, None))
    earlier = dict(zip(names, before, strict=True))
    critics = [
        Critic(critic, target, earlier[critic] == earlier[target])
        for critic, target in edges(len(names), topology)
    ]
    kept = {name: held[name] == earlier[name] for name in names}
    thresholds = Thresholds(agreement=_STOPPING.convergence_threshold_percent)
    return assess(Round(reading, (), ()), None, kept, critics, thresholds).verdict is Verdict.CONVERGED


def _is_stable(
    before: Sequence[str], now: Sequence[str], confidences: Sequence[float], *, first: bool
) -> bool:
    """Return whether hardly anyone has moved. Of its first draft nobody says how sure it is."""
    sure: Mapping[int, float | None] = dict(enumerate(confidences))
    earlier = {
        str(seat): StatedPosition(stand, None if first else sure[seat]) for seat, stand in enumerate(before)
    }
    later = {str(seat): StatedPosition(stand, sure[seat]) for seat, stand in enumerate(now)}
    return 100 * measure_shift(earlier, later) <= _STOPPING.stable_positions_percent
