"""A delivery that fails is tried again after growing pauses, and holds up no other."""

import asyncio
from itertools import pairwise

from parley.orchestrator.delivery.deliveries import DEAD, DELIVERED, PENDING
from parley.orchestrator.delivery.dispatcher import OF_HOOK, OF_TENANT
from parley.orchestrator.delivery.message import DeliveryError, Message
from parley.orchestrator.log.debate_record import FAILED
from parley.v1.event_pb2 import DebateFailed
from parley.v1.hook_pb2 import HOOK_EVENT_CONCLUDED, HOOK_EVENT_FAILED
from tests.integration.orchestrator.delivery.shared import ALL, DAY
from tests.support.hook_stage import TENANT, HookStage, make_concluded
from tests.support.manual_clock import ManualClock, advance_until
from tests.support.orchestration import until


async def test_a_delivery_is_tried_again_after_growing_pauses_under_one_id(
    stage: HookStage, clock: ManualClock
) -> None:
    tries: list[tuple[float, str]] = []

    async def fail(message: Message) -> None:
        tries.append((clock.monotonic(), message.id))
        if len(tries) < 4:
            raise DeliveryError("it answered 500")

    hook = await stage.add_hook(behave=fail)
    async with stage.running() as [replica]:
        await stage.add_debate("one", make_concluded())
        await advance_until(
            clock, lambda: len(stage.got[hook]) == 1, is_idle=lambda: replica.dispatcher.is_idle
        )
        [delivery] = await stage.comes_to(DELIVERED)
    pauses = [after - before for (before, _), (after, _) in pairwise(tries)]
    for pause, aim in zip(pauses, (5, 20, 80), strict=True):
        assert 0.8 * aim <= pause <= aim + 3
    assert len({each for _, each in tries}) == 1
    assert (delivery.tries, delivery.error) == (4, "")


async def test_the_receiver_says_when_to_come_back(stage: HookStage, clock: ManualClock) -> None:
    tries: list[float] = []

    async def wait(_: Message) -> None:
        tries.append(clock.monotonic())
        if len(tries) == 1:
            raise DeliveryError("it answered 429", retry_after=600)

    hook = await stage.add_hook(behave=wait)
    async with stage.running() as [replica]:
        await stage.add_debate("one", make_concluded())
        await advance_until(
            clock, lambda: len(stage.got[hook]) == 1, step=30, is_idle=lambda: replica.dispatcher.is_idle
        )
    assert 600 <= tries[1] - tries[0] <= 660


async def test_after_a_day_it_is_a_dead_letter_that_can_be_sent_again(
    stage: HookStage, clock: ManualClock
) -> None:
    works = False

    async def fail(_: Message) -> None:
        if not works:
            raise DeliveryError("it answered 500")

    hook = await stage.add_hook(behave=fail)
    async with stage.running() as [replica]:
        await stage.add_debate("one", make_concluded())
        await advance_until(clock, lambda: clock.monotonic() > 25 * 3600, step=600)
        [dead] = await stage.comes_to(DEAD)
        assert dead.error == "it answered 500"
        assert dead.tries >= 8
        assert clock.monotonic() >= DAY - 4 * 3600
        works = True
        again = await replica.hooks.resend(TENANT, dead.id)
        assert (again.state, again.tries) == (PENDING, 0)
        [message] = await stage.got_by(hook, 1)
        assert message.id == dead.id
        await stage.comes_to(DELIVERED)


async def test_a_clock_that_is_set_forward_ends_no_delivery(stage: HookStage, clock: ManualClock) -> None:
    tries = 0

    async def fail(_: Message) -> None:
        nonlocal tries
        tries += 1
        if tries < 4:
            raise DeliveryError("it answered 500")

    async def has_failed() -> bool:
        return any(each.error for each in await stage.deliveries.list_page(TENANT, "", 1))

    hook = await stage.add_hook(behave=fail)
    async with stage.running():
        await stage.add_debate("one", make_concluded())
        await until(has_failed, "its first try has failed")
        clock.advance(30 * DAY)
        await advance_until(clock, lambda: len(stage.got[hook]) == 1)
        await stage.comes_to(DELIVERED)


