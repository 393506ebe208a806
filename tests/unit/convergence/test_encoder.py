import asyncio
import re
from dataclasses import replace
from pathlib import Path
from threading import Event, Semaphore

import numpy as np
import onnx
import pytest

from parley.convergence import agreement, encoder, encoder_graph
from parley.convergence import head as head_module
from parley.convergence.agreement import Agreements, NliAgreement
from parley.convergence.encoder import CrossEncoder, EncoderFiles, default_encoder
from parley.convergence.encoder_graph import load_pooled_graph
from parley.convergence.head import DEFAULT_HEAD, AgreementHead, default_head
from parley.convergence.vectors import Vector
from parley.runtime.errors import ConfigurationError, ParleyError

ONE, OTHER = "Keep the monolith.", "Split the monolith into services, one for each team that works on it."


def test_the_order_of_two_texts_does_not_matter(cross_encoder: CrossEncoder) -> None:
    head = default_head()
    assert head.probability(cross_encoder.read, ONE, OTHER) == head.probability(
        cross_encoder.read, OTHER, ONE
    )


@pytest.mark.parametrize(
    ("there", "back", "probability", "reads"),
    [(2.0, 9.0, 0.881, 1), (-2.0, 9.0, 0.119, 1), (1.0, -2.0, 0.378, 2), (-1.0, 3.0, 0.731, 2)],
)
def test_a_pair_that_one_order_leaves_open_is_read_in_the_other_one_too(
    there: float, back: float, probability: float, reads: int
) -> None:
    read: list[tuple[str, str]] = []

    def reading(first: str, second: str) -> Vector:
        read.append((first, second))
        return np.array([there if first < second else back], np.float32)

    head = AgreementHead("", 0.0, np.array([1.0], np.float32), 0.0)
    assert head.probability(reading, "b", "a") == pytest.approx(probability, abs=0.001)
    assert read == [("a", "b"), ("b", "a")][:reads]


def test_the_vector_has_a_weight_for_each_number(cross_encoder: CrossEncoder) -> None:
    assert cross_encoder.read(ONE, OTHER).shape == AgreementHead.read(DEFAULT_HEAD).weights.shape


def test_long_texts_are_read_as_far_as_the_model_reads(cross_encoder: CrossEncoder) -> None:
    long = OTHER * 200
    assert np.isfinite(cross_encoder.read(long, ONE)).all()


@pytest.mark.parametrize("text", ["", "42 %", "用Kafka。", "日曜日に店を開けるべきだ。"])
def test_a_text_without_words_that_the_model_knows_is_in_no_language(
    cross_encoder: CrossEncoder, text: str
) -> None:
    assert cross_encoder.share_of_known_words(text) == 0


@pytest.mark.parametrize("text", ["Use PostgreSQL.", "Split it: one service, one team, 3 replicas!"])
def test_numbers_marks_and_product_names_do_not_make_a_text_foreign(
    cross_encoder: CrossEncoder, text: str
) -> None:
    assert cross_encoder.share_of_known_words(text) == 1


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
def test_words_of_the_trade_do_not_make_a_foreign_text_known(cross_encoder: CrossEncoder, text: str) -> None:
    assert not cross_encoder.knows_language(text, AgreementHead.read(DEFAULT_HEAD).known_words)


def test_rare_words_do_not_make_an_english_text_foreign(cross_encoder: CrossEncoder) -> None:
    text, least = "Zoos should continue to keep elephants.", AgreementHead.read(DEFAULT_HEAD).known_words
    assert cross_encoder.share_of_known_words(text) < least
    assert cross_encoder.knows_language(text, least)


def test_another_file_than_the_one_expected_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(b"something else")
    files = default_encoder()
    with pytest.raises(ConfigurationError, match="is not the agreement model expected"):
        CrossEncoder(EncoderFiles(other, files.sha256, files.tokenizer))
    with pytest.raises(ConfigurationError, match=r"model\.onnx: is not the agreement model expected"):
        CrossEncoder(replace(files, tokenizer=other))


def test_another_head_than_the_one_expected_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_head().bias == AgreementHead.read(DEFAULT_HEAD).bias
    other = tmp_path / "head.json"
    other.write_text(DEFAULT_HEAD.read_text("utf-8").replace('"bias"', '"more": 1, "bias"'), "utf-8")
    monkeypatch.setattr(head_module, "DEFAULT_HEAD", other)
    with pytest.raises(ConfigurationError, match=r"head\.json: is not the file expected"):
        default_head()


