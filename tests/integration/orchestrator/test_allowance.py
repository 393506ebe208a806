"""Limits of a tenant: typed refusals that say when to come back, and no other tenant feels them."""

from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.runtime.byte_budget import ByteBudget, Share
from parley.runtime.errors import ParleyError
from parley.runtime.server import RunningServer
from parley.v1 import debate_pb2
from parley.v1 import orchestrator_pb2 as pb
from tests.support.orchestration import Orchestrator, failure_of, orchestrating, until
from tests.support.scripted_gateway import ScriptedGateway

WITHIN = 10.0


def create(orchestrator: Orchestrator, tenant: str, request_id: str) -> Any:
    request = pb.CreateDebateRequest(request_id=request_id, spec=debate_pb2.DebateSpec(question="Why?"))
    request.spec.panel.rounds = 1
    return orchestrator.stub.CreateDebate(request, metadata=(("parley-tenant", tenant),), timeout=WITHIN)


def list_debates(orchestrator: Orchestrator, tenant: str) -> Any:
    return orchestrator.stub.ListDebates(
        pb.ListDebatesRequest(), metadata=(("parley-tenant", tenant),), timeout=WITHIN
    )


def check(refused: ParleyError, reason: str, tenant: str = "acme") -> None:
    assert (refused.code, refused.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, reason)
    assert refused.retry_after is not None
    assert refused.retry_after > 0
    assert f"tenant {tenant}" in refused.message


async def test_debates_are_counted_and_the_same_request_is_still_answered(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer
) -> None:
    gateway.hold("*")
    async with orchestrating(tmp_path, gateway_server, tenant_debates=2, max_debates=1) as orchestrator:
        first = await create(orchestrator, "acme", "one")
        await create(orchestrator, "acme", "two")
        check(await failure_of(create(orchestrator, "acme", "three")), "TENANT_DEBATES")
        assert (await create(orchestrator, "acme", "one")).debate_id == first.debate_id
        await create(orchestrator, "beta", "one")


async def test_replicas_count_together_and_a_debate_that_ended_makes_room(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer
) -> None:
    hold = gateway.hold("*")
    async with (
        orchestrating(tmp_path, gateway_server, tenant_debates=1) as one,
        orchestrating(tmp_path, gateway_server, tenant_debates=1) as other,
    ):
        await create(one, "acme", "one")
        check(await failure_of(create(other, "acme", "two")), "TENANT_DEBATES")
        hold.release()

        async def is_accepted() -> bool:
            try:
                await create(other, "acme", "two")
            except grpc.aio.AioRpcError:
                return False
            return True

        await until(is_accepted, "room for one")


async def test_calls_of_a_minute_are_counted_for_each_tenant(
    tmp_path: Path, gateway_server: RunningServer
) -> None:
    async with orchestrating(tmp_path, gateway_server, tenant_requests=4) as orchestrator:
        refusals = 0
        for _ in range(10):  # a minute may end meanwhile, once: the next one has room for 4 more
            try:
                await list_debates(orchestrator, "acme")
            except grpc.aio.AioRpcError:
                refusals += 1
        assert 2 <= refusals <= 6
        await list_debates(orchestrator, "beta")


async def test_streams_are_counted_while_they_are_open(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer
) -> None:
    gateway.hold("*")
    async with orchestrating(tmp_path, gateway_server, tenant_watches=2) as orchestrator:
        debate = await orchestrator.create()
        request = pb.WatchDebateRequest(debate_id=debate)
        open_ = [orchestrator.stub.WatchDebate(request, timeout=WITHIN) for _ in range(2)]
        for each in open_:
            await each.read()
        check(await failure_of(orchestrator.watch(debate)), "TENANT_WATCHES", "default")
        open_[0].cancel()

        async def has_room() -> bool:
            watching = orchestrator.stub.WatchDebate(request, timeout=WITHIN)
            try:
                return bool(await watching.read())
            except grpc.aio.AioRpcError:
                return False
            finally:
                watching.cancel()

        await until(has_room, "a stream that was closed makes room")


@pytest.mark.parametrize(
    ("limit", "reason"), [("tenant_tokens", "TENANT_TOKENS"), ("tenant_bytes", "TENANT_BYTES")]
)
async def test_what_debates_took_hinders_new_ones_and_the_day_of_another_tenant_not(
    tmp_path: Path, gateway_server: RunningServer, limit: str, reason: str
) -> None:
    settings: dict[str, Any] = {limit: 1}
    async with orchestrating(tmp_path, gateway_server, **settings) as orchestrator:
        debate = await orchestrator.create()
        await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_COMPLETED)
        check(await failure_of(create(orchestrator, "default", "two")), reason, "default")
        await create(orchestrator, "beta", "one")
    async with orchestrating(tmp_path, gateway_server, **settings) as restarted:
        check(await failure_of(create(restarted, "default", "three")), reason, "default")


async def test_room_that_is_freed_counts(tmp_path: Path, gateway_server: RunningServer) -> None:
    async with orchestrating(tmp_path, gateway_server, tenant_bytes=1) as orchestrator:
        debate = await orchestrator.create()
        await orchestrator.watch(debate)
        check(await failure_of(create(orchestrator, "default", "two")), "TENANT_BYTES", "default")

        async def is_deleted() -> bool:
            try:
                await orchestrator.stub.DeleteDebate(pb.DeleteDebateRequest(debate_id=debate), timeout=WITHIN)
            except grpc.aio.AioRpcError:
                return False
            return True

        await until(is_deleted, "deleted once it rests")
        await create(orchestrator, "default", "two")


async def test_large_requests_are_admitted_by_their_bytes(
    tmp_path: Path, gateway_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    take = ByteBudget.take

    async def note_size(self: ByteBudget, size: int) -> Share:
        if self.limit == 1_000_000:  # others bound what is sent
            taken.append(size)
        return await take(self, size)

    monkeypatch.setattr(ByteBudget, "take", note_size)
    async with orchestrating(tmp_path, gateway_server, request_bytes=1_000_000) as orchestrator:
        await orchestrator.create(context=[debate_pb2.ContextDocument(path="a.md", text="x" * 400_000)])
        await orchestrator.create()
    large, small = taken
    assert 400_000 < large < 410_000
    assert small == 0, "it waits for no other"
