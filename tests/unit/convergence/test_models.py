import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest

from parley.convergence import models
from parley.convergence.embedder import LocalEmbedder
from parley.convergence.embeddings import open_embeddings
from parley.convergence.held_model import IDLE_SECONDS
from parley.convergence.local_model import LateModel, LocalModel
from parley.convergence.models import MiniLm, StaticWords
from parley.convergence.vectors import MAX_WINDOWS, Vector, group_by_length, unit, windows
from parley.runtime.errors import ConfigurationError, ParleyError
from tests.support.hash_embedder import embed_one
from tests.support.manual_clock import ManualClock

LONG = " ".join(
    f"Sentence {number} speaks of the order pipeline and its many parts." for number in range(180)
)
TEXTS = [
    "No.",
    "Use Kafka.",
    "Use Kafka for the order pipeline, since orders have to be replayed.",
    LONG[:1500],
    LONG,
]
_EMBEDDED: dict[tuple[int, str], Vector] = {}


def embed(model: LocalModel, text: str) -> Vector:
    """Embed a text alone, once for all tests: a long one takes most of a second."""
    key = (id(model), text)
    if key not in _EMBEDDED:
        _EMBEDDED[key] = model.embed(text)
    return _EMBEDDED[key]


@pytest.fixture(params=["minilm", "minilm_of_floats", "static_words"])
def model(request: pytest.FixtureRequest) -> LocalModel:
    found: LocalModel = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["minilm", "minilm_of_floats"])
def either_minilm(request: pytest.FixtureRequest) -> MiniLm:
    found: MiniLm = request.getfixturevalue(request.param)
    return found


async def test_a_text_has_the_same_vector_whatever_it_is_embedded_with(model: LocalModel) -> None:
    alone = [embed(model, text) for text in TEXTS]
    for order in (TEXTS[::-1], TEXTS[:-1] * 2):
        async with open_embeddings(LocalEmbedder(model, threads=2), cache=0, workers=2) as shared:
            together = await asyncio.gather(*(embed_one(shared, text) for text in order))
        for text, vector in zip(order, together, strict=True):
            assert np.array_equal(vector, alone[TEXTS.index(text)])


