import asyncio
import time

import pytest

from parley.convergence.agreement import Agreements, Pair, Relation, pair_relation, relation


class Counting:
    def __init__(self, told: float | None = 0.6) -> None:
        self.asked: list[Pair] = []
        self._told = told

    async def estimate_probability(self, one: str, other: str) -> float | None:
        self.asked.append((one, other))
        return self._told

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


@pytest.mark.parametrize(
    ("pair", "found"),
    [
        (("The metal is iron.", "The metal is copper."), Relation.UNSURE),
        (("Keep the monolith.", "keep the microservices"), Relation.UNSURE),
        (("The metal is iron.", "It is iron, the metal."), Relation.SAME),
        (("Keep the monolith.", "Keep the monolith for now."), Relation.SAME),
        (("Keep the monolith.", "**keep** the monolith"), Relation.SAME),
    ],
)
def test_two_of_which_one_word_stands_in_the_place_of_another_are_never_believed_to_be_the_same_answer(
    pair: Pair, found: Relation
) -> None:
    assert pair_relation(pair, 0.9) is found
    assert pair_relation(pair, 0.1) is Relation.APART


@pytest.mark.parametrize(
    ("one", "other"),
    [(".5", "5"), ("2*3", "23"), ("10**2", "102"), ("!ready", "ready"), ("It draws 5 mW.", "It draws 5 MW.")],
)
async def test_signs_that_change_a_number_or_a_value_make_other_words(one: str, other: str) -> None:
    assert await Agreements(None, cache=8).estimate_probabilities([(one, other)]) == [None]


async def test_a_long_run_of_marks_in_a_word_takes_no_time() -> None:
    before = time.process_time()
    assert await Agreements(None, cache=8).estimate_probabilities([(f"a{'*' * 20_000}b", "ab")]) == [None]
    assert time.process_time() - before < 2


async def test_the_same_words_are_the_same_answer_and_no_model_is_asked() -> None:
    model = Counting(0.0)
    assert await Agreements(model, cache=8).estimate_probabilities(
        [("**use** Kafka", "Use  Kafka."), ("用Kafka。", "用Kafka。"), ("`2*3` kW", "2*3 kW!")]
    ) == [1, 1, 1]
    assert not model.asked


async def test_without_a_position_it_cannot_be_told_and_no_model_is_asked() -> None:
    model = Counting(1.0)
    assert await Agreements(model, cache=8).estimate_probabilities([("", "Use Kafka."), ("", "")]) == [
        None,
        None,
    ]
    assert not model.asked


async def test_a_pair_is_read_once_in_either_order() -> None:
    model = Counting()
    agreements = Agreements(model, cache=8)
    assert await agreements.estimate_probabilities([("a b", "c d"), ("c d", "a b"), ("a  b", "c d ")]) == [
        0.6,
        0.6,
        0.6,
    ]
    assert await agreements.estimate_probabilities([("c d", "a b")]) == [0.6]
    assert len(model.asked) == 1


async def test_what_cannot_be_told_is_remembered_too() -> None:
    model = Counting(None)
    agreements = Agreements(model, cache=8)
    assert (
        await agreements.estimate_probabilities([("a", "b")])
        == await agreements.estimate_probabilities([("a", "b")])
        == [None]
    )
    assert len(model.asked) == 1


async def test_no_more_pairs_are_kept_than_the_cache_has_room_for() -> None:
    model = Counting()
    agreements = Agreements(model, cache=2)
    await agreements.estimate_probabilities([("a", "b"), ("a", "c")])
    await agreements.estimate_probabilities([("a", "b")])
    await agreements.estimate_probabilities([("a", "d")])
    await agreements.estimate_probabilities([("a", "b")])
    assert len(model.asked) == 3
    await agreements.estimate_probabilities([("a", "c")])
    assert len(model.asked) == 4


async def test_a_request_larger_than_the_cache_is_answered_whole() -> None:
    pairs = [("a", str(number)) for number in range(9)]
    assert await Agreements(Counting(), cache=0).estimate_probabilities(pairs) == [0.6] * 9


class Slow(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Semaphore(0)
        self.may_end = asyncio.Event()
        self.stopped: list[Pair] = []

    async def estimate_probability(self, one: str, other: str) -> float | None:
        self.begun.release()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.stopped.append((one, other))
            raise
        return await super().estimate_probability(one, other)


async def has_begun(model: Slow, pairs: int) -> None:
    async with asyncio.timeout(10):
        for _ in range(pairs):
            await model.begun.acquire()


async def test_a_pair_that_is_being_read_is_not_read_again() -> None:
    model = Slow()
    agreements = Agreements(model, cache=0)
    one = asyncio.create_task(agreements.estimate_probabilities([("a", "b"), ("a", "c")]))
    await has_begun(model, 2)
    other = asyncio.create_task(agreements.estimate_probabilities([("c", "a"), ("a", "d")]))
    await has_begun(model, 1)
    model.may_end.set()
    assert await one == await other == [0.6, 0.6]
    assert sorted(model.asked) == [("a", "b"), ("a", "c"), ("a", "d")]


async def test_who_hangs_up_stops_only_what_nobody_else_waits_for() -> None:
    model = Slow()
    agreements = Agreements(model, cache=8)
    one = asyncio.create_task(agreements.estimate_probabilities([("a", "b"), ("a", "c")]))
    other = asyncio.create_task(agreements.estimate_probabilities([("a", "b")]))
    await has_begun(model, 2)
    one.cancel()
    await asyncio.wait([one])
    model.may_end.set()
    assert await other == [0.6]
    assert model.stopped == [("a", "c")]
    assert await agreements.estimate_probabilities([("a", "c")]) == [0.6]
