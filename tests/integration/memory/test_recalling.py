"""Debates that memory records and recalls, over real gRPC."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from parley.convergence.servicer import ConvergenceServicer
from parley.memory.debate import DEBATES
from parley.storage.opening import open_store
from parley.storage.ports import Collection, Document
from parley.storage.sqlite.documents import SqliteDocuments
from parley.v1 import memory_pb2 as pb
from parley.v1.memory_pb2_grpc import MemoryServiceStub
from tests.integration.memory.serving import (
    ACME,
    KAFKA,
    PRICES,
    convergence,
    debate,
    recall,
    run_memory,
    with_a_reversal,
    with_all_that_a_debate_leaves,
)
from tests.support.catching import catch_error
from tests.support.hash_embedder import HashEmbedder


async def test_a_recorded_debate_is_recalled_as_it_was(memory: MemoryServiceStub) -> None:
    request = debate("deb-1", domain="data")
    assert not (await memory.RecordDebate(request)).existed
    (found,) = await recall(memory, "Kafka for orders?")
    assert (found.debate_id, found.question, found.conclusion, found.domain) == ("deb-1", *KAFKA, "data")
    assert found.concluded_at == request.debate.concluded_at
    assert 32 <= found.relevance.similarity_percent <= 100


async def test_a_debate_has_its_question_its_decision_and_each_issue_embedded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = HashEmbedder()
    calls = 0
    embed = ConvergenceServicer.Embed

    async def count(servicer: ConvergenceServicer, requests: Any, context: Any) -> AsyncIterator[Any]:
        nonlocal calls
        calls += 1
        async for each in embed(servicer, requests, context):
            yield each

    monkeypatch.setattr(ConvergenceServicer, "Embed", count)
    async with convergence(embedder) as address, run_memory(tmp_path, address) as stub:
        await stub.RecordDebate(with_all_that_a_debate_leaves(debate("deb-1", KAFKA)))
        embedder.batches.clear()
        calls = 0
        question, conclusion = PRICES
        request = with_all_that_a_debate_leaves(debate("deb-2", PRICES))
        request.issues[0].issue.text = "Who would pay?"
        await recall(stub, question)
        await stub.ListPatterns(pb.ListPatternsRequest(text=question, only_related=True))
        assert calls == 2
        await stub.RecordDebate(request)
    assert calls == 3, "one request for all texts of the record"
    embedded = [text for batch in embedder.batches for text in batch]
    assert sorted(embedded) == sorted([question, f"{question}\n{conclusion}", "Who would pay?"])


async def test_a_debate_is_recalled_with_how_clear_and_how_sure_its_decision_was_and_who_disagreed(
    memory: MemoryServiceStub,
) -> None:
    request = with_all_that_a_debate_leaves(debate("deb-1", domain="data"))
    await memory.RecordDebate(request)
    assert (await memory.RecordDebate(request)).existed
    (found,) = await recall(memory, "Kafka for orders?")
    assert found.HasField("relevance")
    found.ClearField("relevance")
    assert found == request.debate


async def test_all_that_a_debate_left_is_returned_to_its_tenant_alone(memory: MemoryServiceStub) -> None:
    request = with_all_that_a_debate_leaves(debate("deb-1", domain="data"))
    await memory.RecordDebate(request, metadata=ACME)
    asked = pb.GetRecordRequest(debate_id="deb-1")
    found = await memory.GetRecord(asked, metadata=ACME)
    assert pb.RecordDebateRequest(debate=found.debate, stands=found.stands, issues=found.issues) == request
    assert (await catch_error(memory.GetRecord(asked))).reason == "REMEMBERED_DEBATE_NOT_FOUND"
    await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id="deb-1"), metadata=ACME)
    assert (await catch_error(memory.GetRecord(asked, metadata=ACME))).reason == "REMEMBERED_DEBATE_NOT_FOUND"


async def test_a_debate_with_fields_of_a_newer_version_is_the_same_the_second_time(
    memory: MemoryServiceStub,
) -> None:
    newer = with_all_that_a_debate_leaves(debate("deb-1"))
    newer.stands[0].MergeFromString(b"\xfa\x3f\x01x")
    assert not (await memory.RecordDebate(newer)).existed
    assert (await memory.RecordDebate(newer)).existed


async def test_another_stand_is_other_content(memory: MemoryServiceStub) -> None:
    request = with_all_that_a_debate_leaves(debate("deb-1"))
    await memory.RecordDebate(request)
    request.stands[0].for_decision = False
    error = await catch_error(memory.RecordDebate(request))
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
    error = await catch_error(memory.RecordDebate(request))
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
    error = await catch_error(memory.RecordDebate(request))
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
    found = await recall(memory, "Kafka or RabbitMQ for orders?")
    assert "debates" not in read, "they are read together"
    assert [each.debate_id for each in found] == ["deb-same", "deb-near"]
    assert found[0].relevance.similarity_percent > found[1].relevance.similarity_percent
    assert await recall(memory, "Which trees grow well on sand?") == []
    assert [each.debate_id for each in await recall(memory, "Kafka orders", limit=1)] == ["deb-same"]
    assert len(await recall(memory, "Kafka or RabbitMQ for orders?", excluded_debate_ids=["deb-same"])) == 1
    assert await recall(memory, "Kafka or RabbitMQ for orders?", floor_percent=100) == []


async def test_a_debate_is_remembered_once(memory: MemoryServiceStub) -> None:
    await memory.RecordDebate(debate("deb-1"))
    assert (await memory.RecordDebate(debate("deb-1"))).existed
    assert len(await recall(memory, "Kafka for orders?")) == 1
    error = await catch_error(memory.RecordDebate(debate("deb-1", PRICES)))
    assert (error.code, error.reason) == (grpc.StatusCode.ALREADY_EXISTS, "DEBATE_REUSED")


async def test_a_tenant_and_a_domain_see_only_their_own(memory: MemoryServiceStub) -> None:
    await memory.RecordDebate(debate("deb-1", domain="data"))
    await memory.RecordDebate(debate("deb-1", domain="ops"), metadata=ACME)
    assert [each.domain for each in await recall(memory, "Kafka for orders?")] == ["data"]
    assert [each.domain for each in await recall(memory, "Kafka for orders?", ACME)] == ["ops"]
    assert await recall(memory, "Kafka for orders?", domain="ops") == []
    assert len(await recall(memory, "Kafka for orders?", domain="data")) == 1


async def test_without_convergence_it_says_so_and_does_its_work_when_it_is_back(tmp_path: Path) -> None:
    async with convergence() as address, run_memory(tmp_path, address) as stub:
        await stub.RecordDebate(debate("deb-1", PRICES))
    async with run_memory(tmp_path, "127.0.0.1:9") as stub:
        for call in (stub.RecordDebate(debate("deb-2")), recall(stub, "Kafka?")):
            error = await catch_error(call)
            assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "CONVERGENCE_UNAVAILABLE")
    async with convergence() as address, run_memory(tmp_path, address) as stub:
        assert not (await stub.RecordDebate(debate("deb-2"))).existed
        assert len(await recall(stub, "Kafka for orders?")) == 1


async def test_a_memory_that_holds_nothing_of_the_tenant_asks_no_model(tmp_path: Path) -> None:
    async with run_memory(tmp_path, "127.0.0.1:9") as stub:
        assert await recall(stub, "Kafka?") == []
        found = await stub.ListPatterns(pb.ListPatternsRequest(text="Kafka?"))
        assert list(found.patterns) == []


async def test_texts_of_the_largest_size_are_remembered(memory: MemoryServiceStub) -> None:
    long = "orders and more orders " * 11_000
    await memory.RecordDebate(debate("deb-1", (long, long)))
    (found,) = await recall(memory, "orders and more orders")
    assert found.question == long


async def test_every_bad_field_is_listed_at_once(memory: MemoryServiceStub) -> None:
    error = await catch_error(
        memory.RecordDebate(pb.RecordDebateRequest(debate=pb.PastDebate(debate_id="a/b", question=" ")))
    )
    assert [each.field for each in error.violations] == [
        "debate.debate_id",
        "debate.question",
        "debate.conclusion",
        "debate.concluded_at",
    ]
    error = await catch_error(recall(memory, "", limit=101, floor_percent=-1, domain="x" * 65))
    assert [each.field for each in error.violations] == ["text", "limit", "floor_percent", "domain"]


@pytest.mark.parametrize(("seconds", "nanos"), [(2**62, 0), (-(2**63), 0), (0, -1)])
async def test_a_time_that_is_none_is_refused(memory: MemoryServiceStub, seconds: int, nanos: int) -> None:
    request = debate("deb-odd")
    request.debate.concluded_at.CopyFrom(Timestamp(seconds=seconds, nanos=nanos))
    refused = await catch_error(memory.RecordDebate(request))
    assert [each.field for each in refused.violations] == ["debate.concluded_at"]


async def test_a_debate_is_recalled_whose_stands_and_issues_cannot_be_read(tmp_path: Path) -> None:
    async with convergence() as address, run_memory(tmp_path, address) as stub:
        await stub.RecordDebate(debate("deb-1"))
        async with open_store(f"sqlite:///{tmp_path / 'store'}", "memory") as store:
            document = await store.documents.get(DEBATES, "default/deb-1")
            assert document is not None
            record = {
                **cast("dict[str, Any]", document.fields["record"]),
                "issues": [{"of": "a newer version"}],
            }
            assert await store.documents.update(DEBATES, "default/deb-1", {"record": record}, {})
        assert [each.debate_id for each in await recall(stub, "Kafka for orders?")] == ["deb-1"]


async def test_a_bad_earlier_decision_is_refused(memory: MemoryServiceStub) -> None:
    request = with_a_reversal(debate("deb-1"))
    request.debate.related[0].reason = "NUL\0"
    request.debate.related[0].decided_at.seconds = 10**12
    error = await catch_error(memory.RecordDebate(request))
    fields = ["debate.related[0].reason", "debate.related[0].decided_at"]
    assert [each.field for each in error.violations] == fields
