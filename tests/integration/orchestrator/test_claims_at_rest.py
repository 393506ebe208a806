"""Claims as a debate comes to rest: a replica that drains, or loses its claim or slot then, leaves a record that is true."""

import asyncio

import pytest
from msgspec.structs import replace

from parley.orchestrator import metrics
from parley.orchestrator.engine.owner import DebateOwner
from parley.orchestrator.engine.status_writer import StatusWriter
from parley.orchestrator.log.debate_record import CANCELLED, COMPLETED, FAILED, PAUSED
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.log.journal import Journal
from parley.storage.ports import StoreUnavailableError, Update
from tests.integration.orchestrator.owning import owns_nothing
from tests.support.debate_logs import hold_append
from tests.support.orchestration import TENANT, WITHIN, Backstage, make_debate, until

SPEC = make_debate(2, 1)


def hold_rest(monkeypatch: pytest.MonkeyPatch, status: str) -> asyncio.Event:
    """Hold for ever the first write that a debate rests with a status. Return the event that is set then."""
    write, reached = DebateIndex.write, asyncio.Event()

    async def hold_first(index: DebateIndex, update: Update) -> bool:
        rests = update.changes.get("status") == status and not update.changes["open"]
        if rests and not reached.is_set():
            reached.set()
            await asyncio.Event().wait()
        return await write(index, update)

    monkeypatch.setattr(DebateIndex, "write", hold_first)
    return reached