def test_a_missing_file_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    missing = tmp_path / "none.onnx"
    files = EncoderFiles(missing, default_encoder().sha256, default_encoder().tokenizer)
    with pytest.raises(ConfigurationError, match=re.escape(str(missing))):
        NliAgreement(files, AgreementHead.read(DEFAULT_HEAD))


def test_a_head_of_another_encoder_is_refused() -> None:
    files = default_encoder()
    with pytest.raises(ConfigurationError, match="trained for another encoder"):
        NliAgreement(EncoderFiles(files.model, "0" * 64, files.tokenizer), AgreementHead.read(DEFAULT_HEAD))


def test_what_is_no_head_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "head.json"
    file.write_text('{"weights": []}')
    with pytest.raises(ConfigurationError, match="is not the head"):
        AgreementHead.read(file)


def test_a_head_of_another_release_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "head.json"
    file.write_text(DEFAULT_HEAD.read_text("utf-8").replace('"version": 2', '"version": 1'), "utf-8")
    with pytest.raises(ConfigurationError, match="trained for another release; train one"):
        AgreementHead.read(file)


def test_a_head_is_read_as_it_was_written(tmp_path: Path) -> None:
    head = AgreementHead.read(DEFAULT_HEAD)
    head.write(tmp_path / "head.json")
    again = AgreementHead.read(tmp_path / "head.json")
    assert (again.bias, again.known_words, again.encoder_sha256) == (
        head.bias,
        head.known_words,
        head.encoder_sha256,
    )
    assert np.array_equal(again.weights, head.weights)


async def test_a_file_that_changed_since_the_start_is_said_in_the_answer(tmp_path: Path) -> None:
    changed = tmp_path / "model.onnx"
    changed.write_bytes(b"something else")
    installed = default_encoder()
    model = NliAgreement(
        EncoderFiles(changed, installed.sha256, installed.tokenizer), AgreementHead.read(DEFAULT_HEAD)
    )
    with pytest.raises(ParleyError) as raised:
        await model.probability(ONE, OTHER)
    assert raised.value.reason == "AGREEMENT_MODEL_UNAVAILABLE"
    await model.close()


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, cross_encoder: CrossEncoder) -> None:
    """Agreement models use the encoder that is loaded, on all their threads."""
    monkeypatch.setattr(agreement, "CrossEncoder", lambda _: cross_encoder)


@pytest.mark.usefixtures("loaded")
async def test_what_is_not_in_a_language_it_knows_cannot_be_told() -> None:
    model = NliAgreement(default_encoder(), AgreementHead.read(DEFAULT_HEAD))
    german = "Läden sollen sonntags öffnen dürfen.", "Läden sollen sonntags geschlossen bleiben."
    told = await asyncio.gather(model.probability(ONE, OTHER), model.probability(*german))
    await model.close()
    assert told[0] is not None
    assert told[1] is None


@pytest.mark.usefixtures("loaded")
async def test_what_is_read_on_two_threads_is_what_one_reads(cross_encoder: CrossEncoder) -> None:
    head = AgreementHead.read(DEFAULT_HEAD)
    model = NliAgreement(default_encoder(), head, threads=2)
    pairs = [(ONE, OTHER), (ONE, "Shops may open on Sundays."), ("Shops may open.", OTHER)]
    told = await asyncio.gather(*(model.probability(*pair) for pair in pairs))
    await model.close()
    assert told == [head.probability(cross_encoder.read, *pair) for pair in pairs]


def test_only_the_distances_that_occur_are_computed_and_nothing_else_changes(
    monkeypatch: pytest.MonkeyPatch, cross_encoder: CrossEncoder, pooled_graph: bytes
) -> None:
    nodes = onnx.load_from_string(pooled_graph).graph.node
    assert sum(node.op_type == "ReduceMin" for node in nodes) == 2  # both the same in all layers
    monkeypatch.setattr(encoder_graph, "_drop_unread_positions", lambda _: None)
    whole = CrossEncoder(default_encoder())
    for text in ("Yes.", OTHER, OTHER * 40):
        assert np.array_equal(cross_encoder.read(ONE, text), whole.read(ONE, text))


