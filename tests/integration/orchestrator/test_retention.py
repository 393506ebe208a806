"""What is old is deleted by itself: debates by the days of their tenant, and what is noted of interventions."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from parley.orchestrator.engine.inbox import INBOX
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.model.retention import Retention
from parley.runtime.channel import channel
from parley.runtime.server import RunningServer
from parley.runtime.tasks import background_task
from parley.storage.opening import open_store
from parley.v1 import debate_pb2
from parley.v1 import orchestrator_pb2 as pb
from tests.integration.orchestrator.deleting import WITHIN, deletions, hold_to_rest
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import orchestrating, until
from tests.support.scripted_gateway import ScriptedGateway


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

        async def list_kept(retention: Retention) -> Sequence[str]:
            await deletions(store, peers, clock=clock, retention=retention).delete_old()
            return [tenant for tenant, debate in made.items() if await index.get(tenant, debate)]

        assert await list_kept(Retention()) == ["acme", "beta", "gamma"]
        assert await list_kept(Retention(11)) == ["acme", "beta", "gamma"]
        assert await list_kept(Retention(9, {"beta": 0, "gamma": 30})) == ["beta", "gamma"]
        assert await list_kept(Retention(0, {"gamma": 9.5})) == ["beta"]
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
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer
) -> None:
    async with orchestrating(tmp_path, gateway_server) as orchestrator:
        await hold_to_rest(gateway, orchestrator)
    for days, kept in ((29, True), (31, False)):
        clock = ManualClock(datetime.now(UTC) + timedelta(days=days))
        async with (
            open_store(f"sqlite:///{tmp_path}", "orchestrator") as store,
            channel(gateway_server.address) as peers,
        ):
            await deletions(store, peers, clock=clock).delete_old()
            assert bool(await store.documents.find(INBOX, {})) is kept
