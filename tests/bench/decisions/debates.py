"""Debates of simulated agents, held in process: who reads whom is drawn as an arena draws it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Final

from parley.orchestrator.model.topology import RoundParticipants, draw_edges
from parley.v1.arena_pb2 import (
    TOPOLOGY_KIND_ALL_TO_ALL,
    TOPOLOGY_KIND_RING,
    TOPOLOGY_KIND_STAR,
    Topology,
    TopologyKind,
)
from tests.bench.decisions.agents import Panel, Question, Regime, revise

NAMES: Final = ("ada", "bo", "cy", "dee", "eve", "fay")
"""The agents, seat by seat."""
ROUNDS: Final = 3
"""Rounds of revision that a debate has at most."""
TOPOLOGIES: Final[Mapping[str, TopologyKind.ValueType]] = {
    "all to all": TOPOLOGY_KIND_ALL_TO_ALL,
    "ring": TOPOLOGY_KIND_RING,
    "star": TOPOLOGY_KIND_STAR,
}


@dataclass(frozen=True, slots=True)
class End:
    """How far a debate went: rounds of revision, and whether the drafts were criticized and the last refinement was written."""

    rounds: int
    criticized: bool = True
    refined: bool = False

    @property
    def place(self) -> int:
        """Where the last stands are in a `Course`."""
        return self.rounds + self.refined


AFTER_DRAFTS: Final = End(0, criticized=False)
AFTER_ALL: Final = End(ROUNDS, refined=True)


@dataclass(frozen=True, slots=True)
class Course:
    """What agents stood for, seat by seat: at first, after each round of revision, and in the last refinement."""

    stands: tuple[tuple[str, ...], ...]

    @property
    def drafts(self) -> tuple[str, ...]:
        """What each held before it read any other."""
        return self.stands[0]

    @property
    def last(self) -> tuple[str, ...]:
        """What each held in the end."""
        return self.stands[-1]


def seats(panel: Panel) -> tuple[str, ...]:
    """Return the names of a panel's agents."""
    return NAMES[: len(panel.skills)]


def hold(panel: Panel, regime: Regime, question: Question, topology: str = "all to all") -> Course:
    """Return what became of a question in a debate of three rounds."""
    size = len(panel.skills)
    near = _neighbours(size, topology)
    now = question.first[:size]
    stands = [now]
    for reading in range(ROUNDS + 1):
        now = tuple(
            revise(
                panel.kinds[seat],
                regime,
                question.right,
                now[seat],
                now,
                [now[other] for other in near[seat]],
                question.dice[seat][reading],
            )
            for seat in range(size)
        )
        stands.append(now)
    return Course(tuple(stands))


@lru_cache
def edges(size: int, topology: str) -> tuple[tuple[str, str], ...]:
    """Return who criticizes whom among so many agents. The star's hub is the last seat of five, the best of each panel."""
    agents = NAMES[:size]
    hub = NAMES[4] if topology == "star" else ""
    kind = Topology(kind=TOPOLOGIES[topology], hub_agent_id=hub)
    return draw_edges(kind, RoundParticipants(agents, agents, agents, 2, Random(0)))


def calls(size: int, end: End, topology: str = "all to all") -> int:
    """Return the model calls of an arena of so many agents: requirements, judge, answer, a draft, a vote and a consent each,
    and what its rounds have taken."""
    pairs = len(edges(size, topology))
    critiques = pairs * max(end.rounds, int(end.criticized))
    return 3 + 3 * size + critiques + end.rounds * size + size * end.refined


@lru_cache
def _neighbours(size: int, topology: str) -> tuple[Sequence[int], ...]:
    """Return whose texts or critiques each seat reads in full: of an edge, each reads the other's."""
    drawn = edges(size, topology)
    return tuple(
        tuple(other for other in range(size) if (NAMES[other], NAMES[seat]) in drawn) for seat in range(size)
    )
