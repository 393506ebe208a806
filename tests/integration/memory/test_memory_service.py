"""The memory service over real gRPC, beside a convergence service that embeds by words."""

import asyncio
import base64
import os
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import grpc
import numpy as np
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from qdrant_edge import EdgeShard

from parley.convergence.agreement import Agreements
from parley.convergence.embeddings import open_embeddings
from parley.convergence.servicer import ConvergenceServicer
from parley.memory.__main__ import build
from parley.memory.approvals import APPROVALS
from parley.memory.debate import DEBATES
from parley.memory.index import Filler
from parley.memory.settings import MemorySettings
from parley.runtime.channel import channel
from parley.runtime.errors import ConfigurationError, ParleyError, PartFailedError, from_rpc_error
from parley.runtime.page_tokens import to_token
from parley.runtime.server import Service, start_server
from parley.storage.opening import open_store
from parley.storage.ports import Collection, Document, Fields
from parley.storage.qdrant import edge
from parley.storage.sqlite.documents import SqliteDocuments
from parley.v1 import memory_pb2 as pb
from parley.v1.convergence_pb2_grpc import add_ConvergenceServiceServicer_to_server
from parley.v1.critique_pb2 import ISSUE_STATUS_TAKEN_UP, Issue
from parley.v1.effect_pb2 import DECISION_RELATION_REVERSES, DecisionConfidence
from parley.v1.memory_pb2_grpc import MemoryServiceStub
from parley.v1.voting_pb2 import VOTE_STRENGTH_MODERATE
from tests.support.hash_embedder import HashEmbedder
from tests.support.word_agreement import WordAgreement

ACME = (("parley-tenant", "acme"),)
KAFKA = ("Kafka or RabbitMQ for orders?", "Use Kafka for orders.")
PRICES = ("Should we raise prices?", "Raise prices in spring.")


@asynccontextmanager
async def convergence(embedder: HashEmbedder | None = None, words: Sequence[str] = ()) -> AsyncIterator[str]:
    async with open_embeddings(embedder or HashEmbedder()) as shared:
        servicer = ConvergenceServicer(shared, shared, Agreements(WordAgreement(words), cache=100))
        service = Service(
            "parley.v1.ConvergenceService",
            lambda server: add_ConvergenceServiceServicer_to_server(servicer, server),
        )
        async with start_server([service]) as server:
            yield server.address


@asynccontextmanager
async def running(folder: Path, address: str) -> AsyncIterator[MemoryServiceStub]:
    settings = MemorySettings(
        store=f"sqlite:///{folder / 'store'}", vectors=f"edge:{folder / 'vectors'}", convergence=address
    )
    async with (
        build(settings) as service,
        start_server([service]) as server,
        channel(server.address) as opened,
    ):
        yield MemoryServiceStub(opened)


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[MemoryServiceStub]:
    async with convergence() as address, running(tmp_path, address) as stub:
        yield stub


def debate(debate_id: str, content: tuple[str, str] = KAFKA, domain: str = "") -> pb.RecordDebateRequest:
    question, conclusion = content
    concluded_at = Timestamp()
    concluded_at.FromDatetime(datetime(2026, 5, 4, 12, 30, 15, 250_000, tzinfo=UTC))
    return pb.RecordDebateRequest(
        debate=pb.PastDebate(
            debate_id=debate_id,
            question=question,
            conclusion=conclusion,
            domain=domain,
            concluded_at=concluded_at,
        )
    )


async def recalled(
    stub: MemoryServiceStub, text: str, metadata: Sequence[tuple[str, str]] = (), **request: object
) -> list[pb.PastDebate]:
    found = stub.Recall(pb.RecallRequest(text=text, **request), metadata=metadata)  # type: ignore[arg-type]
    return [each.debate async for each in found]


async def refused(call: object) -> ParleyError:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call  # type: ignore[misc]
    return from_rpc_error(raised.value)


