"""Topologies: what is true of every draw."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.model.topology import KINDS, Edge, RoundParticipants, describe_topology, draw_edges
from parley.v1.arena_pb2 import (
    TOPOLOGY_KIND_ALL_TO_ALL,
    TOPOLOGY_KIND_RING,
    TOPOLOGY_KIND_ROUND_ROBIN,
    TOPOLOGY_KIND_SPARSE,
    TOPOLOGY_KIND_STAR,
    Topology,
)

NAMES = ("ada", "bo", "cy", "dee", "eve", "fay", "gil", "hal")
KIND = st.sampled_from(sorted(KINDS))


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[str], list[str], int, int]:
    agents = draw(st.permutations(NAMES))[: draw(st.integers(1, len(NAMES)))]
    some = st.lists(st.sampled_from(agents), unique=True)
    return agents, draw(some), draw(some), draw(st.integers(2, 9)), draw(st.integers(0, 2**32))


def draw_table(
    topology: Topology, table: tuple[list[str], list[str], list[str], int, int]
) -> tuple[Edge, ...]:
    agents, critics, authors, number, seed = table
    return draw_edges(topology, RoundParticipants(agents, critics, authors, number, Random(seed)))


def draw_for_everybody(kind: int, count: int = 5, number: int = 2, **fields: object) -> tuple[Edge, ...]:
    agents = NAMES[:count]
    topology = Topology(kind=kind, **fields)  # type: ignore[arg-type]
    return draw_edges(topology, RoundParticipants(agents, agents, agents, number, Random(7)))


@given(KIND, tables())
def test_only_critics_criticize_only_authors_and_nobody_itself(
    kind: int, table: tuple[list[str], list[str], list[str], int, int]
) -> None:
    edges = draw_table(Topology(kind=kind), table)  # type: ignore[arg-type]
    assert all(critic in table[1] and author in table[2] and critic != author for critic, author in edges)
    assert len(set(edges)) == len(edges)


@given(KIND, tables())
def test_every_author_has_a_critic_where_another_may_criticize(
    kind: int, table: tuple[list[str], list[str], list[str], int, int]
) -> None:
    _, critics, authors, *_ = table
    criticized = {author for _, author in draw_table(Topology(kind=kind), table)}  # type: ignore[arg-type]
    assert criticized == {author for author in authors if set(critics) - {author}}


@given(KIND, tables())
def test_the_same_table_and_dice_draw_the_same(
    kind: int, table: tuple[list[str], list[str], list[str], int, int]
) -> None:
    assert draw_table(Topology(kind=kind), table) == draw_table(Topology(kind=kind), table)  # type: ignore[arg-type]


@given(st.floats(0.01, 1), st.integers(0, 2**32))
def test_the_denser_a_sparse_topology_the_more_edges_and_all_of_them_at_one(
    sparsity: float, seed: int
) -> None:
    table = (list(NAMES), list(NAMES), list(NAMES), 2, seed)
    edges = draw_table(Topology(kind=TOPOLOGY_KIND_SPARSE, sparsity=sparsity), table)
    assert len(NAMES) <= len(edges) <= len(NAMES) * (len(NAMES) - 1)
    assert len(draw_table(Topology(kind=TOPOLOGY_KIND_SPARSE, sparsity=1), table)) == len(NAMES) * (
        len(NAMES) - 1
    )


def test_each_kind_has_its_edges() -> None:
    assert len(draw_for_everybody(TOPOLOGY_KIND_ALL_TO_ALL)) == 20
    assert len(draw_for_everybody(TOPOLOGY_KIND_ROUND_ROBIN)) == 5
    assert len(draw_for_everybody(TOPOLOGY_KIND_RING)) == 10
    assert draw_for_everybody(TOPOLOGY_KIND_RING, 2) == (("bo", "ada"), ("ada", "bo"))
    assert {critic for critic, author in draw_for_everybody(TOPOLOGY_KIND_RING) if author == "ada"} == {
        "bo",
        "eve",
    }
    star = draw_for_everybody(TOPOLOGY_KIND_STAR, hub_agent_id="cy")
    assert len(star) == 8
    assert all("cy" in edge for edge in star)


def test_a_round_robin_gives_every_author_another_critic_each_round() -> None:
    rounds = [
        {author: critic for critic, author in draw_for_everybody(TOPOLOGY_KIND_ROUND_ROBIN, number=n)}
        for n in range(2, 6)
    ]
    for author in NAMES[:5]:
        assert len({each[author] for each in rounds}) == 4


def test_a_round_robin_does_not_hang_on_the_hash_of_the_process() -> None:
    assert draw_for_everybody(TOPOLOGY_KIND_ROUND_ROBIN) == (
        ("cy", "ada"),
        ("eve", "bo"),
        ("ada", "cy"),
        ("eve", "dee"),
        ("ada", "eve"),
    )


def test_a_hub_that_cannot_criticize_is_replaced_by_the_first_that_can() -> None:
    agents = NAMES[:4]
    seats = RoundParticipants(agents, agents[:2], agents, 2, Random(7))
    edges = draw_edges(Topology(kind=TOPOLOGY_KIND_STAR, hub_agent_id="dee"), seats)
    assert set(edges) == {("bo", "ada"), ("ada", "bo"), ("ada", "cy"), ("ada", "dee")}


@pytest.mark.parametrize(
    ("topology", "words"),
    [
        (Topology(kind=TOPOLOGY_KIND_RING), "ring"),
        (Topology(kind=TOPOLOGY_KIND_STAR, hub_agent_id="bo"), "star around bo"),
        (Topology(kind=TOPOLOGY_KIND_SPARSE), "sparse 50 %"),
    ],
)
def test_a_topology_is_said_in_words(topology: Topology, words: str) -> None:
    assert describe_topology(topology) == words
