import asyncio
import re
from pathlib import Path
from threading import Event, Semaphore

import numpy as np
import pytest
from msgspec.structs import replace

from parley.convergence.agreement import Agreements, NliAgreement
from parley.convergence.encoder import CrossEncoder, EncoderFiles
from parley.convergence.encoder_threads import EncoderThreads
from parley.convergence.head import EncoderHead
from parley.convergence.vectors import Vector
from parley.runtime.errors import ConfigurationError, ParleyError
from tests.support.small_encoder import HEAD_NUMBERS


class ModelOnThreads(NliAgreement):
    """An agreement model with threads of its own."""

    def __init__(self, files: EncoderFiles, head: EncoderHead, threads: int = 2) -> None:
        self._own = EncoderThreads(files, threads)
        super().__init__(self._own, head)

    async def close(self) -> None:
        await self._own.close()


ONE, OTHER = "keep the monolith", "split the monolith into services"


def test_the_order_of_two_texts_does_not_matter(small_encoder: EncoderFiles, small_head: EncoderHead) -> None:
    encoder = CrossEncoder(small_encoder)
    assert small_head.probability(encoder.read, ONE, OTHER) == small_head.probability(
        encoder.read, OTHER, ONE
    )


@pytest.mark.parametrize(
    ("there", "back", "probability", "reads"),
    [(2.0, 9.0, 0.881, 1), (-2.0, 9.0, 0.119, 1), (1.0, -2.0, 0.378, 2), (-1.0, 3.0, 0.731, 2)],
)
def test_a_pair_that_one_order_leaves_open_is_read_in_the_other_one_too(
    there: float, back: float, probability: float, reads: int
) -> None:
    read: list[tuple[str, str]] = []

    def read_pair(first: str, second: str) -> Vector:
        read.append((first, second))
        return np.array([there if first < second else back], np.float32)

    head = EncoderHead("", 0.0, np.array([1.0], np.float32), 0.0)
    assert head.probability(read_pair, "b", "a") == pytest.approx(probability, abs=0.001)
    assert read == [("a", "b"), ("b", "a")][:reads]


@pytest.mark.parametrize("text", ["", "42 %", "用Kafka。", "日曜日に店を開けるべきだ。"])
def test_a_text_without_words_that_the_model_knows_is_in_no_language(
    real_encoder: CrossEncoder, text: str
) -> None:
    assert real_encoder.share_of_known_words(text) == 0


@pytest.mark.parametrize("text", ["Use PostgreSQL.", "Split it: one service, one team, 3 replicas!"])
def test_numbers_marks_and_product_names_do_not_make_a_text_foreign(
    real_encoder: CrossEncoder, text: str
) -> None:
    assert real_encoder.share_of_known_words(text) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Läden sollen sonntags geschlossen bleiben.",
        "Utiliser PostgreSQL pour les commandes.",
        "El servicio debe guardar la sesión en Redis.",
        "Gebruik geen microservices.",
        "Implementar una solución global en la nube.",
        "يجب منع السيارات من وسط المدينة.",
        "Backend by měl zůstat monolit, without exceptions.",
    ],
)
def test_words_of_the_trade_do_not_make_a_foreign_text_known(
    real_encoder: CrossEncoder, real_head: EncoderHead, text: str
) -> None:
    assert not real_encoder.knows_language(text, real_head.known_words)


@pytest.mark.parametrize(
    ("text", "share", "known"),
    [
        ("split-it and throw the rest away, says zoo", 3 / 9, False),
        ("keep the monolith, it/services", 1, True),
        ("keep it; split the zoo.", 0.8, True),
        ("keep the monolith: x, y", 1, True),
        ("split zoo services", 2 / 3, False),
        ("62", 0, False),
        ("日曜日に店", 0, False),
    ],
)
def test_the_words_of_a_text_tell_whether_it_is_in_the_language_of_the_encoder(
    small_encoder: EncoderFiles, text: str, share: float, known: bool
) -> None:
    encoder = CrossEncoder(small_encoder)
    assert encoder.share_of_known_words(text) == pytest.approx(share)
    assert encoder.knows_language(text, 0.85) is known