async def test_a_recorded_debate_is_recalled_as_it_was(memory: MemoryServiceStub) -> None:
    request = debate("deb-1", domain="data")
    assert not (await memory.RecordDebate(request)).existed
    (found,) = await recalled(memory, "Kafka for orders?")
    assert (found.debate_id, found.question, found.conclusion, found.domain) == ("deb-1", *KAFKA, "data")
    assert found.concluded_at == request.debate.concluded_at
    assert 32 <= found.relevance.similarity_percent <= 100


def with_all_that_a_debate_leaves(request: pb.RecordDebateRequest) -> pb.RecordDebateRequest:
    """The same debate with every part set."""
    debate = request.debate
    debate.strength = VOTE_STRENGTH_MODERATE
    debate.confidence.CopyFrom(DecisionConfidence(percent=83.5, votes=2, votes_cast=3))
    debate.dissents.add(agent_id="cy", text="It is hard to run.")
    debate.evidence.add(text="Kafka keeps order in a partition.", source="docs/kafka.md")
    request.stands.add(
        agent_id="ada",
        agent_name="Ada",
        text="Use Kafka.",
        for_decision=True,
        first_text="Wait.",
        first_for_decision=False,
        first_position=2,
    )
    request.stands.add(agent_id="cy", text="Use RabbitMQ.")
    issue = Issue(number=1, text="No figures.", severity=7)
    request.issues.add(critic_agent_id="ada", target_agent_id="cy", issue=issue, status=ISSUE_STATUS_TAKEN_UP)
    return request


async def test_a_debate_is_recalled_with_how_clear_and_how_sure_its_decision_was_and_who_disagreed(
    memory: MemoryServiceStub,
) -> None:
    request = with_all_that_a_debate_leaves(debate("deb-1", domain="data"))
    await memory.RecordDebate(request)
    assert (await memory.RecordDebate(request)).existed
    (found,) = await recalled(memory, "Kafka for orders?")
    assert found.HasField("relevance")
    found.ClearField("relevance")
    assert found == request.debate


async def test_all_that_a_debate_left_is_returned_to_its_tenant_alone(memory: MemoryServiceStub) -> None:
    request = with_all_that_a_debate_leaves(debate("deb-1", domain="data"))
    await memory.RecordDebate(request, metadata=ACME)
    asked = pb.GetRecordRequest(debate_id="deb-1")
    found = await memory.GetRecord(asked, metadata=ACME)
    assert pb.RecordDebateRequest(debate=found.debate, stands=found.stands, issues=found.issues) == request
    assert (await refused(memory.GetRecord(asked))).reason == "REMEMBERED_DEBATE_NOT_FOUND"
    await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id="deb-1"), metadata=ACME)
    assert (await refused(memory.GetRecord(asked, metadata=ACME))).reason == "REMEMBERED_DEBATE_NOT_FOUND"


async def test_another_stand_is_other_content(memory: MemoryServiceStub) -> None:
    request = with_all_that_a_debate_leaves(debate("deb-1"))
    await memory.RecordDebate(request)
    request.stands[0].for_decision = False
    error = await refused(memory.RecordDebate(request))
    assert error.reason == "DEBATE_REUSED"


async def test_every_bad_part_of_a_debate_is_listed(memory: MemoryServiceStub) -> None:
    request = with_all_that_a_debate_leaves(debate("deb-1"))
    request.debate.confidence.percent = float("nan")
    request.debate.relevance.similarity_percent = 50
    request.debate.dissents[0].text = "a" * 17_000
    request.debate.evidence[0].source = " "
    request.stands[0].text = "NUL\0"
    request.stands[0].first_text = "a" * 17_000
    request.stands[1].first_position = -1
    request.issues[0].issue.severity = 11
    error = await refused(memory.RecordDebate(request))
    assert [each.field for each in error.violations] == [
        "debate.confidence.percent",
        "debate.relevance",
        "debate.dissents[0].text",
        "debate.evidence[0].source",
        "stands[0].text",
        "stands[0].first_text",
        "stands[1].first_position",
        "issues[0].issue.severity",
    ]
    request = debate("deb-1")
    for _ in range(33):
        request.debate.dissents.add(agent_id="ada", text="No.")
    error = await refused(memory.RecordDebate(request))
    assert [each.field for each in error.violations] == ["debate.dissents"]


