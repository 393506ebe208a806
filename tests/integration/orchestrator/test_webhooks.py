"""Whole debates before receivers of webhooks, over real HTTP: signed, in order, again after every fault, under one id."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator.delivery import dispatcher, outbox, sender, service
from parley.runtime.backoff import Backoff
from parley.runtime.server import RunningServer
from parley.v1 import hook_pb2 as pb
from tests.support.orchestration import Orchestrator, orchestrating, until
from tests.support.webhook_receiver import WebhookReceiver, answers, breaks_off, stalls, webhook_receiver

WITHIN = 30.0


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "_BACKOFF", Backoff(first=0.02, maximum=0.1))
    monkeypatch.setattr(dispatcher, "_POLL_SECONDS", 0.05)
    monkeypatch.setattr(service, "_FINISH_SECONDS", 0.1)


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    async with webhook_receiver() as serving:
        yield serving


async def subscribe(
    orchestrator: Orchestrator,
    receiver: WebhookReceiver,
    path: str = "one",
    events: Sequence[pb.HookEvent.ValueType] = (pb.HOOK_EVENT_CONCLUDED,),
) -> str:
    """Create a hook for a path of the receiver, which then checks its signatures, and return its id."""
    created = await orchestrator.stub.CreateHook(
        pb.CreateHookRequest(
            request_id=path,
            name=path,
            target=pb.HookTarget(webhook=pb.WebhookTarget(url=f"{receiver.url}{path}?token=hidden")),
            events=events,
        ),
        timeout=WITHIN,
    )
    assert created.hook.target.webhook.url == f"{receiver.url}…", "the rest may be a secret"
    receiver.secrets[path] = created.secret
    return created.hook.id


async def wait_for_webhooks(receiver: WebhookReceiver, count: int) -> None:
    async def have_come() -> bool:
        return len(receiver.taken) >= count

    await until(have_come, f"{count} webhooks are taken")


def run_with_hooks(folder: Path, gateway: RunningServer, **settings: Any) -> Any:
    return orchestrating(folder, gateway, hook_hosts="127.0.0.1", **settings)


async def test_a_debate_reaches_a_receiver_that_checks_its_signature(
    tmp_path: Path, gateway_server: RunningServer, receiver: WebhookReceiver
) -> None:
    async with run_with_hooks(tmp_path, gateway_server, public_url="https://parley.example") as orchestrator:
        await subscribe(orchestrator, receiver)
        debate = await orchestrator.create()
        await wait_for_webhooks(receiver, 1)
        [got] = receiver.got
    assert got.event["id"] == got.id
    assert got.event["data"]["debateId"] == debate
    assert got.event["data"]["link"] == f"https://parley.example/debates/{debate}"
    assert got.headers["Content-Type"].startswith("application/cloudevents+json")


async def test_a_webhook_is_sent_again_after_each_fault_until_it_is_taken(
    tmp_path: Path,
    gateway_server: RunningServer,
    receiver: WebhookReceiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sender, "_SEND_SECONDS", 0.3)
    receiver.faults["one"] = [
        answers(500),
        breaks_off,
        stalls,
        answers(429, Retry_After="1"),
        answers(302, Location=f"{receiver.url}two"),
        answers(404),
    ]
    async with run_with_hooks(tmp_path, gateway_server) as orchestrator:
        await subscribe(orchestrator, receiver)
        await orchestrator.create()
        await wait_for_webhooks(receiver, 1)
        assert [each.path for each in receiver.got] == ["one"] * 7
        assert len({each.id for each in receiver.got}) == 1
        assert len({each.body for each in receiver.got}) == 1
        listed = await orchestrator.stub.ListDeliveries(pb.ListDeliveriesRequest(), timeout=WITHIN)
        assert listed.deliveries[0].tries == 7


async def test_a_receiver_that_is_gone_gets_no_more_and_its_letters_are_listed(
    tmp_path: Path, gateway_server: RunningServer, receiver: WebhookReceiver
) -> None:
    receiver.always["one"] = answers(410)
    async with run_with_hooks(tmp_path, gateway_server) as orchestrator:
        hook = await subscribe(orchestrator, receiver)
        stub = orchestrator.stub
        await orchestrator.create()

        async def list_dead(count: int) -> list[pb.Delivery]:
            asked = pb.ListDeliveriesRequest(state=pb.DELIVERY_STATE_DEAD)
            found = (await stub.ListDeliveries(asked, timeout=WITHIN)).deliveries
            return list(found) if len(found) == count else []

        await until(lambda: list_dead(1), "it is a dead letter")
        await orchestrator.create()
        letters = await until(lambda: list_dead(2), "so is the next one")
        assert len(receiver.got) == 1, "nothing is sent to a hook that is paused"
        [shown] = (await stub.ListHooks(pb.ListHooksRequest(), timeout=WITHIN)).hooks
        assert shown.target.webhook.url == f"{receiver.url}…"
        assert "410" in shown.paused
        assert "127.0.0.1" in shown.paused or "410" in letters[0].last_error
        assert "hidden" not in str(shown) + str(letters)
        del receiver.always["one"]
        assert not (await stub.TestHook(pb.TestHookRequest(hook_id=hook), timeout=WITHIN)).error
        for each in letters:
            await stub.ResendDelivery(pb.ResendDeliveryRequest(delivery_id=each.id), timeout=WITHIN)
        await wait_for_webhooks(receiver, 3)
    assert {each.id for each in receiver.taken[1:]} == {each.id for each in letters}


async def test_a_secret_is_rotated_without_a_gap(
    tmp_path: Path, gateway_server: RunningServer, receiver: WebhookReceiver
) -> None:
    async with run_with_hooks(tmp_path, gateway_server) as orchestrator:
        hook = await subscribe(orchestrator, receiver)
        rotated = await orchestrator.stub.RotateHookSecret(
            pb.RotateHookSecretRequest(request_id="two", hook_id=hook), timeout=WITHIN
        )
        await orchestrator.create()
        await wait_for_webhooks(receiver, 1)  # the receiver still has the old secret
        assert rotated.secret != receiver.secrets["one"]
        receiver.secrets["one"] = rotated.secret
        await orchestrator.create()
        await wait_for_webhooks(receiver, 2)


async def test_a_receiver_that_stalls_keeps_none_of_the_others_waiting(
    tmp_path: Path, gateway_server: RunningServer, receiver: WebhookReceiver
) -> None:
    receiver.always["slow"] = stalls
    async with run_with_hooks(tmp_path, gateway_server) as orchestrator:
        await subscribe(orchestrator, receiver, "slow")
        await subscribe(orchestrator, receiver, "quick")
        for _ in range(9):  # one more than are sent to a hook at a time
            await orchestrator.create()
        await wait_for_webhooks(receiver, 9)
    assert {each.path for each in receiver.taken} == {"quick"}


async def test_what_is_to_be_sent_is_sent_before_the_orchestrator_ends(
    tmp_path: Path, gateway_server: RunningServer, receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_FINISH_SECONDS", 10.0)
    monkeypatch.setattr(outbox, "_SWEEP_SECONDS", 3600.0)
    async with run_with_hooks(tmp_path, gateway_server) as orchestrator:
        await subscribe(orchestrator, receiver)
        debate = [await orchestrator.create() for _ in range(5)][-1]
        await orchestrator.watch(debate)  # as a command does, which ends then
    assert debate in {each.event["data"]["debateId"] for each in receiver.taken}
