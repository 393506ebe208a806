"""How well an encoder that the settings name tells the same answer from another one, on topics that its head has not read.

`make bench ARGS=agreement` prints all figures.
"""

from collections.abc import Sequence

import pytest

from parley.convergence.agreement import Relation, pair_relation, relation
from parley.convergence.encoder import CrossEncoder
from parley.convergence.head import EncoderHead
from tests.support.labelled_stands import LabelledPair, held_out_topics, pairs_of

EACH = 3
"""Every third topic is read, as all of them take half a minute; one pair more or less is 1 % of these."""


class Reader:
    def __init__(self, encoder: CrossEncoder, head: EncoderHead) -> None:
        self._encoder = encoder
        self._head = head

    def knows(self, pair: LabelledPair) -> bool:
        return all(
            self._encoder.knows_language(each, self._head.known_words) for each in (pair.one, pair.other)
        )

    def tell(self, one: str, other: str) -> float:
        return self._head.probability(self._encoder.read, one, other)


@pytest.fixture(scope="module")
def reader(real_encoder: CrossEncoder, real_head: EncoderHead) -> Reader:
    return Reader(real_encoder, real_head)


@pytest.fixture(scope="module")
def held_out(reader: Reader) -> Sequence[tuple[LabelledPair, float]]:
    topics = [each for each in held_out_topics() if each.language == "en"][::EACH]
    return [(pair, reader.tell(pair.one, pair.other)) for pair in pairs_of(topics)]


@pytest.mark.timeout(180)
def test_hardly_any_opposed_pair_is_joined(held_out: Sequence[tuple[LabelledPair, float]]) -> None:
    opposed = [told for pair, told in held_out if not pair.same]
    assert sum(relation(told) is Relation.SAME for told in opposed) / len(opposed) <= 0.03


def test_the_same_answer_is_more_probable_in_pairs_that_are_the_same(
    held_out: Sequence[tuple[LabelledPair, float]],
) -> None:
    same, opposed = ([told for pair, told in held_out if pair.same is kind] for kind in (True, False))
    wins = sum((a > b) + (a == b) / 2 for a in same for b in opposed) / (len(same) * len(opposed))
    assert wins >= 0.86, "the area under the curve"


def test_few_pairs_of_the_same_answer_are_told_apart(held_out: Sequence[tuple[LabelledPair, float]]) -> None:
    same = [told for pair, told in held_out if pair.same]
    assert sum(relation(told) is Relation.APART for told in same) / len(same) <= 0.12


def test_hardly_any_pair_in_another_language_is_known(reader: Reader) -> None:
    pairs = pairs_of(held_out_topics())
    foreign = [pair for pair in pairs if pair.language != "en"]
    assert sum(reader.knows(pair) for pair in foreign) / len(foreign) <= 0.02
    english = [pair for pair in pairs if pair.language == "en"]
    assert sum(reader.knows(pair) for pair in english) / len(english) >= 0.99


def test_nearly_the_same_words_can_be_opposed(reader: Reader) -> None:
    one, other = (
        "PostgreSQL with 3 replicas should hold the orders.",
        "Cassandra with 3 replicas should hold the orders.",
    )
    assert relation(reader.tell(one, other)) is not Relation.SAME


@pytest.mark.parametrize("metal", ["iron", "gold"])
def test_an_answer_of_one_word_is_not_joined_with_another_word(reader: Reader, metal: str) -> None:
    """The model alone joins these."""
    pair = "The metal is copper.", f"The metal is {metal}."
    assert pair_relation(pair, reader.tell(*pair)) is not Relation.SAME