async def test_the_most_alike_comes_first_and_the_unrelated_not_at_all(
    memory: MemoryServiceStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    await memory.RecordDebate(debate("deb-near", ("Kafka for orders of shops?", "Use Kafka with care.")))
    await memory.RecordDebate(debate("deb-same"))
    await memory.RecordDebate(debate("deb-prices", PRICES))
    read = list[str]()
    get = SqliteDocuments.get

    async def get_and_note(documents: SqliteDocuments, collection: Collection, key: str) -> Document | None:
        read.append(collection.name)
        return await get(documents, collection, key)

    monkeypatch.setattr(SqliteDocuments, "get", get_and_note)
    found = await recalled(memory, "Kafka or RabbitMQ for orders?")
    assert "debates" not in read, "they are read together"
    assert [each.debate_id for each in found] == ["deb-same", "deb-near"]
    assert found[0].relevance.similarity_percent > found[1].relevance.similarity_percent
    assert await recalled(memory, "Which trees grow well on sand?") == []
    assert [each.debate_id for each in await recalled(memory, "Kafka orders", limit=1)] == ["deb-same"]
    assert len(await recalled(memory, "Kafka or RabbitMQ for orders?", excluded_debate_ids=["deb-same"])) == 1
    assert await recalled(memory, "Kafka or RabbitMQ for orders?", floor_percent=100) == []


async def test_a_debate_is_remembered_once(memory: MemoryServiceStub) -> None:
    await memory.RecordDebate(debate("deb-1"))
    assert (await memory.RecordDebate(debate("deb-1"))).existed
    assert len(await recalled(memory, "Kafka for orders?")) == 1
    error = await refused(memory.RecordDebate(debate("deb-1", PRICES)))
    assert (error.code, error.reason) == (grpc.StatusCode.ALREADY_EXISTS, "DEBATE_REUSED")


async def test_a_tenant_and_a_domain_see_only_their_own(memory: MemoryServiceStub) -> None:
    await memory.RecordDebate(debate("deb-1", domain="data"))
    await memory.RecordDebate(debate("deb-1", domain="ops"), metadata=ACME)
    assert [each.domain for each in await recalled(memory, "Kafka for orders?")] == ["data"]
    assert [each.domain for each in await recalled(memory, "Kafka for orders?", ACME)] == ["ops"]
    assert await recalled(memory, "Kafka for orders?", domain="ops") == []
    assert len(await recalled(memory, "Kafka for orders?", domain="data")) == 1


async def test_memory_outlives_the_process_and_a_lost_index_is_made_again(tmp_path: Path) -> None:
    async with convergence() as address:
        async with running(tmp_path, address) as stub:
            await stub.RecordDebate(debate("deb-1"))
            await stub.RecordDebate(debate("deb-2", PRICES))
        async with running(tmp_path, address) as stub:
            assert len(await recalled(stub, "Kafka for orders?")) == 1
        shutil.rmtree(tmp_path / "vectors")
        async with running(tmp_path, address) as stub:
            assert [each.debate_id for each in await recalled(stub, "raise prices?")] == ["deb-2"]
            assert [each.debate_id for each in await recalled(stub, "Kafka for orders?")] == ["deb-1"]


async def test_another_embedding_model_finds_what_the_first_one_embedded(tmp_path: Path) -> None:
    async with convergence() as address, running(tmp_path, address) as stub:
        await stub.RecordDebate(debate("deb-1"))
    async with convergence(HashEmbedder("other/model", 32)) as address, running(tmp_path, address) as stub:
        assert [each.debate_id for each in await recalled(stub, "Kafka for orders?")] == ["deb-1"]


async def test_without_convergence_it_says_so_and_does_its_work_when_it_is_back(tmp_path: Path) -> None:
    async with convergence() as address, running(tmp_path, address) as stub:
        await stub.RecordDebate(debate("deb-1", PRICES))
    async with running(tmp_path, "127.0.0.1:9") as stub:
        for call in (stub.RecordDebate(debate("deb-2")), recalled(stub, "Kafka?")):
            error = await refused(call)
            assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "CONVERGENCE_UNAVAILABLE")
    async with convergence() as address, running(tmp_path, address) as stub:
        assert not (await stub.RecordDebate(debate("deb-2"))).existed
        assert len(await recalled(stub, "Kafka for orders?")) == 1