def test_another_file_than_the_one_expected_is_refused(tmp_path: Path, small_encoder: EncoderFiles) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(b"something else")
    with pytest.raises(ConfigurationError, match="is not the agreement model expected"):
        CrossEncoder(replace(small_encoder, model=other))


def test_a_missing_file_is_refused_before_anything_is_loaded(
    tmp_path: Path, small_encoder: EncoderFiles, small_head: EncoderHead
) -> None:
    missing = tmp_path / "none.onnx"
    with pytest.raises(ConfigurationError, match=re.escape(str(missing))):
        ModelOnThreads(replace(small_encoder, model=missing), small_head)


def test_a_head_of_another_encoder_is_refused(small_encoder: EncoderFiles, small_head: EncoderHead) -> None:
    with pytest.raises(ConfigurationError, match="trained for another encoder"):
        ModelOnThreads(replace(small_encoder, sha256="0" * 64), small_head)


def test_what_is_no_head_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "head.json"
    file.write_text('{"weights": []}')
    with pytest.raises(ConfigurationError, match="is not the head"):
        EncoderHead.read(file)


def test_a_head_of_another_release_is_refused(tmp_path: Path, small_head: EncoderHead) -> None:
    file = tmp_path / "head.json"
    small_head.write(file)
    file.write_text(file.read_text("utf-8").replace('"version": 2', '"version": 1'), "utf-8")
    with pytest.raises(ConfigurationError, match="trained for another release; train one"):
        EncoderHead.read(file)


def test_a_head_is_read_as_it_was_written(tmp_path: Path, small_head: EncoderHead) -> None:
    head = small_head
    head.write(tmp_path / "head.json")
    again = EncoderHead.read(tmp_path / "head.json")
    assert (again.bias, again.known_words, again.encoder_sha256) == (
        head.bias,
        head.known_words,
        head.encoder_sha256,
    )
    assert np.array_equal(again.weights, head.weights)


async def test_a_file_that_changed_since_the_start_is_said_in_the_answer(
    tmp_path: Path, small_encoder: EncoderFiles, small_head: EncoderHead
) -> None:
    changed = tmp_path / "model.onnx"
    changed.write_bytes(b"something else")
    model = ModelOnThreads(replace(small_encoder, model=changed), small_head)
    with pytest.raises(ParleyError) as raised:
        await model.estimate_probability(ONE, OTHER)
    assert raised.value.reason == "AGREEMENT_MODEL_UNAVAILABLE"
    await model.close()


async def test_what_is_not_in_a_language_it_knows_cannot_be_told(
    small_encoder: EncoderFiles, small_head: EncoderHead
) -> None:
    model = ModelOnThreads(small_encoder, small_head)
    german = "Läden sollen sonntags öffnen dürfen.", "Läden sollen sonntags geschlossen bleiben."
    told = await asyncio.gather(model.estimate_probability(ONE, OTHER), model.estimate_probability(*german))
    await model.close()
    assert told[0] is not None
    assert told[1] is None


async def test_what_is_read_on_two_threads_is_what_one_reads(
    small_encoder: EncoderFiles, small_head: EncoderHead
) -> None:
    model, encoder = ModelOnThreads(small_encoder, small_head, threads=2), CrossEncoder(small_encoder)
    pairs = [(ONE, OTHER), (ONE, "split the services"), ("split it", OTHER)]
    told = await asyncio.gather(*(model.estimate_probability(*pair) for pair in pairs))
    await model.close()
    assert told == [small_head.probability(encoder.read, *pair) for pair in pairs]


def test_the_vector_is_what_goes_into_the_last_layer_whatever_the_length(
    small_encoder: EncoderFiles,
) -> None:
    encoder = CrossEncoder(small_encoder)
    for other in ("it", OTHER, OTHER * 30):
        assert encoder.read(ONE, other).shape == (HEAD_NUMBERS,)
    assert not np.array_equal(encoder.read(ONE, OTHER), encoder.read(OTHER, ONE))


