"""Deleting debates: unreadable at once, gone from everywhere, also where it breaks off in between."""

import asyncio
from collections.abc import Awaitable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from parley.orchestrator.delivery.deliveries import DELIVERIES
from parley.orchestrator.engine.inbox import INBOX, Inbox
from parley.orchestrator.log.deletions import DELETIONS, Deletion, DeletionStore
from parley.orchestrator.log.feedback import FEEDBACK
from parley.orchestrator.log.imported_receipts import IMPORTED_RECEIPTS
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.runtime.channel import channel
from parley.runtime.server import RunningServer
from parley.storage.opening import open_store
from parley.storage.ports import StorageError, StoreDamagedError, StoreUnavailableError
from parley.v1 import debate_pb2, ratings_pb2, ratings_pb2_grpc
from parley.v1 import orchestrator_pb2 as pb
from parley.v1.debate_pb2 import Participant
from tests.integration.orchestrator.deleting import WITHIN, delete_debate, deletions, hold_to_rest
from tests.support.orchestration import Orchestrator, failure_of, orchestrating
from tests.support.real_services import free_address, ratings_at
from tests.support.scripted_gateway import ScriptedGateway

ALL = (DEBATES, INBOX, FEEDBACK, DELETIONS, DELIVERIES, IMPORTED_RECEIPTS)


async def try_every_call(orchestrator: Orchestrator, debate: str) -> list[str]:
    """What each way to read or change a debate is answered."""
    stub = orchestrator.stub

    async def log() -> None:
        async for _ in stub.ReadLog(pb.ReadLogRequest(debate_id=debate), timeout=WITHIN):
            pass

    word = pb.SubmitFeedbackRequest(request_id="late", debate_id=debate, value=1)
    calls: list[Awaitable[Any]] = [
        stub.GetDebate(pb.GetDebateRequest(debate_id=debate), timeout=WITHIN),
        stub.GetReport(pb.GetReportRequest(debate_id=debate), timeout=WITHIN),
        stub.GetDecision(pb.GetDecisionRequest(debate_id=debate), timeout=WITHIN),
        stub.SubmitFeedback(word, timeout=WITHIN),
        stub.DeleteDebate(pb.DeleteDebateRequest(debate_id=debate), timeout=WITHIN),
        orchestrator.intervene(debate, cancel=debate_pb2.Cancel()),
        orchestrator.watch(debate),
        log(),
    ]
    return [(await failure_of(call)).reason for call in calls]


async def list_kept_keys(folder: Path) -> list[str]:
    """Keys of what the store holds."""
    async with open_store(f"sqlite:///{folder}", "orchestrator") as store:
        await store.documents.prepare(*ALL)
        return [each.key for part in ALL for each in await store.documents.find(part, {}, limit=1000)]


async def test_a_deleted_debate_is_gone_from_everywhere(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer
) -> None:
    async with orchestrating(tmp_path, gateway_server) as orchestrator:
        kept, debate = await hold_to_rest(gateway, orchestrator), await hold_to_rest(gateway, orchestrator)
        assert await delete_debate(orchestrator, debate)
        assert set(await try_every_call(orchestrator, debate)) == {"DEBATE_NOT_FOUND"}
        listed = await orchestrator.stub.ListDebates(pb.ListDebatesRequest(), timeout=WITHIN)
        assert [each.id for each in listed.debates] == [kept]
        assert gateway.forgotten == [debate]
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        assert not await store.log.read(f"default/{debate}")
        assert await store.log.read(f"default/{kept}")
    assert not [key for key in await list_kept_keys(tmp_path) if debate in key]


async def test_its_request_makes_a_new_debate(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer
) -> None:
    async with orchestrating(tmp_path, gateway_server) as orchestrator:
        debate = await hold_to_rest(gateway, orchestrator, request_id="mine")
        assert await orchestrator.create(request_id="mine") == debate
        await delete_debate(orchestrator, debate)
        assert await orchestrator.create(request_id="mine") != debate


async def test_a_debate_that_runs_is_not_deleted_before_it_is_cancelled(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer
) -> None:
    hold = gateway.hold("*")
    async with orchestrating(tmp_path, gateway_server) as orchestrator:
        debate = await orchestrator.create()
        refused = await failure_of(
            orchestrator.stub.DeleteDebate(pb.DeleteDebateRequest(debate_id=debate), timeout=WITHIN)
        )
        assert (refused.reason, "cancel it first" in refused.message) == ("DEBATE_RUNNING", True)
        assert (await orchestrator.get(debate)).id == debate
        await orchestrator.intervene(debate, cancel=debate_pb2.Cancel())
        hold.release()
        assert await delete_debate(orchestrator, debate)


async def test_a_watcher_of_a_paused_debate_hears_that_it_was_deleted(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer
) -> None:
    gateway.hold("*")
    async with orchestrating(tmp_path, gateway_server, heartbeat_seconds=0.2) as orchestrator:
        debate = await orchestrator.create()
        await orchestrator.intervene(debate, pause=debate_pb2.Pause(stop_calls=True))
        await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_PAUSED)
        watching = asyncio.create_task(failure_of(orchestrator.watch(debate)))
        assert await delete_debate(orchestrator, debate)
        assert (await watching).reason == "DEBATE_NOT_FOUND"


