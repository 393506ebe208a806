"""Webhooks over real HTTP, verified by the public library as a receiver does, and what an answer means."""

import base64
import secrets

import pytest
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

from parley.orchestrator.delivery.channels.webhook import WebhookChannel
from parley.orchestrator.delivery.message import DeliveryError
from parley.runtime.clock import SystemClock
from tests.support.made_messages import SENDER, make_message
from tests.support.ports import free_ports
from tests.support.web_server import web_server

BODY = '{"specversion": "1.0", "id": "dlv-1", "data": {"answer": "Größer."}}'.encode()


def make_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


async def deliver(url: str, *signed_by: str) -> None:
    channel = WebhookChannel(SENDER, SystemClock(), url, signed_by or (make_secret(),))
    await channel.send(make_message(body=BODY))


async def test_a_receiver_verifies_a_webhook_with_either_secret_while_one_is_replaced() -> None:
    old, new = make_secret(), make_secret()
    seen: list[tuple[bytes, dict[str, str]]] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append((await request.read(), dict(request.headers)))
        return web.Response(status=204)

    async with web_server(handle, method="POST") as url:
        await deliver(f"{url}hooks", new, old)
    ((body, headers),) = seen
    for secret in (old, new):
        assert Webhook(secret).verify(body, headers)["data"] == {"answer": "Größer."}
    assert headers["webhook-id"] == "dlv-1"
    assert headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
    with pytest.raises(WebhookVerificationError):
        Webhook(make_secret()).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(new).verify(body.replace(b"1.0", b"1.1"), headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(new).verify(body, {**headers, "webhook-id": "dlv-2"})


async def test_a_damaged_secret_signs_nothing_and_one_that_replaces_it_does() -> None:
    whole = make_secret()
    seen: list[dict[str, str]] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append(dict(request.headers))
        return web.Response(status=204)

    async with web_server(handle, method="POST") as url:
        with pytest.raises(DeliveryError, match="make a new one with `hooks rotate`") as refused:
            await deliver(f"{url}hooks", "whsec_dama")
        assert refused.value.permanent
        await deliver(f"{url}hooks", whole, "whsec_dama")
    (headers,) = seen
    assert len(headers["webhook-signature"].split()) == 1
    assert Webhook(whole).verify(BODY, headers)


@pytest.mark.parametrize(
    ("status", "headers", "told", "retry_after", "permanent"),
    [
        (410, {}, "it answered 410 Gone", None, True),
        (429, {"Retry-After": "7"}, "it answered 429 Too Many Requests", 7.0, False),
        (503, {"Retry-After": "120"}, "it answered 503 Service Unavailable", 120.0, False),
        (
            503,
            {"Retry-After": f"Mon, 01 Jan 2027 00:00:00 +{'9' * 20}"},
            "it answered 503 Service Unavailable",
            None,
            False,
        ),
        (500, {}, "it answered 500 Internal Server Error", None, False),
        (404, {}, "it answered 404 Not Found", None, False),
        (
            308,
            {"Location": "https://other.example/"},
            "it answered 308 Permanent Redirect, and no redirect is followed: the hook needs the address itself",
            None,
            False,
        ),
    ],
)
async def test_an_answer_says_whether_and_when_to_try_again(
    status: int, headers: dict[str, str], told: str, retry_after: float | None, permanent: bool
) -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(status=status, headers=headers, text="s3cret")

    async with web_server(handle, method="POST") as url:
        with pytest.raises(DeliveryError) as failed:
            await deliver(url)
    assert (str(failed.value), failed.value.retry_after, failed.value.permanent) == (
        told,
        retry_after,
        permanent,
    )


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_every_success_is_a_delivery(status: int) -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(status=status)

    async with web_server(handle, method="POST") as url:
        await deliver(url)


async def test_a_receiver_that_is_away_is_told_without_its_address() -> None:
    with pytest.raises(DeliveryError) as failed:
        await deliver(f"http://127.0.0.2:{next(free_ports())}/hooks/s3cret")
    assert str(failed.value).startswith("it could not be reached: ")
    assert "s3cret" not in str(failed.value)
    assert not failed.value.permanent


def test_neither_secrets_nor_the_address_are_shown() -> None:
    channel = WebhookChannel(SENDER, SystemClock(), "https://a.example/s3cret", ("whsec_s3cret",))
    assert "s3cret" not in repr(channel)
