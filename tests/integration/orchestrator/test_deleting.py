"""Deleting debates over real gRPC: unreadable at once, gone from everywhere, also where it breaks off in between."""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.orchestrator.delivery.deliveries import DELIVERIES, DeliveryStore
from parley.orchestrator.engine.debate_deleter import DebateDeleter
from parley.orchestrator.engine.inbox import INBOX, Inbox
from parley.orchestrator.log.debate_record import COMPLETED
from parley.orchestrator.log.deletions import DELETIONS, Deletion, DeletionStore
from parley.orchestrator.log.feedback import FEEDBACK, FeedbackStore
from parley.orchestrator.log.imported_receipts import IMPORTED_RECEIPTS, ImportedReceiptStore
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.orchestrator.model.retention import Retention
from parley.orchestrator.peers.services import Convergence, Memory, Ratings, Services
from parley.runtime.channel import channel
from parley.runtime.server import RunningServer
from parley.runtime.tasks import background_task
from parley.storage.opening import Store, open_store
from parley.storage.ports import StorageError, StoreDamagedError, StoreUnavailableError
from parley.v1 import debate_pb2, ratings_pb2, ratings_pb2_grpc
from parley.v1 import orchestrator_pb2 as pb
from parley.v1.debate_pb2 import ContextDocument
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import (
    TENANT,
    Backstage,
    Orchestrator,
    StoppingLog,
    backstage,
    failure_of,
    make_debate,
    orchestrating,
    until,
)
from tests.support.real_services import free_address, ratings_at
from tests.support.scripted_gateway import ScriptedGateway

WITHIN = 10.0
ALL = (DEBATES, INBOX, FEEDBACK, DELETIONS, DELIVERIES, IMPORTED_RECEIPTS)


async def rested(orchestrator: Orchestrator, **spec: Any) -> str:
    """A debate that is completed, with an intervention and a word of feedback, and closed."""
    debate = await orchestrator.create(**spec)
    await orchestrator.intervene(debate, guide=debate_pb2.Guide(text="Be brief."))
    await orchestrator.watch(debate)
    await orchestrator.stub.SubmitFeedback(
        pb.SubmitFeedbackRequest(request_id=f"word-{debate}", debate_id=debate, value=1), timeout=WITHIN
    )
    return debate


async def deleted(orchestrator: Orchestrator, debate: str, *, ratings: bool = False) -> bool:
    """Delete a debate as soon as it rests: it is closed a moment before its record says so."""
    request = pb.DeleteDebateRequest(debate_id=debate, ratings=ratings)
    answers: list[pb.DeleteDebateResponse] = []

    async def accepted() -> bool:
        with suppress(grpc.aio.AioRpcError):
            answers.append(await orchestrator.stub.DeleteDebate(request, timeout=WITHIN))
        return bool(answers)

    await until(accepted, "deleted")
    return answers[0].finished


async def every_reading(orchestrator: Orchestrator, debate: str) -> list[str]:
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


async def left(folder: Path) -> list[str]:
    """Keys of what the store holds."""
    async with open_store(f"sqlite:///{folder}", "orchestrator") as store:
        await store.documents.prepare(*ALL)
        return [each.key for part in ALL for each in await store.documents.find(part, {}, limit=1000)]


async def test_a_deleted_debate_is_gone_from_everywhere(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer
) -> None:
    async with orchestrating(tmp_path, gateway_server) as orchestrator:
        kept, debate = await rested(orchestrator), await rested(orchestrator)
        assert await deleted(orchestrator, debate)
        assert set(await every_reading(orchestrator, debate)) == {"DEBATE_NOT_FOUND"}
        listed = await orchestrator.stub.ListDebates(pb.ListDebatesRequest(), timeout=WITHIN)
        assert [each.id for each in listed.debates] == [kept]
        assert gateway.forgotten == [debate]
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        assert not await store.log.read(f"default/{debate}")
        assert await store.log.read(f"default/{kept}")
    assert not [key for key in await left(tmp_path) if debate in key]


async def test_its_request_makes_a_new_debate(tmp_path: Path, gateway_server: RunningServer) -> None:
    async with orchestrating(tmp_path, gateway_server) as orchestrator:
        debate = await rested(orchestrator, request_id="mine")
        assert await orchestrator.create(request_id="mine") == debate
        await deleted(orchestrator, debate)
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
        assert await deleted(orchestrator, debate)


async def test_a_watcher_of_a_paused_debate_hears_that_it_was_deleted(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer
) -> None:
    gateway.hold("*")
    async with orchestrating(tmp_path, gateway_server, heartbeat_seconds=0.2) as orchestrator:
        debate = await orchestrator.create()
        await orchestrator.intervene(debate, pause=debate_pb2.Pause(stop_calls=True))
        await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_PAUSED)
        watching = asyncio.create_task(failure_of(orchestrator.watch(debate)))
        assert await deleted(orchestrator, debate)
        assert (await watching).reason == "DEBATE_NOT_FOUND"