async def test_a_memory_that_holds_nothing_of_the_tenant_asks_no_model(tmp_path: Path) -> None:
    async with running(tmp_path, "127.0.0.1:9") as stub:
        assert await recalled(stub, "Kafka?") == []
        found = await stub.ListPatterns(pb.ListPatternsRequest(text="Kafka?"))
        assert list(found.patterns) == []


async def test_texts_of_the_largest_size_are_remembered(memory: MemoryServiceStub) -> None:
    long = "orders and more orders " * 11_000
    await memory.RecordDebate(debate("deb-1", (long, long)))
    (found,) = await recalled(memory, "orders and more orders")
    assert found.question == long


async def test_every_bad_field_is_listed_at_once(memory: MemoryServiceStub) -> None:
    error = await refused(
        memory.RecordDebate(pb.RecordDebateRequest(debate=pb.PastDebate(debate_id="a/b", question=" ")))
    )
    assert [each.field for each in error.violations] == [
        "debate.debate_id",
        "debate.question",
        "debate.conclusion",
        "debate.concluded_at",
    ]
    error = await refused(recalled(memory, "", limit=101, floor_percent=-1, domain="x" * 65))
    assert [each.field for each in error.violations] == ["text", "limit", "floor_percent", "domain"]


async def test_a_vector_store_that_is_none_is_named_with_its_setting(tmp_path: Path) -> None:
    settings = MemorySettings(store=f"sqlite:///{tmp_path}", vectors="nowhere", convergence="127.0.0.1:9")
    with pytest.raises(ConfigurationError, match="PARLEY_VECTORS"):
        async with build(settings):
            pass


@pytest.mark.parametrize(("seconds", "nanos"), [(2**62, 0), (-(2**63), 0), (0, -1)])
async def test_a_time_that_is_none_is_refused(memory: MemoryServiceStub, seconds: int, nanos: int) -> None:
    request = debate("deb-odd")
    request.debate.concluded_at.CopyFrom(Timestamp(seconds=seconds, nanos=nanos))
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await memory.RecordDebate(request)
    refused = from_rpc_error(raised.value)
    assert [each.field for each in refused.violations] == ["debate.concluded_at"]


async def test_memories_that_cannot_be_read_are_passed_over_when_the_index_is_made_again(
    tmp_path: Path,
) -> None:
    async with convergence() as address:
        async with running(tmp_path, address) as stub:
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
        async with running(tmp_path, address) as stub:
            assert {each.debate_id for each in await recalled(stub, "Kafka for orders?")} == {
                "deb-0",
                "deb-1",
                "deb-3",
            }, "the index holds what the documents do not any more"
            assert len(await recalled(stub, "Kafka for orders?", limit=3)) == 3, "the next best comes instead"
        shutil.rmtree(tmp_path / "vectors")
        async with running(tmp_path, address) as stub:
            found = {each.debate_id for each in await recalled(stub, "Kafka for orders?")}
            assert found == {"deb-0", "deb-3"}, "a vector that is lost is made again"


