"""Debates that memory is to forget."""

from pathlib import Path

from parley.memory.debate import DEBATES
from parley.storage.opening import open_store
from parley.v1 import memory_pb2 as pb
from parley.v1.memory_pb2_grpc import MemoryServiceStub
from tests.integration.memory.serving import ACME, KAFKA, PRICES, convergence, debate, recall, run_memory


async def test_a_debate_that_is_forgotten_is_recalled_no_more_by_its_tenant_alone(
    memory: MemoryServiceStub,
) -> None:
    for tenant in (ACME, ()):
        await memory.RecordDebate(debate("deb-1"), metadata=tenant)
        await memory.RecordDebate(debate("deb-2", PRICES), metadata=tenant)
    forgotten = await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id="deb-1"), metadata=ACME)
    again = await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id="deb-1"), metadata=ACME)
    assert (forgotten.existed, again.existed) == (True, False)
    assert [each.debate_id for each in await recall(memory, KAFKA[0], ACME)] != ["deb-1"]
    assert "deb-1" in [each.debate_id for each in await recall(memory, KAFKA[0])]


async def test_a_debate_is_forgotten_with_its_vector(tmp_path: Path) -> None:
    async with convergence() as address, run_memory(tmp_path, address) as memory:
        await memory.RecordDebate(debate("deb-1"))
        await memory.RecordDebate(debate("deb-2"))
        await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id="deb-1"))
        found = await recall(memory, KAFKA[0], limit=1)
        assert [each.debate_id for each in found] == ["deb-2"]
    async with open_store(f"sqlite:///{tmp_path / 'store'}", "memory") as store:
        assert await store.documents.get(DEBATES, "default/deb-1") is None


async def test_a_debate_that_is_forgotten_before_it_is_recorded_is_not_remembered(
    memory: MemoryServiceStub,
) -> None:
    forgotten = await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id="deb-1"), metadata=ACME)
    recorded = await memory.RecordDebate(debate("deb-1"), metadata=ACME)
    assert (forgotten.existed, recorded.existed) == (False, False)
    assert await recall(memory, "Kafka for orders?", ACME) == []
    await memory.RecordDebate(debate("deb-1"))
    assert len(await recall(memory, "Kafka for orders?")) == 1, "another tenant's is another one"
