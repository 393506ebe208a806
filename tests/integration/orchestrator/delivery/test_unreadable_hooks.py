"""Deliveries whose hook, record or debate cannot be read: each ends with a reason, and what comes after it is sent."""

from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.orchestrator.delivery.deliveries import (
    DEAD,
    DELIVERED,
    DELIVERIES,
    StoredDelivery,
    create_delivery,
)
from parley.orchestrator.delivery.hooks import HOOKS, UNREADABLE
from parley.orchestrator.delivery.message import Message
from parley.orchestrator.delivery.news import NewsWriter
from parley.runtime.errors import ParleyError
from parley.runtime.unreadable import UnreadableError
from parley.storage.encryption.data_keys import DATA_KEYS
from parley.storage.encryption.wrapping import WrappingKeys
from parley.v1.event_pb2 import CheckpointOpened
from parley.v1.hook_pb2 import HOOK_EVENT_CONCLUDED, HOOK_EVENT_WAITING
from tests.support.encryption import create_keys
from tests.support.hook_stage import TENANT, HookStage, make_concluded, open_hook_stage
from tests.support.manual_clock import ManualClock, advance_until
from tests.support.orchestration import until


async def damage(stage: HookStage, hook: str, **fields: Any) -> None:
    """Make the record of a hook such that nobody can read it."""
    assert await stage.store.documents.update(HOOKS, hook, fields or {"hook": "no base64"})


async def damage_delivery(stage: HookStage, delivery: StoredDelivery) -> None:
    """Make a delivery such that nobody can read it, and it is found as before."""
    kept = ("tenant", "hook", "lane", "place", "state", "due", "made")
    await stage.store.documents.delete(DELIVERIES, delivery.id)
    fields = {name: getattr(delivery, name) for name in kept}
    await stage.store.documents.insert(DELIVERIES, delivery.id, fields)


async def add_two(stage: HookStage, hook: str) -> None:
    """Create the two deliveries of a debate to a hook."""
    await stage.add_debate("one", CheckpointOpened(), make_concluded())
    for sequence, kind in ((2, HOOK_EVENT_WAITING), (3, HOOK_EVENT_CONCLUDED)):
        await stage.deliveries.add(create_delivery(TENANT, "one", hook, kind, sequence, stage.clock.now()))


@pytest.mark.parametrize("others", [True, False], ids=["among others", "alone"])
async def test_deliveries_of_a_hook_that_cannot_be_read_are_dead_letters(
    stage: HookStage, *, others: bool
) -> None:
    damaged = await stage.add_hook(HOOK_EVENT_WAITING, HOOK_EVENT_CONCLUDED)
    other = await stage.add_hook() if others else ""
    await add_two(stage, damaged)
    await damage(stage, damaged)
    async with stage.running():
        found = await stage.comes_to(DEAD, 2)
        if others:
            await stage.got_by(other, 1)
    assert {each.hook for each in found} == {damaged}
    assert {(each.tries, each.error) for each in found} == {
        (1, "the hook's record in the store cannot be read; delete the hook and create it anew")
    }
    assert not stage.got[damaged]


async def test_a_hook_that_cannot_be_read_is_deleted_and_said_to_be_unreadable(stage: HookStage) -> None:
    damaged = await stage.add_hook(HOOK_EVENT_WAITING, HOOK_EVENT_CONCLUDED)
    await add_two(stage, damaged)
    await damage(stage, damaged)
    hooks = stage.replica().hooks
    with pytest.raises(ParleyError, match="cannot be read; delete the hook") as refused:
        await hooks.test(TENANT, damaged)
    assert refused.value.code is grpc.StatusCode.DATA_LOSS
    assert await hooks.store.has(TENANT, damaged)
    assert not await hooks.store.has("other", damaged)
    await hooks.delete(TENANT, damaged)
    assert not await hooks.store.has(TENANT, damaged)
    assert not await stage.deliveries.list_page(TENANT, "", 10)
    with pytest.raises(ParleyError, match=damaged):
        await hooks.delete(TENANT, damaged)


async def test_a_delivery_that_cannot_be_read_holds_up_none_of_its_debate(stage: HookStage) -> None:
    hook = await stage.add_hook(HOOK_EVENT_WAITING, HOOK_EVENT_CONCLUDED)
    await add_two(stage, hook)
    first = (await stage.deliveries.list_page(TENANT, "", 10, hook=hook))[-1]
    head = await stage.deliveries.find_first(first.lane)
    assert head is not None
    await damage_delivery(stage, head)
    async with stage.running():
        [message] = await stage.got_by(hook, 1)
        [delivered] = await stage.comes_to(DELIVERED)
    assert message.event == HOOK_EVENT_CONCLUDED
    assert delivered.id != head.id


