"""A receiver of webhooks over HTTP, which checks signatures with the specification's own library and fails as a test says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from standardwebhooks import Webhook

from tests.support.http_server import serve_app

Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Received:
    """A request that came in, whatever was answered. `path` tells apart hooks that share a receiver."""

    id: str
    path: str
    event: dict[str, Any]
    headers: dict[str, str]
    body: bytes


@dataclass
class WebhookReceiver:
    """Takes every webhook whose signature is right.

    Attributes:
        url: Where it is, with a slash at its end.
        secrets: What may have signed a request, by path; a path without one is not checked.
        faults: What is done instead of a 204, by path, once each, in order.
        always: The same, for every request of a path.
        got: All requests in the order in which they came.
        taken: Those that were answered with 204.
    """

    url: str = ""
    secrets: dict[str, str] = field(default_factory=dict)
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    always: dict[str, Fault] = field(default_factory=dict)
    got: list[Received] = field(default_factory=list)
    taken: list[Received] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body, headers, path = await request.read(), dict(request.headers), request.path.lstrip("/")
        if path in self.secrets:
            # Raises unless the signature is right, and the time is near.
            Webhook(self.secrets[path]).verify(body, {name.lower(): each for name, each in headers.items()})
        received = Received(headers["webhook-id"], path, await request.json(), headers, body)
        self.got.append(received)
        faults = self.faults.get(path)
        if faults:
            return await faults.pop(0)(request)
        if path in self.always:
            return await self.always[path](request)
        self.taken.append(received)
        return web.Response(status=204)


def answers(status: int, **headers: str) -> Fault:
    """A fault: the request is answered with a status."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(
            status=status, headers={name.replace("_", "-"): each for name, each in headers.items()}
        )

    return answer


async def stalls(_: web.Request) -> web.StreamResponse:
    """A fault: the request is read and never answered."""
    await asyncio.Event().wait()
    raise AssertionError


async def breaks_off(request: web.Request) -> web.StreamResponse:
    """A fault: the receiver dies when it has answered half."""
    response = web.StreamResponse(status=200, headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b"ha")
    assert request.transport is not None
    request.transport.abort()
    return response


@asynccontextmanager
async def webhook_receiver() -> AsyncIterator[WebhookReceiver]:
    """Serve a receiver on this machine for as long as the block lasts."""
    receiver = WebhookReceiver()
    app = web.Application()
    app.router.add_post("/{path:.*}", receiver.handle)
    async with serve_app(app) as port:
        receiver.url = f"http://127.0.0.1:{port}/"
        yield receiver
