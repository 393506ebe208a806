import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
import pytest

from parley.convergence.embeddings import Embeddings
from parley.convergence.encoder import CrossEncoder, EncoderFiles
from parley.convergence.encoder_threads import EncoderThreads
from parley.convergence.head import EncoderHead
from parley.convergence.support import Support, SupportModel, choose_passages, split_passages
from parley.convergence.vectors import Vector
from parley.runtime.errors import ConfigurationError
from tests.support.small_encoder import write_head

T = TypeVar("T")
WORDS = ("ice", "melts", "bread", "tuesday")


def embed(text: str) -> Vector:
    found = np.array([text.casefold().count(word) for word in WORDS], np.float32)
    return found / max(float(np.linalg.norm(found)), 1.0)


class WordVectors:
    async def embed(self, texts: list[str]) -> list[Vector]:
        await asyncio.sleep(0)
        return [embed(each) for each in texts]


class Reading:
    """An encoder that finds a claim supported by a passage that says it word for word."""

    def __init__(self) -> None:
        self.read_pairs: list[tuple[str, str]] = []

    def check_head(self, _head: EncoderHead, _target: str) -> None: ...

    async def run(self, work: Callable[[CrossEncoder], T]) -> T:
        await asyncio.sleep(0)
        return work(cast(CrossEncoder, self))

    def knows_language(self, text: str, _least: float) -> bool:
        return text.isascii()

    def read(self, first: str, second: str) -> Vector:
        self.read_pairs.append((first, second))
        return np.array([1.0 if second in first else -1.0], np.float32)


HEAD = EncoderHead("", 0.0, np.array([2.0], np.float32), 0.0, "support")


async def find(reading: Reading, claims: list[str], texts: list[str]) -> list[Support]:
    vectors = cast(Embeddings, WordVectors())
    model = SupportModel(vectors, vectors, cast(EncoderThreads, reading), HEAD)
    return await model.find(claims, texts)


async def test_a_claim_is_supported_by_the_texts_that_say_it() -> None:
    texts = [
        "The bread is old today.",
        "We wait for the sun. The ice melts on tuesday.",
        "The ice melts on tuesday.",
    ]
    said, bare = await find(Reading(), ["The ice melts on tuesday.", "The bread melts on tuesday."], texts)
    assert set(said.texts) == {1, 2}
    assert said.probability == pytest.approx(0.881, abs=0.001)
    assert bare.probability == pytest.approx(0.119, abs=0.001)
    assert not bare.texts


async def test_a_sentence_is_read_with_the_ones_next_to_it() -> None:
    reading = Reading()
    await find(
        reading,
        ["The ice melts."],
        ["The bread is old. The ice melts here. It was cold on tuesday. So it goes."],
    )
    assert ("The bread is old. The ice melts here.", "The ice melts.") in reading.read_pairs
    assert (
        "The bread is old. The ice melts here. It was cold on tuesday.",
        "The ice melts.",
    ) in reading.read_pairs


async def test_only_the_passages_that_are_most_like_a_claim_are_read() -> None:
    texts = [f"The bread number {number} is old. It was eaten here. It is gone." for number in range(30)]
    reading = Reading()
    (found,) = await find(
        reading, ["The ice melts."], [*texts, "The ice melts. We saw it melt. It was cold."]
    )
    assert found.texts == (30,)
    assert len(reading.read_pairs) == 8


async def test_it_is_unknown_what_supports_a_claim_in_a_language_that_the_encoder_does_not_know() -> None:
    assert await find(Reading(), ["用Kafka。"], ["The ice melts here."]) == [Support(None, ())]


async def test_texts_without_a_sentence_support_nothing_and_tell_nothing() -> None:
    assert await find(Reading(), ["The ice melts."], ["", "Ice."]) == [Support(None, ())]


def test_passages_of_equal_likeness_keep_their_order() -> None:
    passages = split_passages(["The bread is old.", "The bread is new."])
    vectors = {each.text: embed(each.text) for each in passages}
    chosen = choose_passages(embed("the bread"), passages, vectors, {2: 5})
    assert [each.place for each in chosen] == [0, 1]


def test_a_head_for_agreement_is_refused(tmp_path: Path, small_encoder: EncoderFiles) -> None:
    file = write_head(tmp_path, small_encoder)
    with pytest.raises(
        ConfigurationError, match="is a head for agreement; train one with `make support-head`"
    ):
        EncoderHead.read(file, "support")


def test_a_head_of_another_encoder_is_refused(small_encoder: EncoderFiles) -> None:
    vectors = cast(Embeddings, WordVectors())
    with pytest.raises(ConfigurationError, match="make support-head"):
        SupportModel(vectors, vectors, EncoderThreads(small_encoder), HEAD)