async def test_what_cannot_be_read_hides_no_other_hook_or_delivery(stage: HookStage) -> None:
    hooks, now = [await stage.add_hook() for _ in range(5)], stage.clock.now()
    for hook in hooks:
        await stage.deliveries.add(create_delivery(TENANT, "one", hook, HOOK_EVENT_CONCLUDED, 2, now))
    *damaged, readable = await stage.deliveries.list_due(now, 5)
    for each in damaged:
        await damage_delivery(stage, each)
    for hook in hooks[:3]:
        await damage(stage, hook)
    found = await stage.replica().hooks.store.list_page(TENANT, "", 2)
    assert {each.hook.id for each in found} == set(hooks[3:])
    assert await stage.deliveries.list_due(now, 1) == [readable]
    assert await stage.deliveries.find_oldest() == readable
    assert await stage.deliveries.list_page(TENANT, "", 1) == [readable]


async def test_what_can_never_be_written_is_tried_for_a_day_and_holds_up_no_other_debate(
    stage: HookStage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = NewsWriter.write

    async def fail(writer: NewsWriter, delivery: Any) -> Message | None:
        if delivery.debate == "bad":
            raise KeyError("a fault of ours")
        return await write(writer, delivery)

    monkeypatch.setattr(NewsWriter, "write", fail)
    hook = await stage.add_hook()
    async with stage.running():
        await stage.add_debate("bad", make_concluded())
        await stage.add_debate("good", make_concluded())
        [message] = await stage.got_by(hook, 1)
        await advance_until(clock, lambda: clock.monotonic() > 25 * 3600, step=600)
        [dead] = await stage.comes_to(DEAD)
    assert message.debate == "good"
    assert (dead.debate, dead.error) == ("bad", "internal error: KeyError")
    assert dead.tries >= 8


async def test_a_delivery_about_a_debate_whose_record_is_damaged_says_so(stage: HookStage) -> None:
    async def fail(_tenant: str, debate: str) -> str:
        raise UnreadableError(f"debate {debate} cannot be read: KeyError")

    stage.write_answer = fail
    await stage.add_hook()
    async with stage.running():
        await stage.add_debate("one", make_concluded())

        async def is_tried() -> str:
            found = await stage.deliveries.list_page(TENANT, "", 10)
            return "".join(each.error for each in found)

        error = await until(is_tried, "it is tried")
    assert error == "the debate cannot be read: debate one cannot be read: KeyError"


async def lose_data_key(folder: Path, clock: ManualClock, scope: str) -> tuple[WrappingKeys, str]:
    """Write an encrypted store with a hook and two debates, and lose the data key of a scope. Return the operator's key, and the hook."""
    keys = create_keys()
    async with open_hook_stage(folder, clock, keys) as stage:
        hook = await stage.add_hook(HOOK_EVENT_WAITING, HOOK_EVENT_CONCLUDED)
        await add_two(stage, hook)
        await stage.add_debate("two", make_concluded())
        [lost] = await stage.store.documents.find(DATA_KEYS, {"scope": scope})
        assert await stage.store.documents.delete(DATA_KEYS, lost.key)
    return keys, hook


async def test_deliveries_of_a_hook_that_cannot_be_decrypted_are_dead_letters_and_it_is_deleted(
    tmp_path: Path, clock: ManualClock
) -> None:
    keys, hook = await lose_data_key(tmp_path, clock, "/hooks")
    async with open_hook_stage(tmp_path, clock, keys) as stage, stage.running() as [replica]:
        found = await stage.comes_to(DEAD, 2)
        assert {each.error for each in found} == {UNREADABLE}
        with pytest.raises(ParleyError, match="cannot be read; delete the hook"):
            await replica.hooks.test(TENANT, hook)
        assert not await replica.hooks.store.has("other", hook)
        await replica.hooks.delete(TENANT, hook)
        assert not await replica.hooks.store.has(TENANT, hook)


async def test_a_debate_that_cannot_be_decrypted_holds_up_no_other_and_its_deliveries_say_so(
    tmp_path: Path, clock: ManualClock
) -> None:
    keys, hook = await lose_data_key(tmp_path, clock, f"{TENANT}/one")
    async with open_hook_stage(tmp_path, clock, keys) as stage, stage.running():
        [message] = await stage.got_by(hook, 1)
        assert message.debate == "two"

        async def is_tried() -> str:
            found = await stage.deliveries.list_page(TENANT, "", 10)
            return "".join(each.error for each in found if each.debate == "one")

        assert "the debate cannot be read: " in await until(is_tried, "it is tried")
