"""Topologies: who criticizes whom in a round. Pure functions; what is drawn follows from names, the round and dice."""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from random import Random  # noqa: TID251 (callers pass that of the debate)
from typing import Final

from msgspec import Struct

from parley.runtime.contract_settings import default_of
from parley.v1.arena_pb2 import (
    TOPOLOGY_KIND_ALL_TO_ALL,
    TOPOLOGY_KIND_RING,
    TOPOLOGY_KIND_ROUND_ROBIN,
    TOPOLOGY_KIND_SPARSE,
    TOPOLOGY_KIND_STAR,
    Topology,
)

DEFAULT_SPARSITY: Final[float] = default_of(Topology, "sparsity")

Edge = tuple[str, str]
"""Who criticizes, and whose proposal."""


class RoundParticipants(Struct, frozen=True):
    """Who sits in a round.

    Attributes:
        agents: All, in their order around the table.
        critics: Those that may criticize.
        authors: Those that have a proposal.
        round: The round's number.
        dice: Fall the same for this debate and round.
    """

    agents: Sequence[str]
    critics: Collection[str]
    authors: Collection[str]
    round: int
    dice: Random

    def critics_of(self, author: str) -> list[str]:
        """Return who may criticize an author, in the order around the table that begins after it."""
        place = list(self.agents).index(author)
        around = [*self.agents[place + 1 :], *self.agents[:place]]
        return [each for each in around if each in self.critics]


def draw_edges(topology: Topology, seats: RoundParticipants) -> tuple[Edge, ...]:
    """Return who criticizes whom, ordered by author and critic.

    Every author has a critic, provided that there is another agent that may criticize.
    """
    drawn = set(_EDGE_RULES[topology.kind](topology, seats))
    return tuple(
        (critic, author) for author in seats.agents for critic in seats.agents if (critic, author) in drawn
    )


def describe_topology(topology: Topology) -> str:
    """Return a topology in a few words, such as `star around ada`."""
    words = KINDS[topology.kind]
    if topology.kind == TOPOLOGY_KIND_STAR and topology.hub_agent_id:
        return f"{words} around {topology.hub_agent_id}"
    if topology.kind == TOPOLOGY_KIND_SPARSE:
        return f"{words} {topology.sparsity or DEFAULT_SPARSITY:.0%}".replace("%", " %")
    return words


def _all_to_all(_topology: Topology, seats: RoundParticipants) -> Iterator[Edge]:
    for author in _authors(seats):
        yield from ((critic, author) for critic in seats.critics_of(author))


def _round_robin(_topology: Topology, seats: RoundParticipants) -> Iterator[Edge]:
    """Give each author one critic: the first is chosen by a hash of its name, and in each round it is the next one."""
    for author in _authors(seats):
        critics = seats.critics_of(author)
        if critics:
            yield critics[(_hash(author) + seats.round) % len(critics)], author


def _ring(_topology: Topology, seats: RoundParticipants) -> Iterator[Edge]:
    """Give each author the nearest critic on both sides."""
    for author in _authors(seats):
        critics = seats.critics_of(author)
        yield from ((critic, author) for critic in (*critics[:1], *critics[-1:]))


def _star(topology: Topology, seats: RoundParticipants) -> Iterator[Edge]:
    """Let the hub criticize all, and all the hub; if it cannot criticize, the first agent that can replaces it."""
    able = [each for each in seats.agents if each in seats.critics]
    if not able:
        return
    hub = topology.hub_agent_id if topology.hub_agent_id in able else able[0]
    for author in _authors(seats):
        yield from ((critic, author) for critic in seats.critics_of(author) if hub in (critic, author))


def _sparse(topology: Topology, seats: RoundParticipants) -> Iterator[Edge]:
    """Draw each edge with the same probability, and one edge if an author would have none."""
    for author in _authors(seats):
        critics = seats.critics_of(author)
        drawn = [each for each in critics if seats.dice.random() < (topology.sparsity or DEFAULT_SPARSITY)]
        if critics and not drawn:
            drawn = [seats.dice.choice(critics)]
        yield from ((critic, author) for critic in drawn)


def _authors(seats: RoundParticipants) -> list[str]:
    return [each for each in seats.agents if each in seats.authors]


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")


_EDGE_RULES: Final[Mapping[int, Callable[[Topology, RoundParticipants], Iterator[Edge]]]] = {
    TOPOLOGY_KIND_ALL_TO_ALL: _all_to_all,
    TOPOLOGY_KIND_ROUND_ROBIN: _round_robin,
    TOPOLOGY_KIND_RING: _ring,
    TOPOLOGY_KIND_STAR: _star,
    TOPOLOGY_KIND_SPARSE: _sparse,
}
KINDS: Final[Mapping[int, str]] = {
    TOPOLOGY_KIND_ALL_TO_ALL: "all to all",
    TOPOLOGY_KIND_ROUND_ROBIN: "round robin",
    TOPOLOGY_KIND_RING: "ring",
    TOPOLOGY_KIND_STAR: "star",
    TOPOLOGY_KIND_SPARSE: "sparse",
}
"""The kinds of topologies, in words."""
