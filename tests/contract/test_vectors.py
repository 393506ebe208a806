"""What every adapter of the Vectors port does alike."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from math import sqrt
from pathlib import Path
from uuid import UUID, uuid4, uuid5

import numpy as np
import pytest
from qdrant_edge import EdgeShard, ScoredPoint, SearchRequest

from parley.storage.opening import open_vectors
from parley.storage.ports import Point, StorageError, StoreUnavailableError, VectorCollection, Vectors
from parley.storage.qdrant import edge
from tests.support.waiting import wait_until

# The local mode says that it needs no indexes.
pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes")

SERVER = os.environ.get("PARLEY_TEST_QDRANT_URL", "")
NAMESPACE = UUID("5f5b2d4e-3f4c-4b8e-9f0a-6a6f0f3f2b11")


@pytest.fixture(
    params=[
        "edge",
        "edge in parts",
        "local",
        pytest.param("server", marks=pytest.mark.skipif(not SERVER, reason="no server")),
    ]
)
async def vectors(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Vectors]:
    async with AsyncExitStack() as stack:
        if request.param == "edge in parts":
            monkeypatch.setattr(edge, "_PART", 2)
        if request.param.startswith("edge"):
            yield await stack.enter_async_context(open_vectors(f"edge:{tmp_path / 'vectors'}"))
        elif request.param == "server":
            yield await stack.enter_async_context(open_vectors(SERVER))
        else:
            # It takes seconds to load: only a process that runs this does.
            from qdrant_client import AsyncQdrantClient

            from parley.storage.qdrant.server import ServerVectors

            client = AsyncQdrantClient(":memory:")
            stack.push_async_callback(client.close)
            yield ServerVectors(client)


@pytest.fixture
def collection() -> VectorCollection:
    return VectorCollection(f"test-{uuid4().hex}", 3, ("tenant", "domain"))


def point(name: str, *vector: float, tenant: str = "a", domain: str = "general") -> Point:
    return Point(uuid5(NAMESPACE, name), vector, {"tenant": tenant, "domain": domain, "name": name})


async def names(vectors: Vectors, collection: VectorCollection, **search: object) -> list[str]:
    found = await vectors.search(collection, [1.0, 0.0, 0.0], **search)  # type: ignore[arg-type]
    return [each.fields["name"] for each in found]


async def test_the_nearest_comes_first_with_its_cosine_and_its_fields(
    vectors: Vectors, collection: VectorCollection
) -> None:
    await vectors.prepare(collection)
    await vectors.upsert(collection, [point("far", 0, 1, 0), point("near", 1, 1, 0), point("same", 2, 0, 0)])
    found = await vectors.search(collection, [1.0, 0.0, 0.0], limit=2)
    assert [each.fields["name"] for each in found] == ["same", "near"]
    assert [each.id for each in found] == [uuid5(NAMESPACE, "same"), uuid5(NAMESPACE, "near")]
    assert [each.score for each in found] == pytest.approx([1.0, 1 / sqrt(2)], abs=1e-5)
    assert found[0].fields == {"tenant": "a", "domain": "general", "name": "same"}


async def test_vectors_come_with_length_one_to_a_search_that_asks_for_them(
    vectors: Vectors, collection: VectorCollection
) -> None:
    await vectors.prepare(collection)
    await vectors.upsert(collection, [point("long", 3, 4, 0)])
    (asked,) = await vectors.search(collection, [1.0, 0.0, 0.0], with_vectors=True)
    (not_asked,) = await vectors.search(collection, [1.0, 0.0, 0.0])
    assert list(asked.vector) == pytest.approx([0.6, 0.8, 0.0], abs=1e-5)
    assert not_asked.vector == ()


async def test_only_points_with_equal_fields_are_found(
    vectors: Vectors, collection: VectorCollection
) -> None:
    await vectors.prepare(collection)
    await vectors.upsert(
        collection,
        [point("ours", 1, 1, 0), point("theirs", 1, 0, 0, tenant="b"), point("other", 1, 0, 0, domain="x")],
    )
    assert await names(vectors, collection, where={"tenant": "a"}) == ["other", "ours"]
    assert await names(vectors, collection, where={"tenant": "a", "domain": "general"}) == ["ours"]
    assert await names(vectors, collection, where={"tenant": "nobody"}) == []
    assert await vectors.count(collection, {"tenant": "a"}) == 2
    assert await vectors.count(collection) == 3


async def test_what_is_below_the_floor_or_left_out_is_not_found(
    vectors: Vectors, collection: VectorCollection
) -> None:
    await vectors.prepare(collection)
    await vectors.upsert(
        collection, [point("same", 1, 0, 0), point("near", 1, 1, 0), point("apart", -1, 0, 0)]
    )
    assert await names(vectors, collection, floor=0.5) == ["same", "near"]
    assert await names(vectors, collection, floor=0.5, without=[uuid5(NAMESPACE, "same")]) == ["near"]
    assert await names(vectors, collection) == ["same", "near", "apart"]


async def test_a_point_stored_again_takes_the_place_of_the_first(
    vectors: Vectors, collection: VectorCollection
) -> None:
    await vectors.prepare(collection)
    await vectors.upsert(collection, [point("one", 0, 1, 0)])
    await vectors.upsert(collection, [point("one", 1, 0, 0, domain="new")])
    await vectors.upsert(collection, [])
    found = await vectors.search(collection, [1.0, 0.0, 0.0])
    assert [each.fields["domain"] for each in found] == ["new"]
    assert found[0].score == pytest.approx(1.0)


async def test_a_deleted_point_is_gone(vectors: Vectors, collection: VectorCollection) -> None:
    await vectors.prepare(collection)
    await vectors.upsert(collection, [point("one", 1, 0, 0), point("two", 1, 1, 0)])
    await vectors.delete(collection, [uuid5(NAMESPACE, "one"), uuid5(NAMESPACE, "never there")])
    await vectors.delete(collection, [])
    assert await names(vectors, collection) == ["two"]
    assert await vectors.count(collection) == 1


async def test_preparing_again_keeps_what_is_there(vectors: Vectors, collection: VectorCollection) -> None:
    await vectors.prepare(collection)
    await vectors.upsert(collection, [point("one", 1, 0, 0)])
    await vectors.prepare(collection)
    assert await vectors.count(collection) == 1


async def test_vectors_of_another_size_are_refused_by_name(
    vectors: Vectors, collection: VectorCollection
) -> None:
    await vectors.prepare(collection)
    with pytest.raises(StorageError, match=collection.name):
        await vectors.prepare(VectorCollection(collection.name, 4, collection.fields))


async def test_many_writes_and_searches_at_once_lose_nothing(
    vectors: Vectors, collection: VectorCollection
) -> None:
    await vectors.prepare(collection)

    async def write(start: int) -> None:
        await vectors.upsert(collection, [point(str(start + each), 1, each / 10, 0) for each in range(10)])
        assert await names(vectors, collection, limit=1)

    async with asyncio.TaskGroup() as group:
        for start in range(0, 200, 10):
            group.create_task(write(start))
    assert await vectors.count(collection) == 200


async def test_of_many_points_in_an_embedded_store_the_nearest_are_those_of_exact_cosines(
    tmp_path: Path,
) -> None:
    dice = np.random.default_rng(7)
    near = dice.standard_normal((2_000, 384)).astype(np.float32)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    many, ids = VectorCollection("many", 384), [uuid5(NAMESPACE, str(number)) for number in range(len(near))]
    async with open_vectors(f"edge:{tmp_path}") as vectors:
        await vectors.prepare(many)
        await vectors.upsert(
            many, [Point(id_, each.tolist(), {}) for id_, each in zip(ids, near, strict=True)]
        )
        for asked in near[:20] + dice.standard_normal((20, 384)) / 10:
            cosines = near @ asked / np.linalg.norm(asked)
            best = np.argsort(-cosines)[:50]
            floor = float(cosines[best[9:11]].mean())
            found = await vectors.search(many, asked.tolist(), limit=50)
            assert [each.id for each in found] == [ids[place] for place in best]
            assert [each.score for each in found] == pytest.approx(cosines[best].tolist(), abs=1e-5)
            assert len(await vectors.search(many, asked.tolist(), limit=50, floor=floor)) == 10
    folder = tmp_path / many.name
    assert any(folder.rglob("quantized.config.json")), "searches scan the codes, not the vectors"


async def test_an_embedded_store_keeps_what_it_was_given(tmp_path: Path) -> None:
    url, kept = f"edge:{tmp_path / 'vectors'}", VectorCollection("kept", 3, ("tenant",))
    async with open_vectors(url) as vectors:
        await vectors.prepare(kept)
        await vectors.upsert(kept, [point("one", 1, 0, 0)])
    async with open_vectors(url) as vectors:
        await vectors.prepare(kept)
        assert await vectors.count(kept, {"tenant": "a"}) == 1
        assert await names(vectors, kept) == ["one"]


@pytest.mark.skipif(sys.platform != "linux", reason="the threads of a process are files on Linux")
async def test_an_embedded_collection_takes_one_thread_to_search_it(tmp_path: Path) -> None:
    def count_search_threads() -> int:
        count = 0
        for thread in Path("/proc/self/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # it just ended
                count += (thread / "comm").read_text().startswith("edge-search")
        return count

    await wait_until(lambda: count_search_threads() == 0)  # those of other tests have ended
    async with open_vectors(f"edge:{tmp_path}") as vectors:
        for number in range(1, 4):
            await vectors.prepare(VectorCollection(f"collection-{number}", 2))
        await wait_until(lambda: count_search_threads() >= 3)  # each names itself once it runs
        assert count_search_threads() == 3


async def test_a_folder_that_another_one_uses_is_refused_by_name(tmp_path: Path) -> None:
    url = f"edge:{tmp_path / 'vectors'}"
    async with open_vectors(url):
        with pytest.raises(StorageError, match="another process uses the folder"):
            async with open_vectors(url):
                pass
    async with open_vectors(url):
        pass


async def test_a_server_that_does_not_answer_is_unavailable() -> None:
    async with open_vectors("http://127.0.0.1:9") as vectors:
        with pytest.raises(StoreUnavailableError, match="Qdrant"):
            await vectors.prepare(VectorCollection("x", 3))


@pytest.mark.parametrize("url", ["edge:", "qdrant.local:6334", "sqlite:///x"])
async def test_a_url_that_names_no_vector_store_is_refused_by_its_setting(url: str) -> None:
    with pytest.raises(ValueError, match="PARLEY_VECTORS"):
        async with open_vectors(url):
            pass


async def test_a_killed_process_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    url = f"edge:{tmp_path / 'vectors'}"
    program = f"""
