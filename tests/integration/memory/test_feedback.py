"""Feedback of people on debates that memory keeps."""

from datetime import UTC, datetime
from pathlib import Path

from parley.memory.approvals import APPROVALS
from parley.storage.opening import open_store
from parley.v1 import memory_pb2 as pb
from parley.v1.memory_pb2_grpc import MemoryServiceStub
from tests.integration.memory.serving import ACME, KAFKA, convergence, debate, recall, run_memory
from tests.support.catching import catch_error


async def rate(memory: MemoryServiceStub, debate_id: str, value: int, number: int = 1) -> bool:
    request = pb.RateDebateRequest(debate_id=debate_id, number=number, value=value)
    return (await memory.RateDebate(request, metadata=ACME)).existed


async def order(memory: MemoryServiceStub) -> list[str]:
    return [each.debate_id for each in await recall(memory, KAFKA[0], ACME)]


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
            async with run_memory(tmp_path, address) as memory:
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
    async with convergence() as address, run_memory(tmp_path, address) as memory:
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
    error = await catch_error(memory.RateDebate(pb.RateDebateRequest(debate_id="a/b", value=2)))
    assert [each.field for each in error.violations] == ["debate_id", "number", "value"]