def test_what_layers_compute_alike_is_computed_once_and_nothing_else_changes(
    monkeypatch: pytest.MonkeyPatch, cross_encoder: CrossEncoder, pooled_graph: bytes
) -> None:
    merged = len(onnx.load_from_string(pooled_graph).graph.node)
    monkeypatch.setattr(encoder_graph, "merge_equal_nodes", lambda _: None)
    whole_graph = load_pooled_graph(default_encoder().model)
    assert merged < 0.3 * len(onnx.load_from_string(whole_graph).graph.node)
    monkeypatch.setattr(encoder, "load_pooled_graph", lambda _: whole_graph)
    whole = CrossEncoder(default_encoder())
    for text in ("Yes.", OTHER, OTHER * 10, OTHER * 40):
        assert np.array_equal(cross_encoder.read(ONE, text), whole.read(ONE, text))


def test_the_encoder_reads_the_same_where_products_are_cut_off(
    monkeypatch: pytest.MonkeyPatch, cross_encoder: CrossEncoder
) -> None:
    monkeypatch.setattr(encoder_graph, "clips_products", lambda: True)
    other = CrossEncoder(default_encoder())
    for text in ("Yes.", OTHER, OTHER * 10):
        assert np.array_equal(cross_encoder.read(ONE, text), other.read(ONE, text))


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
        return 100 * AgreementHead.read(DEFAULT_HEAD).weights

    async def has_begun(self, readings: int) -> None:
        for _ in range(readings):
            assert await asyncio.to_thread(self._beginning.acquire, timeout=10)


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    encoder = Waiting()
    monkeypatch.setattr(agreement, "CrossEncoder", lambda _: encoder)
    return encoder


THIRD = "Throw it away."


async def test_pairs_are_read_at_the_same_time_on_as_many_threads(waiting: Waiting) -> None:
    model = NliAgreement(default_encoder(), AgreementHead.read(DEFAULT_HEAD), threads=2)
    told = [asyncio.create_task(model.probability(ONE, other)) for other in (OTHER, THIRD)]
    await waiting.has_begun(2)
    waiting.may_end.set()
    assert all([await each is not None for each in told])
    await model.close()
    assert sorted(waiting.begun) == sorted([(ONE, OTHER), (ONE, THIRD)])


async def test_what_nobody_waits_for_any_more_is_not_read(waiting: Waiting) -> None:
    model = NliAgreement(default_encoder(), AgreementHead.read(DEFAULT_HEAD), threads=1)
    told = [asyncio.create_task(model.probability(ONE, OTHER))]
    await waiting.has_begun(1)
    told.append(asyncio.create_task(model.probability(ONE, THIRD)))
    await asyncio.sleep(0)
    for each in told:
        each.cancel()
    await asyncio.wait(told)
    waiting.may_end.set()
    await model.close()
    assert waiting.begun == [(ONE, OTHER)]


async def test_what_waits_when_the_service_stops_is_refused(waiting: Waiting) -> None:
    model = NliAgreement(default_encoder(), AgreementHead.read(DEFAULT_HEAD), threads=1)
    told = asyncio.create_task(model.probability(ONE, OTHER))
    await waiting.has_begun(1)
    behind = asyncio.create_task(model.probability(ONE, THIRD))
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
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[EncoderFiles] = []
    may_end = Event()

    def load(files: EncoderFiles) -> CrossEncoder:
        tries.append(files)
        assert len(tries) == 1 or may_end.wait(10)
        raise ConfigurationError("another file")

    monkeypatch.setattr(agreement, "CrossEncoder", load)
    model = NliAgreement(default_encoder(), AgreementHead.read(DEFAULT_HEAD), threads=1)
    with pytest.raises(ParleyError, match="another file"):
        await Agreements(model, cache=0).probabilities([(ONE, str(number)) for number in range(5)])
    for _ in range(10):  # the loop passes the cancelling on to the threads
        await asyncio.sleep(0)
    may_end.set()
    with pytest.raises(ParleyError, match="another file"):
        await model.probability(ONE, OTHER)  # its turn comes after all of them
    await model.close()
    assert len(tries) <= 3  # the second had begun
