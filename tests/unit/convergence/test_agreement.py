from collections.abc import Sequence

import pytest

from parley.convergence.agreement import Agreements, Pair, Relation, relation


class Counting:
    def __init__(self, told: float | None = 0.6) -> None:
        self.asked: list[Pair] = []
        self._told = told

    async def probabilities(self, pairs: Sequence[Pair]) -> list[float | None]:
        self.asked += pairs
        return [self._told] * len(pairs)

    async def close(self) -> None:
        """Holds nothing."""


@pytest.mark.parametrize(
    ("probability", "found"),
    [
        (0.7, Relation.SAME),
        (1.0, Relation.SAME),
        (0.3, Relation.APART),
        (0.0, Relation.APART),
        (0.31, Relation.UNSURE),
        (0.69, Relation.UNSURE),
        (None, Relation.UNSURE),
    ],
)
def test_a_pair_is_the_same_answer_from_07_on_and_apart_up_to_03(
    probability: float | None, found: Relation
) -> None:
    assert relation(probability) is found


async def test_the_same_words_are_the_same_answer_and_no_model_is_asked() -> None:
    model = Counting(0.0)
    assert await Agreements(model, cache=8).of(
        [("**use** Kafka", "Use  Kafka."), ("用Kafka。", "用Kafka。")]
    ) == [1, 1]
    assert not model.asked


async def test_without_a_position_it_cannot_be_told_and_no_model_is_asked() -> None:
    model = Counting(1.0)
    assert await Agreements(model, cache=8).of([("", "Use Kafka."), ("", "")]) == [None, None]
    assert not model.asked


async def test_a_pair_is_read_once_in_either_order() -> None:
    model = Counting()
    agreements = Agreements(model, cache=8)
    assert await agreements.of([("a b", "c d"), ("c d", "a b"), ("a  b", "c d ")]) == [0.6, 0.6, 0.6]
    assert await agreements.of([("c d", "a b")]) == [0.6]
    assert len(model.asked) == 1


async def test_what_cannot_be_told_is_remembered_too() -> None:
    model = Counting(None)
    agreements = Agreements(model, cache=8)
    assert await agreements.of([("a", "b")]) == await agreements.of([("a", "b")]) == [None]
    assert len(model.asked) == 1


async def test_no_more_pairs_are_kept_than_the_cache_has_room_for() -> None:
    model = Counting()
    agreements = Agreements(model, cache=2)
    await agreements.of([("a", "b"), ("a", "c")])
    await agreements.of([("a", "b")])
    await agreements.of([("a", "d")])
    await agreements.of([("a", "b")])
    assert len(model.asked) == 3
    await agreements.of([("a", "c")])
    assert len(model.asked) == 4


async def test_a_request_larger_than_the_cache_is_answered_whole() -> None:
    pairs = [("a", str(number)) for number in range(9)]
    assert await Agreements(Counting(), cache=0).of(pairs) == [0.6] * 9
