"""The edge: how far its streams are behind the orchestrator's own watch, and how a large debate draws in the console.

Needs a Chromium for the page.
"""

import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Final

import aiohttp
from playwright.async_api import Page

from parley.edge.__main__ import run_edge
from parley.edge.settings import EdgeSettings
from parley.runtime.channel import channel
from parley.v1 import orchestrator_pb2 as pb
from parley.v1 import orchestrator_pb2_grpc
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Participant
from tests.bench.figures import aim, main, table
from tests.bench.paced_orchestrator import PacedGateway, paced_orchestrator
from tests.support.browser import launch_browser
from tests.support.orchestration import orchestrating
from tests.support.ports import free_ports
from tests.support.process_status import cpu_seconds_of, resident_bytes
from tests.support.scripted_answers import criticism

_STREAMS: Final = 500
_PAGES: Final = 10
"""Of a debate, where people look at many."""
_PIECE_SECONDS: Final = 0.1
"""A call takes two seconds then, as of a quick model, …"""
_SPREAD: Final = 0.5
"""… one to three: debates that are asked at one moment do not stay in step."""
_BEHIND_MS: Final = 100.0
_GROWTH: Final = 1.1
"""The most that memory may grow from one debate to the next, as a factor: the first may warm up."""
_AGENTS: Final = ("ann", "bob", "cleo", "dan", "eve")
_ROUNDS: Final = 6
_CHARACTERS: Final = 3000
_CONTRIBUTIONS: Final = 200
_DRAWN_MS: Final = 1000.0
_FRAME_MS: Final = 100.0