class Waiting:
    """An encoder whose reading takes as long as is wanted, and leaves nothing open."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, str]] = []
        self.may_end = Event()
        self._beginning = Semaphore(0)

    def knows_language(self, _text: str, _least: float) -> bool:
        return True

    def read(self, first: str, second: str) -> Vector:
        self.begun.append((first, second))
        self._beginning.release()
        assert self.may_end.wait(10)
        return np.full(HEAD_NUMBERS, 100, np.float32)

    async def has_begun(self, readings: int) -> None:
        for _ in range(readings):
            assert await asyncio.to_thread(self._beginning.acquire, timeout=10)


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    encoder = Waiting()
    monkeypatch.setattr("parley.convergence.encoder.CrossEncoder", lambda _: encoder)
    return encoder


THIRD = "throw it away"


async def test_pairs_are_read_at_the_same_time_on_as_many_threads(
    waiting: Waiting, small_encoder: EncoderFiles, small_head: EncoderHead
) -> None:
    model = ModelOnThreads(small_encoder, small_head, threads=2)
    told = [asyncio.create_task(model.estimate_probability(ONE, other)) for other in (OTHER, THIRD)]
    await waiting.has_begun(2)
    waiting.may_end.set()
    assert all([await each is not None for each in told])
    await model.close()
    assert sorted(waiting.begun) == sorted([(ONE, OTHER), (ONE, THIRD)])


async def test_what_nobody_waits_for_any_more_is_not_read(
    waiting: Waiting, small_encoder: EncoderFiles, small_head: EncoderHead
) -> None:
    model = ModelOnThreads(small_encoder, small_head, threads=1)
    told = [asyncio.create_task(model.estimate_probability(ONE, OTHER))]
    await waiting.has_begun(1)
    told.append(asyncio.create_task(model.estimate_probability(ONE, THIRD)))
    await asyncio.sleep(0)
    for each in told:
        each.cancel()
    await asyncio.wait(told)
    waiting.may_end.set()
    await model.close()
    assert waiting.begun == [(ONE, OTHER)]


async def test_what_waits_when_the_service_stops_is_refused(
    waiting: Waiting, small_encoder: EncoderFiles, small_head: EncoderHead
) -> None:
    model = ModelOnThreads(small_encoder, small_head, threads=1)
    told = asyncio.create_task(model.estimate_probability(ONE, OTHER))
    await waiting.has_begun(1)
    behind = asyncio.create_task(model.estimate_probability(ONE, THIRD))
    await asyncio.sleep(0)
    closing = asyncio.create_task(model.close())
    await asyncio.sleep(0)
    waiting.may_end.set()
    assert await told is not None
    with pytest.raises(ParleyError) as raised:
        await behind
    assert raised.value.reason == "AGREEMENT_MODEL_UNAVAILABLE"
    await closing


async def test_a_model_that_cannot_be_loaded_is_not_tried_for_every_pair(
    monkeypatch: pytest.MonkeyPatch, small_encoder: EncoderFiles, small_head: EncoderHead
) -> None:
    tries: list[EncoderFiles] = []
    may_end = Event()

    def load(files: EncoderFiles) -> CrossEncoder:
        tries.append(files)
        assert len(tries) == 1 or may_end.wait(10)
        raise ConfigurationError("another file")

    monkeypatch.setattr("parley.convergence.encoder.CrossEncoder", load)
    model = ModelOnThreads(small_encoder, small_head, threads=1)
    with pytest.raises(ParleyError, match="another file"):
        await Agreements(model, cache=0).estimate_probabilities([(ONE, str(number)) for number in range(5)])
    for _ in range(10):  # the loop passes the cancelling on to the threads
        await asyncio.sleep(0)
    may_end.set()
    with pytest.raises(ParleyError, match="another file"):
        await model.estimate_probability(ONE, OTHER)  # its turn comes after all of them
    await model.close()
    assert len(tries) <= 3  # the second had begun
