"""The index of memory: it is made again from the documents whenever it is lost, damaged or of another model."""

import asyncio
import base64
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import grpc
import numpy as np
import pytest
from qdrant_edge import EdgeShard

from parley.memory.__main__ import build
from parley.memory.debate import DEBATES
from parley.memory.index import Filler
from parley.memory.settings import MemorySettings
from parley.runtime.errors import ConfigurationError, PartFailedError
from parley.storage.opening import open_store
from parley.storage.ports import Fields
from parley.storage.qdrant import edge
from tests.integration.memory.serving import PRICES, convergence, debate, recall, run_memory
from tests.support.catching import catch_error
from tests.support.hash_embedder import HashEmbedder


async def test_memory_outlives_the_process_and_a_lost_index_is_made_again(tmp_path: Path) -> None:
    async with convergence() as address:
        async with run_memory(tmp_path, address) as stub:
            await stub.RecordDebate(debate("deb-1"))
            await stub.RecordDebate(debate("deb-2", PRICES))
        async with run_memory(tmp_path, address) as stub:
            assert len(await recall(stub, "Kafka for orders?")) == 1
        shutil.rmtree(tmp_path / "vectors")
        async with run_memory(tmp_path, address) as stub:
            assert [each.debate_id for each in await recall(stub, "raise prices?")] == ["deb-2"]
            assert [each.debate_id for each in await recall(stub, "Kafka for orders?")] == ["deb-1"]


async def test_another_embedding_model_finds_what_the_first_one_embedded(tmp_path: Path) -> None:
    async with convergence() as address, run_memory(tmp_path, address) as stub:
        await stub.RecordDebate(debate("deb-1"))
    async with convergence(HashEmbedder("other/model", 32)) as address, run_memory(tmp_path, address) as stub:
        assert [each.debate_id for each in await recall(stub, "Kafka for orders?")] == ["deb-1"]


async def test_a_vector_store_that_is_none_is_named_with_its_setting(tmp_path: Path) -> None:
    settings = MemorySettings(store=f"sqlite:///{tmp_path}", vectors="nowhere", convergence="127.0.0.1:9")
    with pytest.raises(ConfigurationError, match="PARLEY_VECTORS"):
        async with build(settings):
            pass


async def test_memories_that_cannot_be_read_are_passed_over_when_the_index_is_made_again(
    tmp_path: Path,
) -> None:
    async with convergence() as address:
        async with run_memory(tmp_path, address) as stub:
            for number in range(4):
                await stub.RecordDebate(debate(f"deb-{number}"))
        async with open_store(f"sqlite:///{tmp_path / 'store'}", "memory") as store:
            nan = base64.b64encode(np.full(64, np.nan, dtype="<f4").tobytes()).decode()
            odd: tuple[Fields, ...] = (
                {"vector": "?"},
                {"vector": nan},
                {"record": {"debate": {"concluded_at": "soon"}}},
            )
            for number, changes in enumerate(odd):
                assert await store.documents.update(DEBATES, f"default/deb-{number}", changes, {})
        async with run_memory(tmp_path, address) as stub:
            assert {each.debate_id for each in await recall(stub, "Kafka for orders?")} == {
                "deb-0",
                "deb-1",
                "deb-3",
            }, "the index holds what the documents do not any more"
            assert len(await recall(stub, "Kafka for orders?", limit=3)) == 3, "the next best comes instead"
        shutil.rmtree(tmp_path / "vectors")
        async with run_memory(tmp_path, address) as stub:
            found = {each.debate_id for each in await recall(stub, "Kafka for orders?")}
            assert found == {"deb-0", "deb-3"}, "a vector that is lost is made again"


def overwrite(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(b"\xff" * min(file.stat().st_size, 65536))


def empty(file: Path) -> None:
    os.truncate(file, 0)


def cut_short(file: Path) -> None:
    os.truncate(file, min(file.stat().st_size, 1024) // 2)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("payload_storage/tracker.dat", overwrite),  # the engine panics
        ("payload_storage/page_0.dat", empty),
        ("payload_storage/page_0.dat", cut_short),
        ("vectors/chunk_0.mmap", empty),
        ("vectors/chunk_0.mmap", cut_short),
        ("mutable_id_tracker.mappings", overwrite),
        ("mutable_id_tracker.mappings", cut_short),
        ("wal/open-1", cut_short),
        ("status.dat", cut_short),
        ("segment.json", empty),
        ("debates-*.size", overwrite),
    ],
)
async def test_a_damaged_index_is_made_again_from_the_documents(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    async with convergence() as address:
        async with run_memory(tmp_path, address) as stub:
            for number in range(3):
                await stub.RecordDebate(debate(f"deb-{number}"))
        files = [each for each in (tmp_path / "vectors").rglob("*") if each.match(name)]
        assert files
        for file in files:
            damage(file)
        async with run_memory(tmp_path, address) as stub:
            assert not (await stub.RecordDebate(debate("deb-3"))).existed
            # A loss that its size does not tell at the start is found by counting the documents.
            async with asyncio.timeout(30):
                while len(await recall(stub, "Kafka for orders?")) < 4:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            found = {each.debate_id for each in await recall(stub, "Kafka for orders?")}
            assert found == {"deb-0", "deb-1", "deb-2", "deb-3"}


async def test_an_index_that_is_found_damaged_by_a_search_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PanicException(BaseException):
        """As the engine's."""

    panics = iter([True])

    def do(shard: EdgeShard, request: object) -> object:
        if next(panics, False):
            raise PanicException("assertion failed")
        return shard.search(request)  # type: ignore[arg-type]

    monkeypatch.setattr(edge, "_search", do)
    async with convergence() as address, run_memory(tmp_path, address) as stub:
        await stub.RecordDebate(debate("deb-1"))
        assert len(await recall(stub, "Kafka for orders?")) == 1
        assert not next(panics, False), "it panicked"


async def test_on_a_disk_that_is_nearly_full_memory_says_so_and_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with convergence() as address, run_memory(tmp_path, address) as stub:
        await stub.RecordDebate(debate("deb-1"))
        with monkeypatch.context() as nearly_full:
            nearly_full.setattr(edge, "_MIN_FREE_BYTES", 2**62)
            error = await catch_error(stub.RecordDebate(debate("deb-2", PRICES)))
            assert error.code == grpc.StatusCode.UNAVAILABLE
            assert "free some room" in error.message
            assert len(await recall(stub, "Kafka for orders?")) == 1
        assert (await stub.RecordDebate(debate("deb-2", PRICES))).existed
        assert len(await recall(stub, "raise prices?")) == 1


async def test_a_memory_whose_index_is_not_kept_any_more_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fill(*_: object) -> None:
        raise KeyError("debates-x")

    monkeypatch.setattr(Filler, "fill", fill)

    async def wait_until_it_ends(address: str) -> None:
        async with asyncio.timeout(30), run_memory(tmp_path, address) as stub:
            await stub.RecordDebate(debate("deb-1"))
            await asyncio.Event().wait()

    async with convergence() as address:
        with pytest.raises(PartFailedError, match=r"^building memory's index failed: KeyError: 'debates-x'$"):
            await wait_until_it_ends(address)