async def test_a_debate_is_recalled_whose_stands_and_issues_cannot_be_read(tmp_path: Path) -> None:
    async with convergence() as address, running(tmp_path, address) as stub:
        await stub.RecordDebate(debate("deb-1"))
        async with open_store(f"sqlite:///{tmp_path / 'store'}", "memory") as store:
            document = await store.documents.get(DEBATES, "default/deb-1")
            assert document is not None
            record = {
                **cast("dict[str, Any]", document.fields["record"]),
                "issues": [{"of": "a newer version"}],
            }
            assert await store.documents.update(DEBATES, "default/deb-1", {"record": record}, {})
        assert [each.debate_id for each in await recalled(stub, "Kafka for orders?")] == ["deb-1"]


async def test_a_debate_that_is_forgotten_is_recalled_no_more_by_its_tenant_alone(
    memory: MemoryServiceStub,
) -> None:
    for tenant in (ACME, ()):
        await memory.RecordDebate(debate("deb-1"), metadata=tenant)
        await memory.RecordDebate(debate("deb-2", PRICES), metadata=tenant)
    forgotten = await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id="deb-1"), metadata=ACME)
    again = await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id="deb-1"), metadata=ACME)
    assert (forgotten.existed, again.existed) == (True, False)
    assert [each.debate_id for each in await recalled(memory, KAFKA[0], ACME)] != ["deb-1"]
    assert "deb-1" in [each.debate_id for each in await recalled(memory, KAFKA[0])]


async def test_a_debate_is_forgotten_with_its_vector(tmp_path: Path) -> None:
    async with convergence() as address, running(tmp_path, address) as memory:
        await memory.RecordDebate(debate("deb-1"))
        await memory.RecordDebate(debate("deb-2"))
        await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id="deb-1"))
        found = await recalled(memory, KAFKA[0], limit=1)
        assert [each.debate_id for each in found] == ["deb-2"]
    async with open_store(f"sqlite:///{tmp_path / 'store'}", "memory") as store:
        assert await store.documents.get(DEBATES, "default/deb-1") is None


