from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.convergence.grouping import Grouping, group
from parley.convergence.likeness import Placed
from parley.convergence.vectors import unit
from tests.support.hash_embedder import HashEmbedder

EMBEDDER = HashEmbedder()
STANDS = [
    "Use Kafka for orders.",
    "Do not use Kafka for orders.",
    "Kafka it is, for all orders.",
    "Use RabbitMQ for orders.",
    "Keep three replicas.",
    "Keep five replicas.",
    "Raise prices next year.",
    "Lower prices next year.",
]


def placed(agent_id: str, position: str) -> Placed:
    return Placed(agent_id, position, EMBEDDER.vector(position))


def at(agent_id: str, degrees: float) -> Placed:
    angle = np.radians(degrees)
    vector = unit(np.array([np.cos(angle), np.sin(angle)], dtype=np.float32))
    return Placed(agent_id, f"something {agent_id}{agent_id}", vector)


def members(grouping: Grouping) -> list[tuple[str, ...]]:
    return [each.agent_ids for each in grouping.groups]


@given(st.lists(st.sampled_from(STANDS), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_every_agent_is_in_one_group_and_contradicting_ones_are_never_together(positions: list[str]) -> None:
    grouping = group("Which way?", [placed(f"a{number}", each) for number, each in enumerate(positions)])
    assert sorted(agent for each in grouping.groups for agent in each.agent_ids) == sorted(
        f"a{number}" for number in range(len(positions))
    )
    for each in grouping.contradictions:
        assert not any({each.one, each.other} <= set(found.agent_ids) for found in grouping.groups)
    sizes = [len(each.agent_ids) for each in grouping.groups]
    assert sizes == sorted(sizes, reverse=True)


def test_the_order_of_the_stands_does_not_matter() -> None:
    stands = [placed(name, position) for name, position in zip("abcde", STANDS, strict=False)]
    first = group("Which way?", stands)
    assert all(group("Which way?", list(order)) == first for order in permutations(stands))


def test_like_vectors_are_together_and_the_middle_one_speaks_for_them() -> None:
    grouping = group("Which way?", [at("a", 0), at("b", 20), at("c", 40), at("d", 120)])
    assert members(grouping) == [("a", "b", "c"), ("d",)]
    assert grouping.groups[0].representative == "b"


def test_one_that_contradicts_a_member_stays_out_however_alike() -> None:
    same = unit(np.ones(4, np.float32))
    stands = [
        Placed("a", "Use Kafka for orders.", same),
        Placed("b", "Do not use Kafka for orders.", same),
        Placed("c", "Use Kafka for the orders.", same),
    ]
    grouping = group("What about it?", stands)
    assert members(grouping) == [("a", "c"), ("b",)]
    assert [(each.one, each.other) for each in grouping.contradictions] == [("a", "b"), ("b", "c")]