async def test_a_receiver_that_is_gone_pauses_its_hook_until_a_test_arrives(
    stage: HookStage, clock: ManualClock
) -> None:
    gone = True

    async def refuse(_: Message) -> None:
        if gone:
            raise DeliveryError("it answered 410 Gone", permanent=True)

    hook = await stage.add_hook(behave=refuse)
    async with stage.running() as [replica]:
        await stage.add_debate("one", make_concluded())
        await stage.comes_to(DEAD)
        assert (await stage.hook(hook)).paused == "it answered 410 Gone"
        await stage.add_debate("two", make_concluded())
        clock.advance(15)
        dead, _ = await stage.comes_to(DEAD, 2)
        assert dead.error == "the hook is paused: it answered 410 Gone"
        assert await replica.hooks.test(TENANT, hook) == "it answered 410 Gone"
        gone = False
        assert await replica.hooks.test(TENANT, hook) == ""
        assert (await stage.hook(hook)).paused == ""


async def test_what_happens_later_in_a_debate_is_sent_later(stage: HookStage, clock: ManualClock) -> None:
    failed = asyncio.Event()

    async def fail_first(message: Message) -> None:
        if message.event == HOOK_EVENT_FAILED and not failed.is_set():
            failed.set()
            raise DeliveryError("it answered 500")

    hook = await stage.add_hook(*ALL, behave=fail_first)
    async with stage.running():
        debate = await stage.add_debate("one", DebateFailed(), status=FAILED)
        await failed.wait()
        await stage.extend(debate, make_concluded())
        await stage.add_debate("two", make_concluded())
        await advance_until(clock, lambda: len(stage.got[hook]) == 3)
    of_one = [each.event for each in stage.got[hook] if each.debate == "one"]
    assert of_one == [HOOK_EVENT_FAILED, HOOK_EVENT_CONCLUDED]
    assert stage.got[hook][0].debate == "two", "another debate waits for nothing"


async def test_a_receiver_that_stalls_holds_up_nobody_else(stage: HookStage, clock: ManualClock) -> None:
    stalled: list[Message] = []

    async def stall(message: Message) -> None:
        stalled.append(message)
        await asyncio.Event().wait()

    await stage.add_hook(behave=stall)
    async with stage.running():
        for number in range(120):  # more than are looked at together
            await stage.add_debate(f"debate-{number}", make_concluded())
        await stage.comes_to(PENDING, 120)
        quick = await stage.add_hook()
        await clock.sleeping(2)
        clock.advance(15)  # as long as hooks are remembered
        await stage.add_debate("last", make_concluded())
        await stage.got_by(quick, 1)
    assert len(stalled) == OF_HOOK


async def test_many_receivers_that_stall_hold_up_no_other_of_their_tenant(
    stage: HookStage, clock: ManualClock
) -> None:
    stalled: list[Message] = []
    given_up: list[Message] = []

    async def stall(message: Message) -> None:
        stalled.append(message)
        try:
            await asyncio.Event().wait()
        finally:
            given_up.append(message)

    for _ in range(OF_TENANT // OF_HOOK):
        await stage.add_hook(behave=stall)
    async with stage.running():
        for number in range(OF_HOOK):
            await stage.add_debate(f"debate-{number}", make_concluded())

        async def are_stalled() -> bool:
            return len(stalled) == OF_TENANT

        await until(are_stalled, "as much is being sent as may be of a tenant")
        quick = await stage.add_hook()
        await clock.sleeping(2)
        clock.advance(15)  # as long as hooks are remembered
        await stage.add_debate("last", make_concluded())
        await stage.got_by(quick, 1)
        assert not given_up, "it waited for none of them"