async def run(quick: bool) -> None:
    """Measure the streams, then the page."""
    print("\nStreams on one edge: how far each event is behind a watch of the orchestrator by gRPC\n")
    rows = [
        await _measure_streams(debates, pages, times=2 if quick else 5)
        for debates, pages in ((1, 1), (_STREAMS // _PAGES, _PAGES), (1, _STREAMS))
    ]
    table(
        [
            "debates",
            "pages of each",
            "events",
            "behind p50, ms",
            "p95, ms",
            "aim",
            "most, ms",
            "edge memory a stream, KiB",
            "growth from the second time to the last",
            "edge CPU an event of a stream, us",
        ],
        rows,
    )
    print(f"\nThe page of a debate with {_CONTRIBUTIONS} contributions of {_CHARACTERS:,} characters\n")
    pages = [await _measure_page() for _ in range(1 if quick else 5)]
    drawn, frames = [each.drawn for each in pages], [each.frame for each in pages]
    table(
        [
            "contributions",
            "drawn, ms",
            "aim",
            "of these CPU of the page, ms",
            f"longest frame while {len(_AGENTS)} agents stream, ms",
            "aim",
            "frames",
        ],
        [
            [
                str(pages[0].cards),
                f"{median(drawn):.0f}",
                aim(median(drawn), _DRAWN_MS),
                f"{median(each.cpu for each in pages):.0f}",
                f"{median(frames):.0f}",
                aim(median(frames), _FRAME_MS),
                str(pages[0].frames),
            ]
        ],
    )


@dataclass
class _Arrivals:
    """When each event came to one stream, by its sequence."""

    at: dict[int, float] = field(default_factory=dict)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the debate's proposals hang, so that what follows is live."""

    def note(self, sequence: int, *, last_of_start: bool) -> None:
        self.at[sequence] = time.monotonic()
        if last_of_start:
            self.came.set()


@dataclass(frozen=True, slots=True)
class _Watched:
    """A debate, watched at the orchestrator itself and by pages."""

    debate: str
    pages: list[_Arrivals]
    own: _Arrivals = field(default_factory=_Arrivals)


async def _measure_streams(debates: int, pages: int, times: int) -> list[str]:
    count, behind, sizes, events, cpu = debates * pages, list[float](), list[int](), 0, 0.0
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(paced_orchestrator(_PIECE_SECONDS, _SPREAD))
        edge = await stack.enter_async_context(_edge_process(server.address))
        stub = orchestrator_pb2_grpc.OrchestratorServiceStub(
            await stack.enter_async_context(channel(server.address))
        )
        idle = resident_bytes(edge.pid)
        for _ in range(times):
            watched = [
                _Watched(await server.ask("create"), [_Arrivals() for _ in range(pages)])
                for _ in range(debates)
            ]
            tasks = [
                asyncio.create_task(work)
                for each in watched
                for work in (
                    _watch(stub, each.debate, each.own),
                    *(_follow(edge.url.removeprefix("http://"), each.debate, page) for page in each.pages),
                )
            ]
            await asyncio.gather(
                *(stream.came.wait() for each in watched for stream in (each.own, *each.pages))
            )
            cpu_before, live = cpu_seconds_of(edge.pid), [len(each.own.at) for each in watched]
            await server.ask("release")
            await asyncio.gather(*tasks)
            cpu += cpu_seconds_of(edge.pid) - cpu_before
            sizes.append(resident_bytes(edge.pid))
            for each, seen in zip(watched, live, strict=True):
                later = sorted(each.own.at)[seen:]
                events += len(later)
                for page in each.pages:
                    assert page.at.keys() == each.own.at.keys(), "an event is missing"
                    behind += [page.at[sequence] - each.own.at[sequence] for sequence in later]
    p95 = quantiles(behind, n=20)[18] * 1000
    return [
        str(debates),
        str(pages),
        str(events),
        f"{median(behind) * 1000:.1f}",
        f"{p95:.1f}",
        aim(p95, _BEHIND_MS) if debates > 1 else "",
        f"{max(behind) * 1000:.1f}",
        f"{(max(sizes) - idle) / count / 1024:.0f}",
        aim(sizes[-1] / sizes[min(1, len(sizes) - 1)], _GROWTH),
        f"{cpu / (events * pages) * 1e6:.0f}",
    ]


async def _watch(
    stub: orchestrator_pb2_grpc.OrchestratorServiceStub, debate: str, arrivals: _Arrivals
) -> None:
    async for message in stub.WatchDebate(pb.WatchDebateRequest(debate_id=debate)):
        if message.HasField("event"):
            event = message.event
            is_last = event.HasField("step_started") and event.key.endswith("/cy")
            arrivals.note(event.sequence, last_of_start=is_last)


async def _follow(address: str, debate: str, arrivals: _Arrivals) -> None:
    host, _, port = address.rpartition(":")
    loop = asyncio.get_running_loop()
    transport, reader = await loop.create_connection(
        lambda: _StreamReader(f"/v1/debates/{debate}/events", address, arrivals), host, int(port)
    )
    try:
        await reader.ended
    finally:
        transport.close()


class _StreamReader(asyncio.Protocol):
    """Reads one stream by hand: an HTTP client takes longer for an event than the edge, and 500 streams wait for it here."""

    _EVENT: Final = re.compile(rb"^id: (\d+)\n.*\n(data: .*\n)", re.MULTILINE)

    def __init__(self, path: str, address: str, arrivals: _Arrivals) -> None:
        self._request = f"GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode()
        self._arrivals = arrivals
        self._unread = b""
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        content, read = self._unread + data, 0
        for found in self._EVENT.finditer(content):
            line, read = found[2], found.end()
            self._arrivals.note(int(found[1]), last_of_start=b'"stepStarted"' in line and b'/cy"' in line)
        self._unread = content[read:]
        if b"\nevent: end\n" in self._unread and not self.ended.done():
            self.ended.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(exc or ConnectionError("the stream broke"))


@dataclass(frozen=True, slots=True)
class _Edge:
    pid: int
    url: str


@asynccontextmanager
async def _edge_process(orchestrator: str) -> AsyncIterator[_Edge]:
    port = next(iter(free_ports()))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")},
        "PARLEY_ORCHESTRATOR": orchestrator,
        "PARLEY_PORT": str(port),
        "PARLEY_EDGE_STREAMS_PER_CALLER": str(10 * _STREAMS),
        "PARLEY_LOG_LEVEL": "error",
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "parley.edge", env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        await _wait_until_ready(url)
        yield _Edge(process.pid, url)
    finally:
        process.kill()
        await process.wait()


async def _wait_until_ready(url: str) -> None:
    async with asyncio.timeout(60), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"{url}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.05)


@dataclass(frozen=True, slots=True)
class _Page:
    """Milliseconds from the begin of the navigation until all is drawn, and how many of them of CPU; the longest frame while agents stream."""

    cards: int
    drawn: float
    cpu: float
    frame: float
    frames: int


_WATCH_FRAMES: Final = """
window.frames_ = [];
let before = performance.now();
requestAnimationFrame(function note(now) {
  window.frames_.push(now - before);
  before = now;
  window.cards_ = document.querySelectorAll("article").length;
  if (window.cards_ >= WANTED && !window.drawn_) window.drawn_ = performance.now();
  requestAnimationFrame(note);
});
"""


async def _measure_page() -> _Page:
    gateway = PacedGateway(
        [Agent(id=each, name=each.title(), role="architect") for each in (*_AGENTS, "judge")]
    )
    gateway.deltas = 100
    gateway.paced = f"round/{_ROUNDS}/refine/*"
    text = "a word of **advice** and its reason, " * (_CHARACTERS // 37)
    gateway.text = lambda step, agent: f"{agent} on {step}: {text}\nPosition: yes"
    gateway.critic = lambda step, agent: criticism(f"{agent} on {step}: {text}")
    last = f"round/{_ROUNDS}/critique/*"
    hold = gateway.hold(last)
    with tempfile.TemporaryDirectory() as folder:
        async with (
            gateway.served() as served,
            orchestrating(Path(folder), served, over_sockets=True) as orchestrator,
            run_edge(EdgeSettings(port=0, orchestrator=orchestrator.server.address)) as address,
            launch_browser() as browser,
        ):
            debate = await orchestrator.create(
                rounds=_ROUNDS,
                agents=[Participant(agent=Agent(id=each, role="architect")) for each in _AGENTS],
            )
            await gateway.wait_for(last, len(_AGENTS) * (len(_AGENTS) - 1), within=300)
            context = await browser.new_context(base_url=f"http://{address}")
            page = await context.new_page()
            tracker = await context.new_cdp_session(page)
            await tracker.send("Performance.enable", {"timeDomain": "threadTicks"})
            cards = sum(1 for each in gateway.steps("round/*"))
            await page.add_init_script(_WATCH_FRAMES.replace("WANTED", str(cards)))
            await page.goto(f"/debates/{debate}")
            drawn = float(await _wait_in(page, "window.drawn_"))
            metrics = {
                each["name"]: each["value"]
                for each in (await tracker.send("Performance.getMetrics"))["metrics"]
            }
            await page.evaluate("window.frames_.length = 0")
            hold.release()
            done = f"""document.querySelectorAll('article[data-state="done"]').length >= {cards + len(_AGENTS)}"""
            await _wait_in(page, done)
            frames: list[float] = await page.evaluate("window.frames_")
            await context.close()
    return _Page(cards, drawn, metrics["TaskDuration"] * 1000, max(frames), len(frames))


async def _wait_in(page: Page, expression: str) -> str:
    """Return what an expression comes to in the page, once it is something. (The page's policy forbids Playwright's own wait.)"""
    async with asyncio.timeout(120):
        return str(
            await page.evaluate(
                f"""async () => {{
                  while (!({expression})) await new Promise(requestAnimationFrame);
                  return {expression};
                }}"""
            )
        )


if __name__ == "__main__":
    main(__doc__, run)