def hold_after_close(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Hold owners for ever once their debates are closed. Return the event that is set then."""
    reached = asyncio.Event()

    async def hold(_writer: StatusWriter) -> None:
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(StatusWriter, "write_closed", hold)
    return reached


@pytest.mark.parametrize("status", [PAUSED, FAILED])
async def test_a_replica_that_drains_as_a_debate_comes_to_rest_says_in_its_record_that_it_rests(
    stage: Backstage, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = hold_rest(monkeypatch, status)
    if status == PAUSED:
        stage.gateway.hold("round/1/propose/*")
    else:
        stage.gateway.fail("round/1/propose/*")
    async with stage.replica("one") as one:
        debate = await one.create(SPEC)
        if status == PAUSED:
            await one.intervene(debate, "pause", stop_calls=True)
        await asyncio.wait_for(reached.wait(), WITHIN)
        await one.runner.drain()
        await stage.comes_to(debate, status)


async def test_a_replica_that_drains_writes_what_it_has_recorded_before_it_says_so_in_the_record(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, _ = hold_append(stage, monkeypatch, "debate_failed")
    stage.gateway.fail("round/1/propose/*")
    async with stage.replica("one") as one:
        debate = await one.create(SPEC)
        await asyncio.wait_for(reached.wait(), WITHIN)
        await one.runner.drain()
        assert (await stage.record(debate)).status == FAILED
        assert "debate_failed" in await stage.kinds(debate)


async def test_what_a_draining_replica_still_writes_is_published_before_it_says_that_no_more_comes(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    reached, _ = hold_append(stage, monkeypatch, "debate_failed")
    stage.gateway.fail("round/1/propose/*")
    one = stage.replica("one")
    one.runner._dependencies = replace(
        one.dependencies,
        publish=lambda events: heard.extend(event.kind for event in events),
        end_publishing=lambda _tenant, _debate: heard.append("no more"),
    )
    async with one:
        await one.create(SPEC)
        await asyncio.wait_for(reached.wait(), WITHIN)
        await one.runner.drain()
    assert "debate_failed" in heard
    assert heard[-1] == "no more"


async def test_a_debate_whose_claim_is_lost_as_it_fails_is_not_counted_as_ended(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    monkeypatch.setattr(metrics, "record_debate_end", lambda *args, **_: ended.append(args[1]))
    reached, released = hold_append(stage, monkeypatch, "debate_failed")
    stage.gateway.fail("round/1/propose/*")
    async with stage.replica("one") as one:
        debate = await one.create(SPEC)
        await asyncio.wait_for(reached.wait(), WITHIN)
        other = Journal(stage.store.log, one.dependencies.clock, TENANT, debate, await stage.events(debate))
        await other.claim("two")
        released.set()
        await until(lambda: owns_nothing(one), "the claim is lost")
    assert ended == []


async def test_a_debate_that_fails_as_its_replica_drains_while_the_store_is_away_is_counted_by_the_next_owner_alone(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def be_away(*_: object, **__: object) -> None:
        raise StoreUnavailableError("away")

    ended: list[str] = []
    monkeypatch.setattr(metrics, "record_debate_end", lambda *args, **_: ended.append(args[1]))
    reached, _ = hold_append(stage, monkeypatch, "debate_failed")
    stage.gateway.fail("round/1/propose/*")
    async with stage.replica("one") as one:
        debate = await one.create(SPEC)
        await asyncio.wait_for(reached.wait(), WITHIN)
        with monkeypatch.context() as patched:
            patched.setattr(stage.store.log, "append", be_away)
            await one.runner.drain()
    assert ended == []
    async with stage.replica("two") as two:
        await stage.comes_to(debate, FAILED)
        await until(lambda: owns_nothing(two), "its owner has ended")
    assert ended == ["failed"]


@pytest.mark.parametrize("held", ["concluded", "closed"])
async def test_a_debate_that_ends_as_its_replica_drains_is_counted_once(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    ended: list[str] = []
    monkeypatch.setattr(metrics, "record_debate_end", lambda *args, **_: ended.append(args[1]))
    reached, _ = hold_append(stage, monkeypatch, held)
    async with stage.replica("one") as one:
        debate = await one.create(SPEC)
        await asyncio.wait_for(reached.wait(), WITHIN)
        await one.runner.drain()
    assert ended == ["completed"]
    async with stage.replica("two") as two:
        await stage.comes_to(debate, COMPLETED)
        await until(lambda: owns_nothing(two), "its owner has ended")
    assert ended == ["completed"]


async def test_a_debate_that_loses_its_slot_as_it_fails_says_so_in_its_record_once_its_log_does(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, released = hold_append(stage, monkeypatch, "debate_failed")
    execute, write, stopped, logs = DebateOwner._execute, DebateIndex.write, asyncio.Event(), []

    async def note_end(owner: DebateOwner) -> None:
        await execute(owner)
        stopped.set()

    async def note_log(index: DebateIndex, update: Update) -> bool:
        if update.changes.get("status") == FAILED:
            logs.append(await stage.kinds(debate))
        return await write(index, update)

    monkeypatch.setattr(DebateOwner, "_execute", note_end)
    monkeypatch.setattr(DebateIndex, "write", note_log)
    stage.gateway.fail("round/1/propose/*")
    async with stage.replica("one") as one:
        debate = await one.create(SPEC)
        await asyncio.wait_for(reached.wait(), WITHIN)
        ((owner, _),) = one.runner._owned.values()
        owner.slot.revoked.set()
        await asyncio.wait_for(stopped.wait(), WITHIN)
        released.set()
        await stage.comes_to(debate, FAILED)
    assert ["debate_failed" in kinds for kinds in logs] == [True]


async def test_a_replica_that_drains_as_a_paused_debate_is_cancelled_does_not_say_that_it_is_paused(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = hold_after_close(monkeypatch)
    stage.gateway.hold("round/1/propose/*")
    async with stage.replica("one") as one:
        debate = await one.create(SPEC)
        await one.intervene(debate, "pause", stop_calls=True)
        await stage.comes_to(debate, PAUSED)
        await one.intervene(debate, "cancel")
        await asyncio.wait_for(reached.wait(), WITHIN)
        await one.runner.drain()
        assert (await stage.record(debate)).status == CANCELLED
    async with stage.replica("two"):
        await stage.comes_to(debate, CANCELLED)


async def test_a_replica_that_drains_just_after_a_debate_has_closed_still_lets_the_gateway_forget_its_answers(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = hold_after_close(monkeypatch)
    async with stage.replica("one") as one:
        await one.create(SPEC)
        await asyncio.wait_for(reached.wait(), WITHIN)
        await one.runner.drain()
    (told,) = stage.gateway.unkept
    assert {step for step, _ in told} == set(stage.gateway.steps())