async def test_ratings_forget_a_deleted_debate_only_where_that_is_asked(
    tmp_path: Path, gateway_server: RunningServer
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
        first, second = await rested(orchestrator), await rested(orchestrator)
        assert await deleted(orchestrator, first, ratings=True)
        assert await matches()
        assert await deleted(orchestrator, second)
        assert await matches()


class Failing:
    """A store's part whose nth write fails, once."""

    def __init__(self, part: Any, at: list[int], *, before: bool) -> None:
        self._part, self._at, self._before = part, at, before

    def __getattr__(self, name: str) -> Any:
        if name not in {"insert", "update", "delete"}:
            return getattr(self._part, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            self._at[0] -= 1
            if self._before and self._at[0] == 0:
                raise StoreUnavailableError("away")
            done = await getattr(self._part, name)(*arguments, **named)
            if self._at[0] == 0:
                raise StoreUnavailableError("away")
            return done

        return call


def deletions(
    store: Store,
    memory: Any,
    *,
    at: int = 0,
    before: bool = False,
    clock: ManualClock | None = None,
    retention: Retention | None = None,
) -> DebateDeleter:
    count = [at]
    log: Any = Failing(store.log, count, before=before)
    documents: Any = Failing(store.documents, count, before=before)
    services = Services(Convergence(memory), Ratings(memory), Memory(memory))
    return DebateDeleter(
        log,
        DebateIndex(documents),
        Inbox(documents),
        FeedbackStore(documents),
        DeliveryStore(documents),
        ImportedReceiptStore(documents),
        DeletionStore(documents),
        services,
        clock or ManualClock(),
        retention or Retention(),
    )


@pytest.mark.parametrize("before", [True, False], ids=["not-written", "written"])
async def test_a_deletion_that_breaks_off_anywhere_is_finished_or_never_was(
    tmp_path: Path, gateway_server: RunningServer, *, before: bool
) -> None:
    async with orchestrating(tmp_path, gateway_server) as orchestrator:
        debates = [await rested(orchestrator) for _ in range(10)]
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
        running = await orchestrator.create(rounds=2)
        await orchestrator.intervene(running, cancel=debate_pb2.Cancel())
        assert not await deleted(orchestrator, running), "memory was not there"
        assert set(await every_reading(orchestrator, running)) == {"DEBATE_NOT_FOUND"}
    async with (
        open_store(f"sqlite:///{tmp_path}", "orchestrator") as store,
        channel(gateway_server.address) as peers,
    ):
        await deletions(store, peers).finish_all()
        assert not await store.documents.find(DELETIONS, {})
    assert gateway.forgotten == [running]


async def test_what_has_rested_too_long_is_deleted_by_the_days_of_its_tenant(
    tmp_path: Path, gateway_server: RunningServer
) -> None:
    async with orchestrating(tmp_path, gateway_server) as orchestrator:
        made = {}
        for tenant in ("acme", "beta", "gamma"):
            request = pb.CreateDebateRequest(request_id=tenant, spec=debate_pb2.DebateSpec(question="Why?"))
            request.spec.panel.rounds = 1
            metadata = (("parley-tenant", tenant),)
            created = await orchestrator.stub.CreateDebate(request, metadata=metadata, timeout=WITHIN)
            made[tenant] = created.debate_id
            watching = orchestrator.stub.WatchDebate(
                pb.WatchDebateRequest(debate_id=created.debate_id), metadata=metadata, timeout=WITHIN
            )
            async for _ in watching:
                pass
        async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
            index = DebateIndex(store.documents)

            async def rests() -> bool:
                records = [await index.get(tenant, debate) for tenant, debate in made.items()]
                return not any(each is None or each.open for each in records)

            await until(rests, "closed debates rest a moment later")
    clock = ManualClock(datetime.now(UTC) + timedelta(days=10))
    async with (
        open_store(f"sqlite:///{tmp_path}", "orchestrator") as store,
        channel(gateway_server.address) as peers,
    ):
        index = DebateIndex(store.documents)

        async def there(retention: Retention) -> Sequence[str]:
            await deletions(store, peers, clock=clock, retention=retention).delete_old()
            return [tenant for tenant, debate in made.items() if await index.get(tenant, debate)]

        assert await there(Retention()) == ["acme", "beta", "gamma"]
        assert await there(Retention(11)) == ["acme", "beta", "gamma"]
        assert await there(Retention(9, {"beta": 0, "gamma": 30})) == ["beta", "gamma"]
        assert await there(Retention(0, {"gamma": 9.5})) == ["beta"]
        run = deletions(store, peers, clock=clock, retention=Retention(300)).run()
        async with background_task("deleting", run):
            await clock.sleeping()
            clock.jump(timedelta(days=300))
            clock.advance(3600)
            await clock.sleeping()
            assert await index.get("beta", made["beta"]), "the time may soon be mended"
            clock.advance(3600)
            await clock.sleeping()
            assert not await index.get("beta", made["beta"])


async def test_interventions_that_were_decided_long_ago_are_forgotten(
    tmp_path: Path, gateway_server: RunningServer
) -> None:
    async with orchestrating(tmp_path, gateway_server) as orchestrator:
        await rested(orchestrator)
    for days, kept in ((29, True), (31, False)):
        clock = ManualClock(datetime.now(UTC) + timedelta(days=days))
        async with (
            open_store(f"sqlite:///{tmp_path}", "orchestrator") as store,
            channel(gateway_server.address) as peers,
        ):
            await deletions(store, peers, clock=clock).delete_old()
            assert bool(await store.documents.find(INBOX, {})) is kept


LARGE = make_debate(context=(ContextDocument(path="a.json", text="x" * 1024 * 1024),))
"""A debate whose log is written before its record."""


async def begun(stage: Backstage) -> list[str]:
    """The debates of which only the log may be there."""
    notes = await stage.store.documents.find(DELETIONS, {})
    return [str(note.fields["debate"]) for note in notes]


async def after(stage: Backstage, since: timedelta) -> None:
    """Look for debates that never came to be, some time later."""
    clock = ManualClock(datetime.now(UTC) + since)
    await deletions(stage.store, stage.channel, clock=clock).delete_abandoned()


@pytest.mark.parametrize("durable", [False, True], ids=["before", "after"])
async def test_a_log_that_a_crash_left_without_its_debate_is_deleted_an_hour_later(
    tmp_path: Path, *, durable: bool
) -> None:
    async with backstage(tmp_path) as stage:
        await stage.store.documents.prepare(FEEDBACK, DELIVERIES, IMPORTED_RECEIPTS)
        log = StoppingLog(stage.store.log, 1, durable=durable)
        taken_in = asyncio.create_task(stage.replica(log=log).create(LARGE))
        await log.stopped.wait()
        taken_in.cancel()
        await asyncio.gather(taken_in, return_exceptions=True)
        (debate,) = await begun(stage)
        await after(stage, timedelta(minutes=50))
        assert bool(await stage.kinds(debate)) == durable, "whoever takes it in may be slow"
        await after(stage, timedelta(minutes=70))
        assert not await stage.kinds(debate)
        assert not await begun(stage)


async def test_a_log_that_is_written_again_is_not_taken_for_one_without_a_debate(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    long_ago, an_hour_ago = (
        (now - timedelta(minutes=each)).isoformat(timespec="microseconds") for each in (70, 60)
    )
    async with backstage(tmp_path) as stage:
        notes = DeletionStore(stage.store.documents)
        await notes.record_log_start(TENANT, "one", long_ago)
        (found,) = await notes.list_started(an_hour_ago)
        assert await notes.renew_log_start(TENANT, "one", now.isoformat(timespec="microseconds"))
        assert not await notes.start_deletion(found, an_hour_ago), "found before it was renewed"
        await after(stage, timedelta())
        assert await begun(stage) == ["one"]
        assert not await notes.is_deleting(TENANT, "one")


async def test_a_log_without_a_debate_is_not_written_again_while_it_is_deleted(tmp_path: Path) -> None:
    async with backstage(tmp_path) as stage:
        notes = DeletionStore(stage.store.documents)
        await notes.record_log_start(TENANT, "one", "2026-01-01T00:00:00.000000")
        (found,) = await notes.list_started("2026-01-01T00:00:01.000000")
        assert await notes.start_deletion(found, "2026-01-01T00:00:01.000000")
        assert not await notes.renew_log_start(TENANT, "one", "2026-01-02T00:00:00.000000")
        assert await notes.is_deleting(TENANT, "one")


async def test_a_debate_that_came_to_be_is_kept_whatever_is_noted_of_it(tmp_path: Path) -> None:
    async with backstage(tmp_path) as stage, stage.replica() as replica:
        await stage.store.documents.prepare(FEEDBACK, DELIVERIES, IMPORTED_RECEIPTS)
        debate = await replica.create(LARGE)
        assert not await begun(stage)
        await stage.comes_to(debate, COMPLETED)
        notes = DeletionStore(stage.store.documents)
        # As where the store was away when the note was to go.
        await notes.record_log_start(TENANT, debate, "2026-01-01T00:00:00.000000")
        await deletions(stage.store, stage.channel).finish_all()
        await after(stage, timedelta())
        assert await stage.kinds(debate)
        assert not await begun(stage)
        await notes.record_log_start(TENANT, debate, "2026-01-01T00:00:00.000000")
        assert await deletions(stage.store, stage.channel).delete(TENANT, debate, ratings=False)
        assert not await stage.kinds(debate)
        assert not await begun(stage)


async def test_a_deletion_is_finished_of_a_debate_of_which_it_is_noted_that_it_began(tmp_path: Path) -> None:
    async with backstage(tmp_path) as stage:
        store = DeletionStore(stage.store.documents)
        await store.record_log_start(TENANT, "one", datetime.now(UTC).isoformat(timespec="microseconds"))
        await store.put(Deletion(TENANT, "one", ratings=True))
        assert await store.list_all() == [Deletion(TENANT, "one", ratings=True)]
