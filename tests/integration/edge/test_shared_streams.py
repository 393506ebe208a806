"""Many pages on one debate: one watch at the orchestrator, which lets in each caller by itself."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from parley.edge import shared_watches
from parley.orchestrator import metrics
from parley.orchestrator.keys import authenticator
from parley.orchestrator.keys.store import KEYS, KeyStore
from parley.runtime.identity.roles import CLIENT_ROLES
from parley.storage.opening import open_store
from tests.integration.edge.conftest import Edge
from tests.integration.edge.test_events import parse
from tests.support.orchestration import WITHIN, until
from tests.support.scripted_gateway import ScriptedGateway


@pytest.fixture
def orchestrator_settings() -> dict[str, Any]:
    return {"auth": "key", "heartbeat_seconds": 0.2}


@pytest.fixture
def watchers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many watches the orchestrator has open, in a list of one."""
    count = [0]

    @contextmanager
    def note() -> Iterator[None]:
        count[0] += 1
        try:
            yield
        finally:
            count[0] -= 1

    monkeypatch.setattr(metrics, "count_watcher", note)
    return count


@dataclass
class Keys:
    """The keys of the orchestrator's store."""

    store: KeyStore

    async def add(self, tenant: str = "acme") -> dict[str, str]:
        """Return what the holder of a new key sends."""
        _, text = await self.store.add(tenant, "test", frozenset(CLIENT_ROLES), datetime.now(UTC))
        return {"Authorization": f"Bearer {text}"}

    async def revoke(self, headers: dict[str, str]) -> None:
        assert await self.store.revoke(headers["Authorization"].split("_")[1], datetime.now(UTC))


@pytest.fixture
async def keys(tmp_path: Path, edge: Edge) -> AsyncIterator[Keys]:
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        await store.documents.prepare(KEYS)
        yield Keys(KeyStore(store.documents))


class Page:
    """A stream of a debate's events, read as it comes."""

    def __init__(self, edge: Edge, debate: str, headers: dict[str, str], query: str = "") -> None:
        self.status = 0
        self.content = b""
        self.task = asyncio.create_task(
            self._follow(edge, f"{edge.url}/v1/debates/{debate}/events{query}", headers)
        )

    async def _follow(self, edge: Edge, url: str, headers: dict[str, str]) -> None:
        async with edge.session.get(url, headers=headers) as answer:
            self.status = answer.status
            async for part in answer.content.iter_any():
                self.content += part

    async def ends(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Return the events of the whole stream."""
        async with asyncio.timeout(WITHIN):
            await self.task
        return parse(self.content.decode())


def texts_of(events: list[tuple[str, str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the text that came as it was written."""
    return [told for _, kind, told in events if kind == "delta"]


async def is_shared(pages: list[Page], watchers: list[int], events: int) -> bool:
    return watchers == [1] and all(each.content.count(b"id: ") >= events for each in pages)


async def test_pages_of_one_debate_share_a_watch_and_each_gets_every_event_and_all_text_once(
    edge: Edge, keys: Keys, gateway: ScriptedGateway, watchers: list[int]
) -> None:
    hold = gateway.hold("round/1/propose/*")
    holder = await keys.add()
    debate = await edge.create(**holder)
    pages = [Page(edge, debate, await keys.add(), "?deltas=1") for _ in range(5)]
    pages += [Page(edge, debate, holder, "?deltas=1&after=2") for _ in range(5)]
    await until(lambda: is_shared(pages, watchers, 2), "all share a watch")
    gateway.deltas = 5  # text that comes before may be older than what a stream has by then
    hold.release()
    followed = [await each.ends() for each in pages]
    last = int(followed[0][-2][0])
    for events, after in zip(followed, [0] * 5 + [2] * 5, strict=True):
        assert [int(each[0]) for each in events if each[0]] == [*range(after + 1, last + 1)]
        assert events[-1] == ("", "end", {})
        assert texts_of(events) == texts_of(followed[0]) != []


async def test_who_may_not_follow_gets_nothing_while_others_do(
    edge: Edge, keys: Keys, gateway: ScriptedGateway, watchers: list[int]
) -> None:
    hold, holder = gateway.hold("*"), await keys.add()
    debate = await edge.create(**holder)
    pages = [Page(edge, debate, holder)]
    await until(lambda: is_shared(pages, watchers, 1), "one follows")
    unknown = {"Authorization": "Bearer parley_000000000000_" + "A" * 43}
    for headers, status in (({}, 401), (unknown, 401), (await keys.add("other"), 404)):
        page = Page(edge, debate, headers)
        await asyncio.wait({page.task}, timeout=WITHIN)
        assert page.status == status
        assert b"id: " not in page.content
    hold.release()
    assert (await pages[0].ends())[-1][1] == "end"


async def test_a_page_whose_key_is_revoked_is_told_so_when_it_asks_again_and_the_others_go_on(
    edge: Edge,
    keys: Keys,
    gateway: ScriptedGateway,
    watchers: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(authenticator, "CACHE_SECONDS", 0.0)
    monkeypatch.setattr(shared_watches.SharedWatches, "_wait_to_ask", lambda _: 0.0)
    hold, holder, revoked = gateway.hold("*"), await keys.add(), await keys.add()
    debate = await edge.create(**holder)
    leaving = Page(edge, debate, revoked)
    await until(lambda: is_shared([leaving], watchers, 1), "one follows")
    staying = Page(edge, debate, holder)
    await until(lambda: is_shared([leaving, staying], watchers, 1), "both share a watch")
    await keys.revoke(revoked)
    events = await leaving.ends()
    assert (events[-1][1], events[-1][2]["code"]) == ("error", "unauthenticated")
    hold.release()
    assert (await staying.ends())[-1][1] == "end"
