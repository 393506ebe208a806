"""Whole debates that end at receivers which know nothing of Parley: webhooks that they verify, chats and files."""

import json
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
import pytest
from aiohttp import web
from standardwebhooks import Webhook

from parley.runtime.server import RunningServer
from parley.v1 import hook_pb2 as pb
from parley.v1.hook_pb2 import ChatTarget, FileTarget, HookTarget, WebhookTarget
from tests.support import hook_receiver
from tests.support.orchestration import Orchestrator, orchestrating, until
from tests.support.web_server import web_server

WITHIN = 30.0
ALLOWED = "127.0.0.2"


@pytest.fixture
def receiver() -> Iterator[str]:
    """The receiver of the guide; yields its URL."""
    hook_receiver.seen.clear()
    server = ThreadingHTTPServer((ALLOWED, 0), hook_receiver.Receiver)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://{ALLOWED}:{server.server_port}/hooks"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def add(orchestrator: Orchestrator, target: HookTarget, secret: str = "") -> pb.CreateHookResponse:
    request = pb.CreateHookRequest(
        request_id="one", name="ci", target=target, events=[pb.HOOK_EVENT_CONCLUDED], secret=secret
    )
    return await orchestrator.stub.CreateHook(request, timeout=WITHIN)


async def deliver_end(orchestrator: Orchestrator) -> pb.Delivery:
    """Let a debate end, and return the delivery of that once it has been tried."""
    await orchestrator.watch(await orchestrator.create())

    async def find_tried() -> pb.Delivery | None:
        found = await orchestrator.stub.ListDeliveries(pb.ListDeliveriesRequest(), timeout=WITHIN)
        return next(
            (
                each
                for each in found.deliveries
                if each.tries and (each.HasField("end_time") or each.last_error)
            ),
            None,
        )

    delivery: pb.Delivery = await until(find_tried, "a delivery that was tried")
    return delivery


async def test_the_guides_receiver_verifies_what_a_debate_comes_to(
    tmp_path: Path, gateway_server: RunningServer, receiver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with orchestrating(tmp_path, gateway_server, hook_hosts=ALLOWED) as orchestrator:
        created = await add(orchestrator, HookTarget(webhook=WebhookTarget(url=receiver)))
        monkeypatch.setattr(hook_receiver, "webhook", Webhook(created.secret))
        delivery = await deliver_end(orchestrator)
    assert delivery.state == pb.DELIVERY_STATE_DELIVERED
    event = hook_receiver.seen[delivery.id]
    assert (event["specversion"], event["data"]["debateId"]) == ("1.0", delivery.debate_id)
    assert event["data"]["answer"]


async def test_a_receiver_with_another_secret_refuses_it(
    tmp_path: Path, gateway_server: RunningServer, receiver: str
) -> None:
    async with orchestrating(tmp_path, gateway_server, hook_hosts=ALLOWED) as orchestrator:
        await add(orchestrator, HookTarget(webhook=WebhookTarget(url=receiver)))
        delivery = await deliver_end(orchestrator)
    assert (delivery.state, delivery.last_error) == (
        pb.DELIVERY_STATE_PENDING,
        "it answered 401 Unauthorized",
    )
    assert not hook_receiver.seen


async def test_an_address_inside_gets_nothing_unless_the_operator_names_it(
    tmp_path: Path, gateway_server: RunningServer, receiver: str
) -> None:
    told = f"the host {ALLOWED} is at no public address; the operator can name it in PARLEY_HOOK_HOSTS"
    hook = HookTarget(webhook=WebhookTarget(url=receiver))
    async with orchestrating(tmp_path, gateway_server) as orchestrator:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await add(orchestrator, hook)
    async with orchestrating(tmp_path, gateway_server, hook_hosts=ALLOWED) as orchestrator:
        await add(orchestrator, hook)
    async with orchestrating(tmp_path, gateway_server) as orchestrator:
        delivery = await deliver_end(orchestrator)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert f"target.webhook.url: {told}" in str(refused.value.details())
    assert delivery.last_error == told
    assert not hook_receiver.seen


async def test_a_chat_shows_the_answer(tmp_path: Path, gateway_server: RunningServer) -> None:
    posted: list[Any] = []

    async def handle(request: web.Request) -> web.Response:
        posted.append(await request.json())
        return web.Response(text="ok")

    async with (
        web_server(handle, method="POST") as url,
        orchestrating(tmp_path, gateway_server, hook_hosts="127.0.0.0/8") as orchestrator,
    ):
        chat = ChatTarget(kind=ChatTarget.KIND_SLACK, url=f"{url}services/T1/B1/s3cret")
        await add(orchestrator, HookTarget(chat=chat))
        delivery = await deliver_end(orchestrator)
        listed = await orchestrator.stub.ListHooks(pb.ListHooksRequest(), timeout=WITHIN)
    assert delivery.state == pb.DELIVERY_STATE_DELIVERED
    assert "Debate concluded" in posted[0]["text"]
    assert "s3cret" not in str(listed)


async def test_a_file_below_the_folder_that_is_allowed_gets_a_line(
    tmp_path: Path, gateway_server: RunningServer
) -> None:
    (tmp_path / "hooks").mkdir()
    async with orchestrating(
        tmp_path / "store", gateway_server, hook_folder=tmp_path / "hooks"
    ) as orchestrator:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await add(orchestrator, HookTarget(file=FileTarget(path="../results.jsonl")))
        await add(orchestrator, HookTarget(file=FileTarget(path="results.jsonl")))
        delivery = await deliver_end(orchestrator)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "target.file.path" in str(refused.value.details())
    lines = (tmp_path / "hooks" / "default" / "results.jsonl").read_text().splitlines()
    assert [json.loads(each)["id"] for each in lines] == [delivery.id]
