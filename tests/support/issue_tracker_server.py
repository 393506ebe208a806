"""An issue tracker on loopback: it notes what it is asked, and answers as it is told."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from parley.orchestrator.outgoing.reach import Reach
from parley.orchestrator.outgoing.sender import GuardedSender
from parley.orchestrator.peers.issue_forms import form_of
from parley.orchestrator.peers.issue_tracker import IssueTracker
from tests.support.http_server import serve_app
from tests.support.issue_trackers import ImpatientClock

ISSUE_URL = "https://tracker.example/o/r/issues/7"
Answer = Callable[[], Awaitable[web.StreamResponse]]


def make_answer(body: Any = None, *, status: int = 201, **headers: str) -> Answer:
    """An answer of a status with this text, bytes or JSON; by default that of a tracker that made an issue."""

    async def answer() -> web.StreamResponse:
        if isinstance(body, bytes):
            return web.Response(status=status, body=body, headers=headers)
        return web.json_response(
            {"html_url": ISSUE_URL} if body is None else body, status=status, headers=headers
        )

    return answer


async def wait_forever() -> web.StreamResponse:
    """No answer, ever."""
    await asyncio.Event().wait()
    raise AssertionError


def tracker_client(url: str, *, seconds: float = 10.0, token: str = "") -> IssueTracker:
    """A client of a tracker, wherever it is."""
    sender = GuardedSender(Reach(hosts=frozenset({urlsplit(url).hostname or ""})), seconds=seconds)
    return IssueTracker(url, form_of(url), sender, ImpatientClock(), token=token)


@dataclass(slots=True)
class IssueTrackerServer:
    """What it was asked, oldest first, and how it answers.

    Attributes:
        asked: Set once it was asked.
    """

    url: str = ""
    answer: Answer = field(default_factory=make_answer)
    issues: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    def client(self, *, seconds: float = 10.0, token: str = "") -> IssueTracker:
        """A client of it."""
        return tracker_client(self.url, seconds=seconds, token=token)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Note a request, and answer."""
        self.issues.append(await request.json())
        self.headers.append(dict(request.headers))
        self.asked.set()
        return await self.answer()


@asynccontextmanager
async def issue_tracker_server() -> AsyncIterator[IssueTrackerServer]:
    """A tracker that takes issues while the block runs."""
    server = IssueTrackerServer()
    app = web.Application()
    app.router.add_post("/repos/o/r/issues", server.handle)
    async with serve_app(app) as port:
        server.url = f"http://127.0.0.1:{port}/repos/o/r/issues"
        yield server