def test_texts_of_about_as_many_tokens_are_read_together_each_with_the_vector_it_has_alone(
    either_minilm: MiniLm, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [
        "Use Kafka.",
        "Keep it.",
        "Use a queue.",
        "Use a queue for orders and for their replay.",
        LONG[:2_000],
        "Keep a list of orders that are to be replayed.",
    ]
    alone = [either_minilm.embed(text) for text in texts]
    runs: list[list[int]] = []
    run = either_minilm._run

    def count(cut: Sequence[list[int]]) -> list[Vector]:
        runs.append([len(each) for each in cut])
        return run(cut)

    monkeypatch.setattr(either_minilm, "_run", count)
    together = either_minilm.embed_all(texts)
    assert all(np.array_equal(one, other) for one, other in zip(together, alone, strict=True))
    assert len(runs) < len(texts)
    assert not any(min(lengths) < 100 < max(lengths) for lengths in runs), (
        "no short one is padded to a long one"
    )
    assert any(len(set(lengths)) > 1 for lengths in runs), "texts of several lengths are read together"


def test_a_text_has_the_same_vector_bit_for_bit_whatever_it_is_padded_to(either_minilm: MiniLm) -> None:
    longest = either_minilm._cut(LONG)[0]
    texts = [longest[:length] for length in (2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 40, 63, 90)]
    alone = [either_minilm._run([each])[0] for each in texts]
    for part in (texts, texts[:5], texts[::3], [*texts[3::-1], longest]):
        for text, vector in zip(part, either_minilm._run(part), strict=True):
            assert text is longest or np.array_equal(vector, alone[texts.index(text)])


async def test_a_stop_waits_for_the_present_part_of_a_batch_alone() -> None:
    parts: list[list[str]] = []

    class Stopping:
        name = "stopping"

        def embed(self, text: str) -> Vector:
            return self.embed_all([text])[0]

        def embed_all(self, texts: Sequence[str]) -> list[Vector]:
            parts.append(list(texts))
            if len(parts) == 2:
                embedder._closed.set()
            return [np.zeros(1, np.float32) for _ in texts]

    embedder = LocalEmbedder(Stopping())
    short, long = ["a", "b"], ["x" * 5_000, "y" * 5_000]
    with pytest.raises(ParleyError, match="stopping"):
        await embedder.embed([*short, *long])
    await embedder.close()
    assert parts == [short, long[:1]]


@pytest.mark.parametrize(
    ("lengths", "groups"),
    [
        ([], []),
        ([3, 5, 3, 3], [[0, 2, 3], [1]]),
        ([5, 5, 5], [[0], [1, 2]]),
        ([40, 40], [[0], [1]]),
        ([4, 3, 1, 1], [[0, 1], [2, 3]]),
        ([5, 4, 1], [[0, 1], [2]]),
        ([1, 3, 2], [[0, 1, 2]]),
    ],
)
def test_lengths_are_grouped_so_that_starts_and_padding_take_least(
    lengths: list[int], groups: list[list[int]]
) -> None:
    assert sorted(map(sorted, group_by_length(lengths, most=10, start=3))) == groups


def test_vectors_have_length_one(model: LocalModel) -> None:
    for text in TEXTS:
        assert float(np.linalg.norm(embed(model, text))) == pytest.approx(1.0, abs=1e-5)


def test_a_text_of_ten_thousand_characters_is_the_mean_of_its_windows(minilm: MiniLm) -> None:
    assert len(LONG) > 10_000
    tokens = minilm._tokenizer.encode(LONG, add_special_tokens=False).ids
    parts = [
        minilm._run([[minilm._first, *tokens[start:end], minilm._last]])[0]
        for start, end in windows(len(tokens), 126)
    ]
    assert len(parts) > 10
    assert embed(minilm, LONG) @ unit(np.mean(np.stack(parts), axis=0)) == pytest.approx(1.0, abs=1e-6)


def test_what_stands_at_the_end_of_a_long_text_counts(minilm: MiniLm) -> None:
    end = " The committee finally recommends planting oak trees along the river."
    about = minilm.embed("Planting trees by the river.")
    assert minilm.embed(LONG + end) @ about > embed(minilm, LONG) @ about


@pytest.mark.parametrize(("most", "overlap"), [(126, 0), (8_000, 800)])
@pytest.mark.parametrize("length", [0, 1, 126, 127, 252, 253, 5_000, 8_001, 15_201, 1_000_000])
def test_windows_cover_a_text_from_end_to_end(length: int, most: int, overlap: int) -> None:
    cut = windows(length, most, overlap)
    assert cut[0][0] == 0
    assert cut[-1][1] == length
    assert len({end - start for start, end in cut}) == 1
    assert cut[0][1] <= most
    assert len(cut) <= MAX_WINDOWS
    if len(cut) < MAX_WINDOWS:
        assert all(later[0] <= earlier[1] - overlap for earlier, later in pairwise(cut))


@pytest.mark.parametrize("length", [127, 130, 300, 870, 5_000])
def test_windows_without_an_overlap_repeat_no_more_than_one_size_for_all_takes(length: int) -> None:
    cut = windows(length, 126)
    assert sum(end - start for start, end in cut) < length + len(cut)


def test_like_meanings_are_nearer_than_unlike_ones(model: LocalModel) -> None:
    question, same, other = (
        model.embed(text)
        for text in (
            "How do we make the search page faster?",
            "Ways to speed up the search page.",
            "A recipe for a vegetarian lasagne.",
        )
    )
    assert question @ same > question @ other + 0.2


def test_a_file_that_is_not_the_one_expected_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "altered_model"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.onnx").write_bytes(b"something else")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(models, "MINILM_WEIGHTS", ("altered_model", "model.onnx", "0" * 64))
    with pytest.raises(ConfigurationError, match=r"model\.onnx: is not the file expected"):
        MiniLm()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "STATIC_WEIGHTS", ("no_such_package_here", "weights", "0" * 64))
    with pytest.raises(ConfigurationError, match="no_such_package_here"):
        StaticWords()


def test_two_that_use_one_model_share_it_and_the_last_one_releases_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads = 0

    class Model:
        name = "model"

        def __init__(self) -> None:
            nonlocal loads
            loads += 1

        def embed_all(self, texts: Sequence[str]) -> list[Vector]:
            return [np.zeros(1, np.float32) for _ in texts]

    monkeypatch.setattr(models, "MiniLm", Model)
    monkeypatch.setattr(models, "_loaded", WeakValueDictionary())
    clock = ManualClock()
    one, other = LateModel("minilm", clock), LateModel("minilm", clock)
    one.embed("a")
    clock.advance(IDLE_SECONDS + 1)
    other.embed("a")
    one.held.release_if_idle()
    one.embed("a")
    assert loads == 1, "the other one has it"
    clock.advance(IDLE_SECONDS + 1)
    one.held.release_if_idle()
    other.held.release_if_idle()
    one.embed("a")
    assert loads == 2