def overwritten(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(b"\xff" * min(file.stat().st_size, 65536))


def emptied(file: Path) -> None:
    os.truncate(file, 0)


def cut_short(file: Path) -> None:
    os.truncate(file, min(file.stat().st_size, 1024) // 2)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("payload_storage/tracker.dat", overwritten),  # the engine panics
        ("payload_storage/page_0.dat", emptied),
        ("payload_storage/page_0.dat", cut_short),
        ("vectors/chunk_0.mmap", emptied),
        ("vectors/chunk_0.mmap", cut_short),
        ("mutable_id_tracker.mappings", overwritten),
        ("mutable_id_tracker.mappings", cut_short),
        ("wal/open-1", cut_short),
        ("status.dat", cut_short),
        ("segment.json", emptied),
        ("debates-*.size", overwritten),
    ],
)
async def test_a_damaged_index_is_made_again_from_the_documents(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    async with convergence() as address:
        async with running(tmp_path, address) as stub:
            for number in range(3):
                await stub.RecordDebate(debate(f"deb-{number}"))
        files = [each for each in (tmp_path / "vectors").rglob("*") if each.match(name)]
        assert files
        for file in files:
            damage(file)
        async with running(tmp_path, address) as stub:
            assert not (await stub.RecordDebate(debate("deb-3"))).existed
            # A loss that its size does not tell at the start is found by counting the documents.
            async with asyncio.timeout(30):
                while len(await recalled(stub, "Kafka for orders?")) < 4:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            found = {each.debate_id for each in await recalled(stub, "Kafka for orders?")}
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
    async with convergence() as address, running(tmp_path, address) as stub:
        await stub.RecordDebate(debate("deb-1"))
        assert len(await recalled(stub, "Kafka for orders?")) == 1
        assert not next(panics, False), "it panicked"


async def test_on_a_disk_that_is_nearly_full_memory_says_so_and_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with convergence() as address, running(tmp_path, address) as stub:
        await stub.RecordDebate(debate("deb-1"))
        with monkeypatch.context() as nearly_full:
            nearly_full.setattr(edge, "_MIN_FREE_BYTES", 2**62)
            error = await refused(stub.RecordDebate(debate("deb-2", PRICES)))
            assert error.code == grpc.StatusCode.UNAVAILABLE
            assert "free some room" in error.message
            assert len(await recalled(stub, "Kafka for orders?")) == 1
        assert (await stub.RecordDebate(debate("deb-2", PRICES))).existed
        assert len(await recalled(stub, "raise prices?")) == 1


async def test_a_memory_whose_index_is_not_kept_any_more_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fill(*_: object) -> None:
        raise KeyError("debates-x")

    monkeypatch.setattr(Filler, "fill", fill)

    async def until_it_ends(address: str) -> None:
        async with asyncio.timeout(30), running(tmp_path, address) as stub:
            await stub.RecordDebate(debate("deb-1"))
            await asyncio.Event().wait()

    async with convergence() as address:
        with pytest.raises(PartFailedError, match=r"^building memory's index failed: KeyError: 'debates-x'$"):
            await until_it_ends(address)


async def test_issues_of_debates_are_listed_as_patterns_until_these_are_forgotten(
    memory: MemoryServiceStub,
) -> None:
    await memory.RecordDebate(with_all_that_a_debate_leaves(debate("deb-1", domain="data")), metadata=ACME)
    (found,) = (await memory.ListPatterns(pb.ListPatternsRequest(text="Figures?"), metadata=ACME)).patterns
    assert (found.domain, list(found.examples), found.severity) == ("data", ["No figures."], 7)
    assert (found.raised, found.taken_up) == (1, 1)
    assert found.HasField("similarity_percent")
    for text, count in (("Figures?", 1), ("Bread and butter?", 0)):
        related = pb.ListPatternsRequest(text=text, only_related=True)
        assert len((await memory.ListPatterns(related, metadata=ACME)).patterns) == count
    assert not (await memory.ListPatterns(pb.ListPatternsRequest())).patterns, "another tenant sees none"
    await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id="deb-1"), metadata=ACME)
    assert not (await memory.ListPatterns(pb.ListPatternsRequest(), metadata=ACME)).patterns


def with_a_reversal(request: pb.RecordDebateRequest) -> pb.RecordDebateRequest:
    request.debate.related.add(
        debate_id="deb-0", decision="Use RabbitMQ.", relation=DECISION_RELATION_REVERSES, reason="It grew."
    )
    return request


async def test_moments_of_debates_are_listed_page_by_page_until_these_are_forgotten(
    memory: MemoryServiceStub,
) -> None:
    for name in ("deb-1", "deb-2", "deb-3"):
        await memory.RecordDebate(with_a_reversal(debate(name)), metadata=ACME)
    listed: list[pb.Moment] = []
    token = ""
    while token or not listed:
        request = pb.ListMomentsRequest(kind=pb.MOMENT_KIND_REVERSAL, page_size=2, page_token=token)
        page = await memory.ListMoments(request, metadata=ACME)
        listed, token = [*listed, *page.moments], page.next_page_token
    assert [each.debate_id for each in listed] == ["deb-3", "deb-2", "deb-1"]
    assert {each.earlier_debate_id for each in listed} == {"deb-0"}
    assert not (await memory.ListMoments(pb.ListMomentsRequest())).moments, "another tenant sees none"
    flips = pb.ListMomentsRequest(kind=pb.MOMENT_KIND_UNANIMOUS_FLIP)
    assert not (await memory.ListMoments(flips, metadata=ACME)).moments
    for name in ("deb-1", "deb-2", "deb-3"):
        await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id=name), metadata=ACME)
    assert not (await memory.ListMoments(pb.ListMomentsRequest(), metadata=ACME)).moments


