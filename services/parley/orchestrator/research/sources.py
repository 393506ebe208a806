"""Sources of a debate: a search of the web, pages that the caller names, feeds, and MCP servers, all read at the same time."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from msgspec import Struct, field
from yarl import URL

from parley.orchestrator.outgoing.reach import Reach, parse_networks
from parley.orchestrator.research.errors import FetchError
from parley.orchestrator.research.fetcher import Fetcher, Page
from parley.orchestrator.research.parsing import MAX_TITLE, SHOWN_CHARACTERS, Reading, parse
from parley.orchestrator.research.servers import ToolServer, ask_server
from parley.v1.debate_pb2 import DebateSpec
from parley.v1.source_pb2 import (
    SOURCE_KIND_FEED,
    SOURCE_KIND_PAGE,
    SOURCE_KIND_SEARCH,
    SOURCE_KIND_TOOL,
    Finding,
    Findings,
    ResearchRequest,
    Source,
    SourceKind,
)

_MAX_QUERY: Final = 300
_MAX_URL: Final = 2048
_PARSED_AT_A_TIME: Final = 2
_ASKED_AT_A_TIME: Final = 4
"""MCP servers that run at a time, for all debates."""


class WebSources(Struct, frozen=True):
    """The sources that the operator has switched on.

    Attributes:
        fetcher: Reads pages and feeds.
        search_fetcher: Reads the answer of the search service, which the operator names, wherever it is.
        search_url: The base address of a SearXNG; empty: nothing is searched.
        feeds: Addresses of feeds.
        reads_pages: Whether pages are read that the caller names.
        servers: MCP servers that are asked each question.
        results: How many results of a search are read.
        seconds: How long one source may take.
        now: The time.
        shown_characters: How many characters of a source are shown at most; a page that is found may have more.
    """

    fetcher: Fetcher
    search_fetcher: Fetcher
    now: Callable[[], datetime]
    search_url: str = ""
    feeds: tuple[str, ...] = ()
    reads_pages: bool = False
    servers: tuple[ToolServer, ...] = ()
    results: int = 5
    seconds: float = 20.0
    shown_characters: int = SHOWN_CHARACTERS
    _parsing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_PARSED_AT_A_TIME))
    _asking: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_ASKED_AT_A_TIME))

    def has_something_for(self, spec: DebateSpec) -> bool:
        """Return whether anything would be read for a debate."""
        return self._count_most(spec) > 0

    def most_characters(self, spec: DebateSpec) -> int:
        """Return how many characters prompts may show of what is found for a debate, at most."""
        return self._count_most(spec) * (self.shown_characters + MAX_TITLE + _MAX_URL) if spec.research else 0

    def _count_most(self, spec: DebateSpec) -> int:
        pages = len(spec.research_pages) if self.reads_pages else 0
        hits = self.results if self.search_url else 0
        return pages + hits + len(self.feeds) + len(self.servers)

    async def find(self, request: ResearchRequest) -> Findings:
        """Return what the sources say, each with its address, time and hash, and a warning for each that failed.

        A page may have more characters than are shown: who asks chooses what is shown of it.
        """
        findings = Findings()
        if request.pages and not self.reads_pages:
            findings.warnings.append("the pages named were not read: PARLEY_RESEARCH_PAGES is not set here")
        pages = list(dict.fromkeys(request.pages)) if self.reads_pages else []
        reading = [self._read(each, SOURCE_KIND_PAGE) for each in pages]
        reading += [self._read(each, SOURCE_KIND_FEED) for each in self.feeds]
        reading += [self._ask(each, request.question) for each in self.servers]
        async with asyncio.TaskGroup() as tasks:
            searching = tasks.create_task(self._search(request.question))
            read = [tasks.create_task(each) for each in reading]
        found = [each.result() for each in read]
        known: set[str] = set()
        for each in (*found, *searching.result()):
            if isinstance(each, str):
                findings.warnings.append(each)
            elif (place := each.source.url or each.source.tool) not in known:
                known.add(place)
                findings.findings.append(each)
        return findings

    async def _search(self, question: str) -> Sequence[Finding | str]:
        """Return what the first results of a search for the question say; of a page that cannot be read, what the search shows of it."""
        if not self.search_url:
            return []
        asked = urlencode({"q": " ".join(question.split())[:_MAX_QUERY], "format": "json"})
        try:
            async with asyncio.timeout(self.seconds):
                page = await self.search_fetcher.fetch(f"{self.search_url.rstrip('/')}/search?{asked}")
                hits = await asyncio.to_thread(_read_hits, page, self.results)
        except (FetchError, TimeoutError) as error:
            return [f"the web was not searched: {str(error) or 'it took too long'}"]
        async with asyncio.TaskGroup() as tasks:
            read = [tasks.create_task(self._read_hit(*each)) for each in hits]
        return [each.result() for each in read]

    async def _read_hit(self, url: str, shown: Reading) -> Finding | str:
        read = await self._read(url, SOURCE_KIND_SEARCH)
        if isinstance(read, Finding) or not shown.text:
            return read
        return self._create_finding(
            Source(kind=SOURCE_KIND_SEARCH, title=shown.title, url=url[:_MAX_URL]), shown.text
        )

    async def _read(self, url: str, kind: SourceKind.ValueType) -> Finding | str:
        """Return what an address says, or why it says nothing."""
        try:
            async with asyncio.timeout(self.seconds):
                page = await self.fetcher.fetch(url)
                async with self._parsing:
                    reading = await parse(page, feed=kind == SOURCE_KIND_FEED)
        except (FetchError, TimeoutError) as error:
            return f"{_to_line(url)} was not read: {str(error) or 'it took too long'}"
        return self._create_finding(
            Source(kind=kind, title=reading.title, url=page.url[:_MAX_URL]), reading.text
        )

    async def _ask(self, server: ToolServer, question: str) -> Finding | str:
        """Return what an MCP server answers to the question, or why it does not."""
        try:
            async with asyncio.timeout(self.seconds), self._asking:
                reading = await ask_server(server, question, self.seconds)
        except (FetchError, TimeoutError) as error:
            why = str(error) or f"it did not answer within {self.seconds:g} s"
            return f"the MCP server {server.place} gave no source: {_to_line(why)}"
        return self._create_finding(Source(kind=SOURCE_KIND_TOOL, tool=server.place), reading.text)

    def _create_finding(self, source: Source, text: str) -> Finding:
        source.sha256 = hashlib.sha256(text.encode()).hexdigest()
        source.read_at.FromDatetime(self.now())
        return Finding(source=source, text=text)


def create_search_fetcher(url: str, seconds: float) -> Fetcher:
    """Return what asks the search service: it is where the operator says, public or not, and never redirects elsewhere."""
    everywhere = Reach(parse_networks("0.0.0.0/0,::/0"), frozenset({URL(url).port or 0}))
    return Fetcher(everywhere, seconds, max_redirects=0)


def _read_hits(page: Page, count: int) -> list[tuple[str, Reading]]:
    """Return addresses that a SearXNG found, with what it shows of them."""
    try:
        results = json.loads(page.body)["results"]
        hits = [each for each in results if isinstance(each, dict) and isinstance(each.get("url"), str)]
    except (ValueError, RecursionError, KeyError, TypeError):
        raise FetchError("the answer is not that of a SearXNG with the format json") from None
    return [
        (each["url"], Reading(_text(each, "title")[:MAX_TITLE], _text(each, "content")))
        for each in hits[:count]
    ]


def _text(hit: dict[str, Any], name: str) -> str:
    found = hit.get(name)
    return _to_line(found)[:SHOWN_CHARACTERS] if isinstance(found, str) else ""


def _to_line(text: str) -> str:
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line.encode("utf-8", "replace").decode()[:500]
