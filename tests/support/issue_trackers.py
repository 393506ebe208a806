"""Issue trackers on loopback that keep what they make, as GitHub, GitLab and others do, and that fail as they are told."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any, Final

from aiohttp import web

from parley.orchestrator.outgoing.reach import Reach
from parley.orchestrator.outgoing.sender import GuardedSender
from parley.orchestrator.peers.issue_forms import form_of
from parley.orchestrator.peers.issue_tracker import IssueTracker
from parley.runtime.clock import SystemClock
from tests.support.http_server import serve_app


class Kind(Enum):
    """Which tracker it is like."""

    GITHUB = "/api/v3/repos/o/r/issues"
    GITLAB = "/api/v4/projects/7/issues"
    OTHER = "/issues"


class Fault(Enum):
    """What goes wrong with a request that would create an issue."""

    HANGS_UP = auto()
    """It is refused without an answer, and nothing is made."""
    LOSES_ANSWER = auto()
    """The issue is made, and the connection ends without an answer."""
    STALLS = auto()
    """The issue is made, and no answer comes."""
    FAILS_AFTERWARDS = auto()
    """The issue is made, and the answer is 500."""
    FAILS = auto()
    LIMITS = auto()
    LIMITS_AS_GITHUB = auto()
    REFUSES = auto()


_STATUSES: Final = {
    Fault.FAILS: (502, {}),
    Fault.LIMITS: (429, {"Retry-After": "40"}),
    Fault.LIMITS_AS_GITHUB: (403, {"X-RateLimit-Remaining": "0"}),
    Fault.REFUSES: (422, {}),
    Fault.FAILS_AFTERWARDS: (500, {}),
}
_MADE: Final = frozenset({Fault.LOSES_ANSWER, Fault.STALLS, Fault.FAILS_AFTERWARDS})


class ImpatientClock(SystemClock):
    """Does not wait, and notes how long it would have."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return sum(self.pauses)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@dataclass(slots=True)
class Tracker:
    """A tracker that ignores `Idempotency-Key`.

    Attributes:
        issues: What it has, oldest first.
        faults: What goes wrong with the next requests; None: nothing.
        indexed: How many issues a search finds: an index is behind.
        elsewhere: The URL of a server that is searched instead; empty: none is.
        lists: What lists are asked for.
        stalled: Set once a request gets no answer.
    """

    kind: Kind
    url: str = ""
    issues: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault | None] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    indexed: int | None = None
    elsewhere: str = ""
    stalled: asyncio.Event = field(default_factory=asyncio.Event)
    clock: ImpatientClock = field(default_factory=ImpatientClock)

    def client(self, *, search: str = "", token: str = "", secret: str = "") -> IssueTracker:
        """A client of it, whose pauses take no time."""
        sender = GuardedSender(
            Reach(hosts=frozenset({"127.0.0.1", "127.0.0.2"})), seconds=5.0, max_bytes=8_000_000
        )
        form = form_of(self.url, search and f"{self.elsewhere or self.url}{search}")
        return IssueTracker(self.url, form, sender, self.clock, token=token, secret=secret)

    def add(self, count: int, *, age: timedelta = timedelta(), text: str = "Another one.") -> None:
        """Add issues of others."""
        for _ in range(count):
            self._keep({"title": "Other", "body": text, "description": text}, datetime.now(UTC) - age)

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Make an issue, unless something goes wrong."""
        self.headers.append(dict(request.headers))
        self.bodies.append(await request.read())
        fault = self.faults.pop(0) if self.faults else None
        if fault in {None, *_MADE}:
            self._keep(json.loads(self.bodies[-1]), datetime.now(UTC))
        if fault is Fault.STALLS:
            self.stalled.set()
            await asyncio.Event().wait()
        if fault in {Fault.LOSES_ANSWER, Fault.HANGS_UP}:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if fault is not None:
            status, headers = _STATUSES[fault]
            return web.json_response({"message": "No\nway"}, status=status, headers=headers)
        return web.json_response(self.issues[-1], status=201)

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Return a page of the newest issues, or what a search finds."""
        self.lists.append(request.path_qs)
        query = request.query
        if "search" in query or "q" in query:
            words = query.get("search") or query["q"].split('"')[1]
            known = self.issues[: self.indexed]
            found = [each for each in known if words in str(each.get("body")) + str(each.get("description"))]
            return web.json_response({"total_count": len(found), "items": found} if "q" in query else found)
        size, page = int(query.get("per_page", 20)), int(query.get("page", 1))
        return web.json_response(self.issues[::-1][size * (page - 1) : size * page])

    def _keep(self, fields: dict[str, Any], time: datetime) -> None:
        number = len(self.issues) + 1
        name = "web_url" if self.kind is Kind.GITLAB else "html_url"
        self.issues.append(
            {**fields, "created_at": time.isoformat(), name: f"https://tracker.example/issues/{number}"}
        )


@asynccontextmanager
async def tracker(kind: Kind) -> AsyncIterator[Tracker]:
    """A tracker that takes issues while the block runs."""
    served = Tracker(kind)
    app = web.Application()
    app.router.add_post(kind.value, served.create)
    app.router.add_get(kind.value, served.list)
    app.router.add_get("/api/v3/search/issues", served.list)
    async with serve_app(app) as port:
        served.url = f"http://127.0.0.1:{port}{kind.value}"
        yield served