import asyncio, os
from tests.contract.test_vectors import point
from parley.storage.opening import open_vectors
from parley.storage.ports import VectorCollection

async def main():
    async with open_vectors({url!r}) as vectors:
        kept = VectorCollection("kept", 3, ("tenant",))
        await vectors.prepare(kept)
        for number in range(50):
            await vectors.upsert(kept, [point(str(number), 1, number, 0)])
        os._exit(9)

asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    assert await asyncio.wait_for(process.wait(), 60) == 9
    kept = VectorCollection("kept", 3, ("tenant",))
    async with open_vectors(url) as vectors:
        await vectors.prepare(kept)
        assert await vectors.count(kept) == 50
        assert await names(vectors, kept, limit=1) == ["0"]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
async def test_a_number_that_is_not_finite_is_refused_and_nothing_of_its_batch_is_kept(
    vectors: Vectors, collection: VectorCollection, number: float
) -> None:
    await vectors.prepare(collection)
    with pytest.raises(ValueError, match="not finite"):
        await vectors.upsert(collection, [point("good", 1, 0, 0), point("bad", 1, number, 0)])
    with pytest.raises(ValueError, match="not finite"):
        await vectors.search(collection, (1, number, 0))
    assert await vectors.count(collection) == 0


async def test_a_store_that_can_be_asked_answers(vectors: Vectors) -> None:
    await vectors.ping()