async def test_a_bad_request_for_moments_names_every_bad_field(memory: MemoryServiceStub) -> None:
    forged = to_token((0, "2026\0"))
    for token in ("no", forged):
        request = pb.ListMomentsRequest(kind=99, page_size=-1, page_token=token)  # type: ignore[arg-type]
        error = await refused(memory.ListMoments(request))
        assert [each.field for each in error.violations] == ["kind", "page_size", "page_token"]


async def test_a_bad_earlier_decision_is_refused(memory: MemoryServiceStub) -> None:
    request = with_a_reversal(debate("deb-1"))
    request.debate.related[0].reason = "NUL\0"
    request.debate.related[0].decided_at.seconds = 10**12
    error = await refused(memory.RecordDebate(request))
    fields = ["debate.related[0].reason", "debate.related[0].decided_at"]
    assert [each.field for each in error.violations] == fields


async def test_a_bad_request_for_patterns_names_every_bad_field(memory: MemoryServiceStub) -> None:
    request = pb.ListPatternsRequest(text="a" * 100_001, domain="a" * 65, page_size=-1, page_token="no")
    error = await refused(memory.ListPatterns(request))
    assert [each.field for each in error.violations] == ["text", "domain", "page_size", "page_token"]
    error = await refused(memory.ListPatterns(pb.ListPatternsRequest(text=" ", only_related=True)))
    assert [each.field for each in error.violations] == ["only_related"]


async def test_a_debate_that_is_forgotten_before_it_is_recorded_is_not_remembered(
    memory: MemoryServiceStub,
) -> None:
    forgotten = await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id="deb-1"), metadata=ACME)
    recorded = await memory.RecordDebate(debate("deb-1"), metadata=ACME)
    assert (forgotten.existed, recorded.existed) == (False, False)
    assert await recalled(memory, "Kafka for orders?", ACME) == []
    await memory.RecordDebate(debate("deb-1"))
    assert len(await recalled(memory, "Kafka for orders?")) == 1, "another tenant's is another one"


async def test_where_agents_stood_is_listed_until_the_debate_is_forgotten(memory: MemoryServiceStub) -> None:
    for number in (1, 2):
        await memory.RecordDebate(with_all_that_a_debate_leaves(debate(f"deb-{number}")), metadata=ACME)
    request = pb.ListPositionsRequest(agent_id="ada", page_size=1)
    page = await memory.ListPositions(request, metadata=ACME)
    request.page_token = page.next_page_token
    rest = await memory.ListPositions(request, metadata=ACME)
    assert [each.debate_id for each in (*page.positions, *rest.positions)] == ["deb-2", "deb-1"]
    (change,) = page.positions[0].changes
    assert (change.earlier_debate_id, change.outcome) == ("deb-1", pb.FLIP_OUTCOME_NO_FLIP)
    assert not rest.next_page_token
    flips = await memory.ListPositions(pb.ListPositionsRequest(only_flips=True), metadata=ACME)
    assert not flips.positions
    assert not (await memory.ListPositions(pb.ListPositionsRequest())).positions, "another tenant sees none"
    for number in (1, 2):
        await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id=f"deb-{number}"), metadata=ACME)
    assert not (await memory.ListPositions(pb.ListPositionsRequest(), metadata=ACME)).positions


async def test_opposed_stands_are_a_flip_by_the_agreement_model_and_cannot_be_told_without_one(
    tmp_path: Path,
) -> None:
    for name, words, outcome in (
        ("with", ("kafka", "rabbitmq"), pb.FLIP_OUTCOME_FLIP),
        ("without", (), pb.FLIP_OUTCOME_UNKNOWN),
    ):
        async with convergence(words=words) as address, running(tmp_path / name, address) as stub:
            for number, stand in enumerate(("Use Kafka.", "Use RabbitMQ."), start=1):
                request = debate(f"deb-{number}")
                request.debate.concluded_at.seconds += number
                request.stands.add(agent_id="ada", text=stand)
                await stub.RecordDebate(request)
            found = (await stub.ListPositions(pb.ListPositionsRequest())).positions
        assert [[change.outcome for change in each.changes] for each in found] == [[outcome], []]


