"""Streams that share a watch: what each gets, who is let in, and how much is kept; the orchestrator is a stand-in."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Any

import grpc
import pytest

from parley.edge import broadcast as broadcasting
from parley.edge.shared_watches import SharedWatches
from parley.runtime.errors import ParleyError
from parley.v1 import orchestrator_pb2
from parley.v1.event_pb2 import Event
from parley.v1.orchestrator_pb2 import Heartbeat, StepDelta, WatchDebateRequest, WatchDebateResponse
from tests.support.waiting import wait_until

WITHIN = 60.0
_METHOD = orchestrator_pb2.DESCRIPTOR.services_by_name["OrchestratorService"].methods_by_name["WatchDebate"]
_NOTHING = grpc.aio.Metadata()


class _Call:
    """A watch of the stand-in."""

    def __init__(self, owner: "_Orchestrator", request: WatchDebateRequest, tenant: str | None) -> None:
        self._owner = owner
        self._tenant = tenant
        self.request = request
        self.is_cancelled = False
        self.news = asyncio.Event()
        self.deltas: list[bytes] = []
        self.read = 0
        self.broken = False

    async def initial_metadata(self) -> Mapping[str, str]:
        await asyncio.sleep(0)
        return {"parley-tenant": self._tenant} if self._tenant and self._owner.says_tenant else {}

    async def __aiter__(self) -> AsyncIterator[bytes]:
        after = self.request.after_sequence
        if self._tenant is None:
            raise grpc.aio.AioRpcError(grpc.StatusCode.UNAUTHENTICATED, _NOTHING, _NOTHING, "who?")
        log = self._owner.logs[self._tenant]
        while not self.is_cancelled:
            self.news.clear()
            if self.broken:
                raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, _NOTHING, _NOTHING, "gone")
            while self.deltas:
                yield self.deltas.pop(0)
            while after < len(log):
                after += 1
                self.read += 1
                await asyncio.sleep(0)
                yield log[after - 1]
            if self._owner.is_over:
                return
            await self.news.wait()
        raise asyncio.CancelledError

    def cancel(self) -> bool:
        self.is_cancelled = True
        self.news.set()
        self._owner.open.discard(self)
        return True


class _Orchestrator:
    """Stands in for the orchestrator and the edge's calls of it. A caller's tenant is what its key says."""

    def __init__(self) -> None:
        self.logs: dict[str, list[bytes]] = {"acme": [], "other": []}
        self.keys = {"one": "acme", "two": "acme", "foreign": "other"}
        self.open: set[_Call] = set()
        self.opened: list[_Call] = []
        self.is_over = False
        self.says_tenant = True

    @contextmanager
    def hold_stream(self, *_given: object) -> Iterator[None]:
        yield

    def open_unread(
        self, _method: object, request: WatchDebateRequest, headers: Mapping[str, str], _seconds: float | None
    ) -> _Call:
        call = _Call(self, request, self.keys.get(headers.get("authorization", "")))
        self.open.add(call)
        self.opened.append(call)
        return call

    def append(self, text: str = "", tenant: str = "acme") -> None:
        log = self.logs[tenant]
        event = Event(sequence=len(log) + 1, key=f"{tenant} {text}")
        log.append(WatchDebateResponse(event=event).SerializeToString())
        self.tell()

    def write(self, text: str) -> None:
        message = WatchDebateResponse(delta=StepDelta(key="a", text=text)).SerializeToString()
        for call in self.open:
            if call.request.text_deltas:
                call.deltas.append(message)
        self.tell()

    def beat(self) -> None:
        for call in self.open:
            call.deltas.append(WatchDebateResponse(heartbeat=Heartbeat()).SerializeToString())
        self.tell()

    def end(self) -> None:
        self.is_over = True
        self.tell()

    def tell(self) -> None:
        for call in self.open:
            call.news.set()


class _Page:
    """A stream that is read as far as it is let."""

    def __init__(
        self, watches: SharedWatches, key: str = "one", after: int = 0, *, deltas: bool = False
    ) -> None:
        request = WatchDebateRequest(debate_id="d", after_sequence=after, text_deltas=deltas)
        self._texts = watches.follow(request, {"authorization": key}, "")
        self._after = after
        self.content = b""
        self.reads = asyncio.Event()
        self.reads.set()
        self.task = asyncio.create_task(self._follow(self._texts))

    async def _follow(self, texts: AsyncGenerator[bytes, None]) -> None:
        async with aclosing(texts):
            async for text in texts:
                self.content += text
                await self.reads.wait()

    async def end(self) -> None:
        """Wait until the stream has ended. Raise as it did."""
        async with asyncio.timeout(WITHIN):
            await self.task

    @property
    def ids(self) -> list[int]:
        return [int(line[4:]) for line in self.content.split(b"\n") if line.startswith(b"id: ")]

    def has(self, last: int) -> bool:
        """Return whether it has all events through one, each once."""
        assert self.ids == [*range(self._after + 1, self._after + 1 + len(self.ids))]
        return self._after + len(self.ids) == last


@pytest.fixture
def orchestrator() -> _Orchestrator:
    return _Orchestrator()


@pytest.fixture
def watches(orchestrator: _Orchestrator) -> SharedWatches:
    calls: Any = orchestrator
    return SharedWatches(_METHOD, calls)


async def test_each_stream_gets_every_event_once_however_many_share_a_watch_and_wherever_it_begins(
    orchestrator: _Orchestrator, watches: SharedWatches
) -> None:
    for _ in range(5):
        orchestrator.append()
    pages = [_Page(watches, after=after) for after in (3, 0, 5, 0, 4)]
    await wait_until(lambda: all(each.has(5) for each in pages))
    await wait_until(lambda: len(orchestrator.open) == 1)
    orchestrator.append()
    pages.append(_Page(watches, "two"))
    await wait_until(lambda: all(each.has(6) for each in pages))
    await wait_until(lambda: len(orchestrator.open) == 1)
    orchestrator.end()
    await asyncio.gather(*(each.end() for each in pages))
    assert not orchestrator.open


async def test_streams_that_come_and_go_at_any_moment_miss_nothing_and_get_nothing_twice(
    orchestrator: _Orchestrator, watches: SharedWatches, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_AHEAD_BYTES", "_KEPT_BYTES", "_SPARE_BYTES"):
        monkeypatch.setattr(broadcasting, name, 500)
    chance, pages = random.Random(1), list[_Page]()
    for number in range(400):
        match chance.randrange(7):
            case 0 | 1:
                orchestrator.append("x" * chance.randrange(300))
            case 6:
                orchestrator.write(f"[{number}]")
            case 2:
                after = chance.randint(0, len(orchestrator.logs["acme"]))
                pages.append(_Page(watches, after=after, deltas=chance.random() < 0.5))
            case 3 if pages:
                chance.choice(pages).reads.clear()
            case 4 if pages:
                chance.choice(pages).reads.set()
            case 5 if len(pages) > 8:
                page = pages.pop(chance.randrange(len(pages)))
                page.task.cancel()
                await asyncio.wait({page.task})
        await asyncio.sleep(0)
    for each in pages:
        each.reads.set()
    await wait_until(lambda: all(each.has(len(orchestrator.logs["acme"])) for each in pages))
    assert all(each.content.count(b"[%d]" % number) <= 1 for each in pages for number in range(400))
    orchestrator.end()
    await asyncio.gather(*(each.end() for each in pages))
    assert not orchestrator.open


async def test_no_one_whose_own_call_is_refused_gets_anything_that_others_read(
    orchestrator: _Orchestrator, watches: SharedWatches
) -> None:
    orchestrator.append("secret")
    page = _Page(watches)
    await wait_until(lambda: page.has(1))
    stranger = _Page(watches, "unknown")
    with pytest.raises(ParleyError) as refused:
        await stranger.end()
    assert refused.value.code is grpc.StatusCode.UNAUTHENTICATED
    assert stranger.content == b""
    orchestrator.end()
    await page.end()


async def test_tenants_that_have_a_debate_of_one_name_each_get_their_own(
    orchestrator: _Orchestrator, watches: SharedWatches
) -> None:
    orchestrator.append()
    orchestrator.append(tenant="other")
    mine, foreign = _Page(watches), _Page(watches, "foreign")
    await wait_until(lambda: mine.has(1) and foreign.has(1))
    orchestrator.end()
    await asyncio.gather(mine.end(), foreign.end())
    assert (b"acme" in mine.content, b"other" in mine.content) == (True, False)
    assert (b"acme" in foreign.content, b"other" in foreign.content) == (False, True)


async def test_a_stream_whose_key_is_revoked_gets_nothing_more_once_it_asks_again_and_others_go_on(
    orchestrator: _Orchestrator, watches: SharedWatches
) -> None:
    watches.ask_seconds = 0.0
    orchestrator.append()
    pages = [_Page(watches, "one"), _Page(watches, "two")]
    await wait_until(lambda: all(each.has(1) for each in pages))
    del orchestrator.keys["one"]
    orchestrator.append()
    with pytest.raises(ParleyError) as refused:
        await pages[0].end()
    assert refused.value.code is grpc.StatusCode.UNAUTHENTICATED
    orchestrator.end()
    await pages[1].end()
    assert pages[0].has(1)
    assert pages[1].has(2)


async def test_a_stream_asks_again_within_its_time_also_if_nothing_happens(
    orchestrator: _Orchestrator, watches: SharedWatches
) -> None:
    watches.ask_seconds = 0.0
    page = _Page(watches)
    await wait_until(lambda: orchestrator.open)
    del orchestrator.keys["one"]
    async with asyncio.timeout(WITHIN):
        while not page.task.done():
            orchestrator.beat()
            await asyncio.sleep(0.001)
    assert isinstance(page.task.exception(), ParleyError)


async def test_asking_again_neither_loses_nor_doubles_text(
    orchestrator: _Orchestrator, watches: SharedWatches
) -> None:
    watches.ask_seconds = 0.0
    page = _Page(watches, deltas=True)
    await wait_until(lambda: orchestrator.open)
    for number in range(20):
        orchestrator.write(f"[{number}]")
        await wait_until(lambda number=number: page.content.count(b"[%d]" % number) == 1)  # type: ignore[misc]
    assert len(orchestrator.opened) > 20
    orchestrator.end()
    await page.end()
    assert all(page.content.count(b"[%d]" % number) == 1 for number in range(20))


async def test_a_stream_whose_key_has_become_another_tenants_gets_that_tenants_debate(
    orchestrator: _Orchestrator, watches: SharedWatches
) -> None:
    watches.ask_seconds = 0.0
    page, other = _Page(watches), _Page(watches, "two")
    await wait_until(lambda: len(orchestrator.opened) == 2)
    orchestrator.keys["one"] = "other"
    orchestrator.append()
    await wait_until(lambda: other.has(1))
    orchestrator.append(tenant="other")
    await wait_until(lambda: page.has(1))
    assert b"acme" not in page.content
    orchestrator.end()
    await asyncio.gather(page.end(), other.end())


async def test_a_stream_gets_no_text_of_steps_whose_end_it_has(
    orchestrator: _Orchestrator, watches: SharedWatches
) -> None:
    first = _Page(watches, deltas=True)
    await wait_until(lambda: orchestrator.open)
    orchestrator.write("of the step")
    await wait_until(lambda: b"of the step" in first.content)
    orchestrator.append("its end")
    await wait_until(lambda: first.has(1))
    second = _Page(watches, after=1, deltas=True)
    orchestrator.append()
    await wait_until(lambda: second.has(2))
    assert b"of the step" not in second.content
    orchestrator.end()
    await asyncio.gather(first.end(), second.end())


async def test_streams_without_text_share_another_watch(
    orchestrator: _Orchestrator, watches: SharedWatches
) -> None:
    orchestrator.append()
    silent, first, second = _Page(watches), _Page(watches, deltas=True), _Page(watches, deltas=True)
    await wait_until(lambda: all(each.has(1) for each in (silent, first, second)))
    await wait_until(lambda: len(orchestrator.open) == 2)
    orchestrator.write("so far")
    await wait_until(lambda: b"so far" in first.content and b"so far" in second.content)
    orchestrator.end()
    await asyncio.gather(silent.end(), first.end(), second.end())
    assert b"so far" not in silent.content
    assert first.content.count(b"so far") == second.content.count(b"so far") == 1


async def test_a_stream_that_hangs_up_leaves_the_watch_to_the_others_and_the_last_one_ends_it(
    orchestrator: _Orchestrator, watches: SharedWatches
) -> None:
    first, second = _Page(watches), _Page(watches)
    await wait_until(lambda: len(orchestrator.opened) == 2 and len(orchestrator.open) == 1)
    (shared,) = orchestrator.open
    first.task.cancel()
    await asyncio.wait({first.task})
    orchestrator.append()
    await wait_until(lambda: second.has(1))
    assert orchestrator.open == {shared}
    second.task.cancel()
    await asyncio.wait({second.task})
    assert not orchestrator.open
    third = _Page(watches)
    await wait_until(lambda: third.has(1))
    orchestrator.end()
    await third.end()


async def test_all_are_told_when_the_watch_breaks(
    orchestrator: _Orchestrator, watches: SharedWatches
) -> None:
    orchestrator.append()
    pages = [_Page(watches), _Page(watches)]
    await wait_until(lambda: all(each.has(1) for each in pages) and len(orchestrator.open) == 1)
    (shared,) = orchestrator.open
    shared.broken = True
    shared.news.set()
    told = await asyncio.gather(*(each.end() for each in pages), return_exceptions=True)
    assert [getattr(each, "reason", None) for each in told] == ["ORCHESTRATOR_UNAVAILABLE"] * 2


async def test_a_watch_is_read_no_faster_than_its_foremost_stream_reads(
    orchestrator: _Orchestrator, watches: SharedWatches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcasting, "_AHEAD_BYTES", 1000)
    monkeypatch.setattr(broadcasting, "_WRITTEN_BYTES", 1000)
    monkeypatch.setattr(broadcasting, "_KEPT_BYTES", 100)
    page = _Page(watches)
    page.reads.clear()
    for _ in range(100):
        orchestrator.append("x" * 100)
    await wait_until(lambda: page.ids)
    (call,) = orchestrator.open
    read = 0
    while read != call.read:  # until nothing more is read
        read = call.read
        for _ in range(50):
            await asyncio.sleep(0)
    assert 0 < read < 30
    page.reads.set()
    await wait_until(lambda: page.has(100))
    assert len(orchestrator.opened) == 1, "what it has not read yet is kept"
    orchestrator.end()
    await page.end()


async def test_a_stream_that_stalls_holds_up_no_other_and_keeps_little_and_then_misses_nothing(
    orchestrator: _Orchestrator, watches: SharedWatches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcasting, "_KEPT_BYTES", 1000)
    monkeypatch.setattr(broadcasting, "_SPARE_BYTES", 100)
    orchestrator.append()
    stalled, other = _Page(watches), _Page(watches)
    await wait_until(lambda: stalled.has(1) and other.has(1) and len(orchestrator.open) == 1)
    stalled.reads.clear()
    for number in range(2, 102):
        orchestrator.append("x" * 100)
        await wait_until(partial(other.has, number))
    (shared,) = watches._broadcasts.values()
    assert shared._kept_bytes < 3000
    stalled.reads.set()
    await wait_until(lambda: stalled.has(101))
    orchestrator.append()
    await wait_until(lambda: stalled.has(102) and other.has(102) and len(orchestrator.open) == 1)
    orchestrator.end()
    await asyncio.gather(stalled.end(), other.end())


async def test_what_waits_for_a_stream_is_written_at_once(
    orchestrator: _Orchestrator, watches: SharedWatches
) -> None:
    request = WatchDebateRequest(debate_id="d")
    texts = watches.follow(request, {"authorization": "one"}, "")
    orchestrator.append()
    async with aclosing(texts), asyncio.timeout(WITHIN):
        assert (await anext(texts)).count(b"id: ") == 1
        for _ in range(10):
            orchestrator.append()
        await wait_until(lambda: orchestrator.opened[0].read == 11)
        await asyncio.sleep(0)
        assert (await anext(texts)).count(b"id: ") == 10


async def test_an_orchestrator_that_names_no_tenant_is_asked_by_each_stream(
    orchestrator: _Orchestrator, watches: SharedWatches
) -> None:
    orchestrator.says_tenant = False
    pages = [_Page(watches, deltas=True), _Page(watches, deltas=True)]
    await wait_until(lambda: len(orchestrator.open) == 2)
    orchestrator.append()
    orchestrator.write("so far")
    await wait_until(lambda: all(each.has(1) and b"so far" in each.content for each in pages))
    assert len(orchestrator.open) == 2
    orchestrator.end()
    await asyncio.gather(*(each.end() for each in pages))