async def test_an_embedded_collection_of_many_points_is_in_parts_that_outlive_the_process(
    tmp_path: Path, collection: VectorCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge, "_PART", 2)
    async with open_vectors(f"edge:{tmp_path}") as vectors:
        await vectors.prepare(collection)
        for number in range(5):
            await vectors.upsert(collection, [point(f"p{number}", 1, number, 0)])
    async with open_vectors(f"edge:{tmp_path}") as vectors:
        await vectors.prepare(collection)
        await vectors.upsert(collection, [point("p0", 1, 9, 0), point("p5", 1, 8, 0)])
        assert await names(vectors, collection) == ["p1", "p2", "p3", "p4", "p5", "p0"]
        assert await names(vectors, collection, limit=2) == ["p1", "p2"]
        assert await vectors.count(collection) == 6
    assert (tmp_path / f"{collection.name}~3").exists()


async def test_other_work_has_its_turn_between_the_parts_of_a_search(
    tmp_path: Path, collection: VectorCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[str] = []
    search = edge._search

    def search_and_note(shard: EdgeShard, request: SearchRequest) -> list[ScoredPoint]:
        turns.append("part")
        return search(shard, request)

    monkeypatch.setattr(edge, "_PART", 1)
    monkeypatch.setattr(edge, "_search", search_and_note)
    async with open_vectors(f"edge:{tmp_path}") as vectors:
        await vectors.prepare(collection)
        for number in range(2):
            await vectors.upsert(collection, [point(f"p{number}", 1, number, 0)])
        searching = asyncio.create_task(names(vectors, collection))
        while not searching.done():
            turns.append("loop")
            await asyncio.sleep(0)
    told = " ".join(turns)
    assert told.count("part") == 3
    assert "part part" not in told


@pytest.mark.parametrize("damaged", [0, 1])
async def test_a_collection_of_which_a_part_is_damaged_is_made_anew(
    tmp_path: Path, collection: VectorCollection, damaged: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge, "_PART", 1)
    async with open_vectors(f"edge:{tmp_path}") as vectors:
        await vectors.prepare(collection)
        await vectors.upsert(collection, [point("p0", 1, 0, 0)])
        await vectors.upsert(collection, [point("p1", 1, 1, 0)])
    folder = tmp_path / (f"{collection.name}~{damaged}" if damaged else collection.name)
    (segment,) = folder.rglob("segment.json")
    os.truncate(segment, 0)
    async with open_vectors(f"edge:{tmp_path}") as vectors:
        await vectors.prepare(collection)
        assert await vectors.count(collection) == 0
        await vectors.upsert(collection, [point("p0", 1, 0, 0)])
        assert await names(vectors, collection) == ["p0"]
