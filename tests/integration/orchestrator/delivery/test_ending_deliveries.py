"""Deliveries of what was deleted, and deliveries that ended, are forgotten."""

from parley.orchestrator.delivery.deliveries import DELIVERED
from parley.orchestrator.delivery.message import DeliveryError, Message
from tests.integration.orchestrator.delivery.shared import DAY, make_async
from tests.support.hook_stage import TENANT, HookStage, make_concluded
from tests.support.manual_clock import ManualClock, advance_until
from tests.support.orchestration import until


async def test_a_deleted_hook_and_a_deleted_debate_are_sent_no_more(
    stage: HookStage, clock: ManualClock
) -> None:
    tried = 0

    async def fail(_: Message) -> None:
        nonlocal tried
        tried += 1
        raise DeliveryError("it answered 500")

    one, two = await stage.add_hook(behave=fail), await stage.add_hook(behave=fail)
    async with stage.running() as [replica]:
        await stage.add_debate("one", make_concluded())
        await until(make_async(lambda: tried == 2), "both are tried")
        await replica.hooks.delete(TENANT, one)
        assert {each.hook for each in await stage.deliveries.list_page(TENANT, "", 10)} == {two}
        await stage.store.log.delete(f"{TENANT}/one")
        await advance_until(clock, lambda: clock.monotonic() > 30)

        async def has_none_left() -> bool:
            return not await stage.deliveries.list_page(TENANT, "", 10)

        await until(has_none_left, "the other is gone too")
    assert tried == 2


async def test_a_debate_that_is_deleted_while_it_is_sent_is_sent_no_more(stage: HookStage) -> None:
    hook = await stage.add_hook()
    stage.deleted.add("one")
    async with stage.running():
        await stage.add_debate("one", make_concluded())
        await stage.add_debate("two", make_concluded())
        await stage.got_by(hook, 1)

        async def has_only_the_other() -> bool:
            left = await stage.deliveries.list_page(TENANT, "", 10)
            return [each.debate for each in left] == ["two"]

        await until(has_only_the_other, "nothing is left of it")
    assert [each.debate for each in stage.got[hook]] == ["two"]


async def test_ended_deliveries_are_forgotten_after_their_time(stage: HookStage, clock: ManualClock) -> None:
    await stage.add_hook()
    async with stage.running():
        await stage.add_debate("one", make_concluded())
        await stage.comes_to(DELIVERED)
        await advance_until(clock, lambda: clock.monotonic() > 14 * DAY + 7200, step=3600)

        async def has_none_left() -> bool:
            return not await stage.deliveries.list_page(TENANT, "", 10)

        await until(has_none_left, "it is forgotten")