async def test_a_bad_request_for_positions_names_every_bad_field(memory: MemoryServiceStub) -> None:
    request = pb.ListPositionsRequest(agent_id="a" * 16_385, page_size=-1, page_token="no")
    error = await refused(memory.ListPositions(request))
    assert [each.field for each in error.violations] == ["agent_id", "page_size", "page_token"]


async def rate(memory: MemoryServiceStub, debate_id: str, value: int, number: int = 1) -> bool:
    request = pb.RateDebateRequest(debate_id=debate_id, number=number, value=value)
    return (await memory.RateDebate(request, metadata=ACME)).existed


async def order(memory: MemoryServiceStub) -> list[str]:
    return [each.debate_id for each in await recalled(memory, KAFKA[0], ACME)]


async def test_of_equal_debates_those_come_first_that_a_person_found_good_and_those_last_that_were_not(
    memory: MemoryServiceStub,
) -> None:
    assert not await rate(memory, "deb-3", 1), "it may come before the debate is recorded"
    for debate_id in ("deb-1", "deb-2", "deb-3"):
        await memory.RecordDebate(debate(debate_id), metadata=ACME)
    assert not await rate(memory, "deb-1", -1)
    assert await order(memory) == ["deb-3", "deb-2", "deb-1"]
    assert await rate(memory, "deb-1", -1)
    assert not await rate(memory, "deb-1", 1, number=3)
    assert not await rate(memory, "deb-3", -1, number=2)
    assert await rate(memory, "deb-1", -1, number=2), "later feedback is there"
    assert await order(memory) == ["deb-1", "deb-2", "deb-3"]


async def test_feedback_that_finds_the_debate_of_a_flip_good_settles_it_once_also_after_a_restart(
    tmp_path: Path,
) -> None:
    async with convergence(words=("kafka", "rabbitmq")) as address:
        for restarted in (False, True):
            async with running(tmp_path, address) as memory:
                for day, (debate_id, stand) in enumerate(
                    (("deb-1", "Use Kafka."), ("deb-2", "Use RabbitMQ.")), 4
                ):
                    request = debate(debate_id)
                    request.debate.concluded_at.FromDatetime(datetime(2026, 5, day, tzinfo=UTC))
                    request.stands.add(agent_id="ada", text=stand, for_decision=True)
                    await memory.RecordDebate(request, metadata=ACME)
                assert await rate(memory, "deb-2", 1) == restarted
                flips = await memory.ListPositions(pb.ListPositionsRequest(only_flips=True), metadata=ACME)
                ((settled,),) = ([change.settlement for change in each.changes] for each in flips.positions)
                assert (settled.debate_id, settled.took_later_side, settled.approved) == ("deb-2", True, True)


async def test_feedback_on_a_debate_that_is_forgotten_is_not_kept(tmp_path: Path) -> None:
    async with convergence() as address, running(tmp_path, address) as memory:
        await memory.RecordDebate(debate("deb-1"), metadata=ACME)
        await rate(memory, "deb-1", 1)
        for debate_id in ("deb-1", "deb-2"):
            await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id=debate_id), metadata=ACME)
        await rate(memory, "deb-1", 1, number=2)
        await rate(memory, "deb-2", 1)
        await rate(memory, "deb-3", 1)
    async with open_store(f"sqlite:///{tmp_path / 'store'}", "memory") as store:
        assert [each.key for each in await store.documents.find(APPROVALS, {})] == ["acme/deb-3"]


async def test_every_bad_field_of_feedback_is_named(memory: MemoryServiceStub) -> None:
    error = await refused(memory.RateDebate(pb.RateDebateRequest(debate_id="a/b", value=2)))
    assert [each.field for each in error.violations] == ["debate_id", "number", "value"]
