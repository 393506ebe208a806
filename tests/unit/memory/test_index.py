"""The index of memories is made beside the service, goes on where it was left, and is made again where it is damaged."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest

from parley.memory import index as index_module
from parley.memory.approvals import APPROVALS
from parley.memory.debate import DEBATES, FILL_PROGRESS, FORGETTING, from_document, point_id, to_fields
from parley.memory.embedding import Embedding, EmbeddingClient
from parley.memory.index import DebateIndex, Filler, ModelChangedError, create_point
from parley.memory.memories import Memories
from parley.memory.outbox import Outbox
from parley.memory.stored_vectors import to_vector
from parley.memory.tiers import TIERS, Tiers
from parley.memory.tombstones import TOMBSTONES
from parley.memory.traces import TRACES, Traces
from parley.runtime.backoff import Backoff
from parley.runtime.clock import SystemClock
from parley.runtime.errors import ParleyError, unavailable
from parley.runtime.tasks import background_task
from parley.storage.opening import open_store, open_vectors
from parley.storage.ports import Document, Documents, Point, VectorCollection, Vectors
from parley.storage.sqlite.documents import SqliteDocuments
from parley.v1.memory_pb2 import PastDebate, RecordDebateRequest

NEW = VectorCollection("debates-new", 2, ("tenant", "domain"))


@dataclass
class CountingEmbeddingClient(EmbeddingClient):
    """Embeds with the model `new` while it is let, and counts what it embedded."""

    allowed: int = 1000
    model: str = "new"
    embedded: list[str] = field(default_factory=list)
    let: asyncio.Event = field(default_factory=asyncio.Event)

    async def embed(self, *texts: str) -> list[Embedding]:
        if any("later" not in each for each in texts):
            await self.let.wait()
        if len(self.embedded) + len(texts) > self.allowed:
            raise unavailable("CONVERGENCE_UNAVAILABLE", "away")
        self.embedded += texts
        return [Embedding(to_vector([1.0, 0.0]), self.model) for _ in texts]


@dataclass(frozen=True, slots=True)
class Stores:
    documents: Documents
    vectors: Vectors


@asynccontextmanager
async def open_stores(folder: Path) -> AsyncIterator[Stores]:
    async with (
        open_store(f"sqlite:///{folder / 'store'}", "memory") as store,
        open_vectors(f"edge:{folder / 'vectors'}") as vectors,
    ):
        await store.documents.prepare(DEBATES, FILL_PROGRESS, TRACES, TIERS, TOMBSTONES, APPROVALS)
        yield Stores(store.documents, vectors)


def record(debate_id: str, question: str = "Which?", conclusion: str = "This.") -> RecordDebateRequest:
    debate = PastDebate(debate_id=debate_id, question=question, conclusion=conclusion, domain="general")
    debate.concluded_at.FromSeconds(1_780_000_000)
    return RecordDebateRequest(debate=debate)


async def remember(stores: Stores, count: int, model: str = "old") -> None:
    for number in range(count):
        debate = record(f"deb-{number:02}")
        fields = to_fields("default", debate, Embedding(to_vector([0.0, 1.0]), model))
        await stores.documents.insert(DEBATES, f"default/{debate.debate.debate_id}", fields)


def meanings(allowed: int = 1000, model: str = "new", *, let: bool = True) -> CountingEmbeddingClient:
    made = CountingEmbeddingClient(allowed, model)
    if let:
        made.let.set()
    return made


def memories_of(stores: Stores, index: DebateIndex, embedding: EmbeddingClient) -> Memories:
    outbox = Outbox(stores.documents, [index], SystemClock())
    return Memories(
        stores.documents,
        index,
        Traces(stores.documents, SystemClock()),
        Tiers(stores.documents, SystemClock()),
        embedding,
        outbox,
        SystemClock(),
        alone=False,
    )


async def recall(memories: Memories) -> set[str]:
    found = memories.recall("default", "later", domain="", excluded=(), limit=100, floor=0.1)
    return {each.debate_id async for each in found}


async def test_a_search_while_the_index_is_made_uses_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_MAX_WAIT_SECONDS", 0.05)
    async with open_stores(tmp_path) as stores:
        await remember(stores, 3)
        embedding = meanings(let=False)
        index = DebateIndex(stores.documents, stores.vectors, embedding)
        memories = memories_of(stores, index, embedding)
        async with asyncio.timeout(30), background_task("making the index", index.run()):
            later = record("deb-later", "later", "later")
            assert not await memories.record("default", later)
            assert await recall(memories) == {"deb-later"}
            embedding.let.set()
            while len(await recall(memories)) < 4:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_what_was_embedded_before_an_error_is_not_embedded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_PAGE", 4)
    async with open_stores(tmp_path) as stores:
        await remember(stores, 10)
        first = meanings(8)
        with pytest.raises(ParleyError):
            await Filler(stores.documents, stores.vectors, first).fill(NEW, "new")
        assert await stores.vectors.count(NEW) == 8
    async with open_stores(tmp_path) as stores:
        second = meanings()
        await Filler(stores.documents, stores.vectors, second).fill(NEW, "new")
        assert await stores.vectors.count(NEW) == 10
    assert (len(first.embedded), len(second.embedded)) == (8, 2)
    async with open_stores(tmp_path) as stores:
        third = meanings()
        await Filler(stores.documents, stores.vectors, third).fill(NEW, "new")
        assert not third.embedded, "it is whole"


async def test_an_index_that_is_lost_half_way_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_PAGE", 4)
    async with open_stores(tmp_path) as stores:
        await remember(stores, 10)
        with pytest.raises(ParleyError):
            await Filler(stores.documents, stores.vectors, meanings(8)).fill(NEW, "new")
    (tmp_path / "vectors/debates-new.size").unlink()
    async with open_stores(tmp_path) as stores:
        await Filler(stores.documents, stores.vectors, meanings()).fill(NEW, "new")
        assert await stores.vectors.count(NEW) == 10


async def test_a_vector_that_a_half_made_index_lost_is_written_again_though_a_new_one_makes_up_for_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_PAGE", 2)
    async with open_stores(tmp_path) as stores:
        await remember(stores, 3)
        with pytest.raises(ParleyError):
            await Filler(stores.documents, stores.vectors, meanings(2)).fill(NEW, "new")
        await stores.vectors.delete(NEW, [point_id("default/deb-00")])
        later = record("deb-later")
        meaning = Embedding(to_vector([1.0, 0.0]), "new")
        document = Document("default/deb-later", to_fields("default", later, meaning))
        await stores.documents.insert(DEBATES, document.key, document.fields)
        await stores.vectors.upsert(NEW, [create_point(document.key, "default", "general", meaning)])
        await Filler(stores.documents, stores.vectors, meanings()).fill(NEW, "new")
        assert await stores.vectors.count(NEW) == 4


async def test_the_documents_of_which_an_index_is_made_are_not_read_on_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, readers = threading.current_thread(), set[threading.Thread]()

    def note_reader(document: Document) -> RecordDebateRequest:
        readers.add(threading.current_thread())
        return from_document(document)

    monkeypatch.setattr(index_module, "from_document", note_reader)
    async with open_stores(tmp_path) as stores:
        await remember(stores, 3, model="new")
        await Filler(stores.documents, stores.vectors, meanings()).fill(NEW, "new")
        assert await stores.vectors.count(NEW) == 3
    assert readers
    assert loop not in readers


async def test_the_debates_of_an_index_that_was_complete_are_counted_and_not_read(tmp_path: Path) -> None:
    async with open_stores(tmp_path) as stores:
        await remember(stores, 10)
        await Filler(stores.documents, stores.vectors, meanings()).fill(NEW, "new")

        class Unread:
            """Documents that no search reads."""

            def __getattr__(self, name: str) -> Any:
                assert name != "find"
                return getattr(stores.documents, name)

        again = meanings()
        await Filler(cast("Documents", Unread()), stores.vectors, again).fill(NEW, "new")
        assert not again.embedded


async def test_an_index_is_made_of_documents_by_their_own_keys_whatever_fields_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_PAGE", 1)
    async with open_stores(tmp_path) as stores:
        fields = to_fields("default", record("deb-00"), Embedding(to_vector([0.0, 1.0]), "new"))
        others = {name: value for name, value in fields.items() if name != "key"}
        await stores.documents.insert(DEBATES, "default/deb-00", others)
        await stores.documents.insert(DEBATES, "default/deb-01", {"key": "default/deb-01"})
        await stores.documents.insert(DEBATES, "default/deb-02", {})
        await Filler(stores.documents, stores.vectors, meanings()).fill(NEW, "new")
        (left,) = await stores.vectors.search(NEW, [0.0, 1.0], limit=9)
        assert left.fields["key"] == "default/deb-00"


async def test_vectors_of_another_model_never_enter_an_index(tmp_path: Path) -> None:
    async with open_stores(tmp_path) as stores:
        await remember(stores, 3)
        with pytest.raises(ModelChangedError):
            await Filler(stores.documents, stores.vectors, meanings(model="newer")).fill(NEW, "new")
        assert await stores.vectors.count(NEW) == 0


async def test_an_index_that_waits_for_convergence_is_made_once_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_RETRY_BACKOFF", Backoff(first=0.01, maximum=0.01))
    monkeypatch.setattr(index_module, "_MAX_WAIT_SECONDS", 0.05)
    async with open_stores(tmp_path) as stores:
        await remember(stores, 3)
        embedding = meanings(2)
        index = DebateIndex(stores.documents, stores.vectors, embedding)
        memories = memories_of(stores, index, embedding)
        async with asyncio.timeout(30), background_task("making the index", index.run()):
            assert await recall(memories) == set()
            embedding.allowed = 1000
            while len(await recall(memories)) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_no_search_waits_for_the_count_of_an_index_that_was_complete_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_stores(tmp_path) as stores:
        await remember(stores, 3)
        await Filler(stores.documents, stores.vectors, meanings()).fill(NEW, "new")

    async def count_for_ever(*_: object) -> int:
        await asyncio.Event().wait()
        return 0

    monkeypatch.setattr(index_module, "_MAX_WAIT_SECONDS", 3600)
    monkeypatch.setattr(SqliteDocuments, "count", count_for_ever)
    async with open_stores(tmp_path) as stores:
        index = DebateIndex(stores.documents, stores.vectors, meanings())
        async with asyncio.timeout(30), background_task("making the index", index.run()):
            assert len(await recall(memories_of(stores, index, meanings()))) == 3
    async with open_stores(tmp_path) as stores:
        await stores.vectors.prepare(NEW)
        first = await stores.vectors.search(NEW, [1.0, 0.0], limit=1)
        await stores.vectors.delete(NEW, [each.id for each in first])
        filler = Filler(stores.documents, stores.vectors, meanings())
        assert not await filler.is_still_complete(NEW)
        await stores.vectors.upsert(NEW, [Point(uuid4(), [1.0, 0.0], {"tenant": "default"})])
        assert not await filler.is_still_complete(NEW), "another one does not make up for it"


async def test_a_debate_that_is_forgotten_while_the_index_is_made_leaves_no_vector(tmp_path: Path) -> None:
    async with open_stores(tmp_path) as stores:
        await remember(stores, 3)

        class ForgettingClient(CountingEmbeddingClient):
            """Another replica forgets two debates while their texts are embedded."""

            async def embed(self, *texts: str) -> list[Embedding]:
                await stores.documents.delete(DEBATES, "default/deb-00")
                await stores.documents.update(DEBATES, "default/deb-01", {"unfinished": FORGETTING})
                return await super().embed(*texts)

        client = ForgettingClient()
        client.let.set()
        await Filler(stores.documents, stores.vectors, client).fill(NEW, "new")
        (left,) = await stores.vectors.search(NEW, [1.0, 0.0], limit=9)
        assert left.fields["key"] == "default/deb-02"