async def test_ratings_forget_a_deleted_debate_only_where_that_is_asked(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer
) -> None:
    address = free_address()

    async def matches() -> list[bool]:
        async with channel(address) as opened:
            stub = ratings_pb2_grpc.RatingsServiceStub(opened)
            listed = await stub.ListRatings(ratings_pb2.ListRatingsRequest(), timeout=WITHIN)
        return [bool(each.matches) for each in listed.ratings if each.matches]

    async with (
        ratings_at(address, tmp_path),
        orchestrating(tmp_path / "debates", gateway_server, ratings=address) as orchestrator,
    ):
        first, second = await hold_to_rest(gateway, orchestrator), await hold_to_rest(gateway, orchestrator)
        assert await delete_debate(orchestrator, first, ratings=True)
        assert await matches()
        assert await delete_debate(orchestrator, second)
        assert await matches()


@pytest.mark.parametrize("before", [True, False], ids=["not-written", "written"])
async def test_a_deletion_that_breaks_off_anywhere_is_finished_or_never_was(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer, *, before: bool
) -> None:
    async with orchestrating(tmp_path, gateway_server) as orchestrator:
        debates = [
            await hold_to_rest(gateway, orchestrator, agents=[Participant(agent_id="ada")]) for _ in range(10)
        ]
    finished = 0
    async with (
        open_store(f"sqlite:///{tmp_path}", "orchestrator") as store,
        channel(gateway_server.address) as peers,
    ):
        await store.documents.prepare(*ALL)
        index = DebateIndex(store.documents)
        for at, debate in enumerate(debates, start=1):
            try:
                finished += await deletions(store, peers, at=at, before=before).delete(
                    "default", debate, ratings=False
                )
                assert await index.get("default", debate) is None, "it was promised, so that nobody finds it"
                gone = True
            except StoreUnavailableError:
                gone = False
            await deletions(store, peers).finish_all()
            assert (await index.get("default", debate) is None) >= gone
            if await index.get("default", debate) is None:
                assert not await store.log.read(f"default/{debate}")
                assert not await Inbox(store.documents).list_waiting_for(f"default/{debate}")
            else:
                assert await store.log.read(f"default/{debate}"), "it is whole"
        assert not await store.documents.find(DELETIONS, {})
    assert finished, "the last ones were not stopped anywhere"


class Damaged:
    """A log of which one cannot be deleted."""

    def __init__(self, log: Any, damaged: str, error: StorageError) -> None:
        self._log, self._damaged, self._error = log, damaged, error

    async def delete(self, log: str) -> None:
        if log == self._damaged:
            raise self._error
        await self._log.delete(log)


@pytest.mark.parametrize(
    ("error", "goes_on"), [(StoreDamagedError("changed"), True), (StoreUnavailableError("away"), False)]
)
async def test_a_deletion_that_damaged_data_holds_up_holds_up_no_other(
    tmp_path: Path, gateway_server: RunningServer, error: StorageError, *, goes_on: bool
) -> None:
    async with (
        open_store(f"sqlite:///{tmp_path}", "orchestrator") as store,
        channel(gateway_server.address) as peers,
    ):
        await store.documents.prepare(*ALL)
        notes = DeletionStore(store.documents)
        for debate in ("deb-1", "deb-2"):
            await notes.put(Deletion("default", debate, ratings=False))
        log: Any = Damaged(store.log, "default/deb-1", error)
        deleter = replace(deletions(store, peers), log=log)
        with nullcontext() if goes_on else pytest.raises(StoreUnavailableError):
            await deleter.finish_all()
        left_over = [each.debate for each in await notes.list_all()]
    assert left_over == (["deb-1"] if goes_on else ["deb-1", "deb-2"])


async def test_memory_that_is_away_forgets_when_it_is_back(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer
) -> None:
    async with orchestrating(tmp_path, gateway_server, memory=free_address()) as orchestrator:
        debate = await orchestrator.create()
        await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_COMPLETED)
        refused = await failure_of(
            orchestrator.stub.DeleteDebate(pb.DeleteDebateRequest(debate_id=debate), timeout=WITHIN)
        )
        assert "is still being sent to memory and ratings" in refused.message
        gateway.hold("*")
        running = await orchestrator.create()
        await orchestrator.intervene(running, cancel=debate_pb2.Cancel())
        assert not await delete_debate(orchestrator, running), "memory was not there"
        assert set(await try_every_call(orchestrator, running)) == {"DEBATE_NOT_FOUND"}
    async with (
        open_store(f"sqlite:///{tmp_path}", "orchestrator") as store,
        channel(gateway_server.address) as peers,
    ):
        await deletions(store, peers).finish_all()
        assert not await store.documents.find(DELETIONS, {})
    assert gateway.forgotten == [running]
