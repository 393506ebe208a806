"""Sources on the web, over real HTTP: what is found of them, and what one that fails does to the others."""

import asyncio
import hashlib
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from parley.orchestrator.research.servers import ToolServer
from parley.orchestrator.research.sources import WebSources, create_search_fetcher
from parley.v1.debate_pb2 import DebateSpec
from parley.v1.source_pb2 import SOURCE_KIND_FEED, SOURCE_KIND_PAGE, SOURCE_KIND_SEARCH, ResearchRequest
from tests.support.web_server import fetcher_of, web_server

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
PARAGRAPH = "Otters float on their backs and hold hands while they sleep in the river. " * 4
FEED = """<rss version="2.0"><channel><title>News of otters</title>
<item><title>Seen &lt;b&gt;again&lt;/b&gt;</title><description>&lt;p&gt;Near the dam.&lt;/p&gt;</description></item>
</channel></rss>"""


def html(title: str, text: str) -> str:
    return f"<html><head><title>{title}</title></head><body><article><h1>{title}</h1><p>{text}</p></article></body></html>"


async def serve(request: web.Request) -> web.StreamResponse:
    url = f"http://{request.host}"
    match request.path:
        case "/search":
            assert request.query["format"] == "json"
            hits = [
                {"url": f"{url}/found", "title": "Found", "content": "shown"},
                {"url": f"{url}/away", "title": "Away\n!", "content": "Otters are\nmammals."},
                {"url": 7},
                "nothing",
                {"url": f"{url}/one-too-many"},
            ]
            return web.json_response({"query": request.query["q"], "results": hits})
        case "/found" | "/page":
            return web.Response(text=html(request.path[1:], PARAGRAPH), content_type="text/html")
        case "/feed":
            return web.Response(text=FEED, content_type="application/rss+xml")
        case "/text":
            return web.Response(text="plain\x1b[31m \ud83d words".encode("utf-8", "replace").decode())
        case "/inside":
            raise web.HTTPFound("http://169.254.169.254/latest/meta-data/")
        case "/empty":
            return web.Response(text="<html></html>", content_type="text/html")
        case "/stall":
            await asyncio.Event().wait()
    raise web.HTTPNotFound


def sources(url: str, **fields: Any) -> WebSources:
    seconds = fields.pop("fetch_seconds", 10)
    search = create_search_fetcher(url, 10)
    given = {"fetcher": fetcher_of(url, seconds=seconds), "reads_pages": True, **fields}
    return WebSources(search_fetcher=search, now=lambda: NOW, **given)


async def test_pages_feeds_and_results_are_found_with_kind_title_address_time_and_hash() -> None:
    async with web_server(serve) as url:
        web_sources = sources(url, search_url=url, feeds=(f"{url}feed",), results=2)
        found = await web_sources.find(ResearchRequest(question="Do otters float?", pages=[f"{url}page"]))
    kinds = [(each.source.kind, each.source.title, each.source.url) for each in found.findings]
    assert kinds == [
        (SOURCE_KIND_PAGE, "page", f"{url}page"),
        (SOURCE_KIND_FEED, "News of otters", f"{url}feed"),
        (SOURCE_KIND_SEARCH, "found", f"{url}found"),
        (SOURCE_KIND_SEARCH, "Away !", f"{url}away"),
    ]
    page, feed, _, away = found.findings
    assert PARAGRAPH.strip() in page.text
    assert feed.text == "Seen again\nNear the dam."
    assert away.text == "Otters are mammals."
    for each in found.findings:
        assert each.source.sha256 == hashlib.sha256(each.text.encode()).hexdigest()
        assert each.source.read_at.ToDatetime(UTC) == NOW
    assert found.warnings == []


async def test_a_source_that_fails_is_a_warning_and_the_others_are_found() -> None:
    pages = ["page", "inside", "empty", "nowhere", "feed"]
    async with web_server(serve) as url:
        web_sources = sources(url, feeds=(f"{url}page",))
        found = await web_sources.find(ResearchRequest(pages=[f"{url}{each}" for each in pages]))
    assert [each.source.url for each in found.findings] == [f"{url}page", f"{url}feed"]
    for path, why in (
        ("inside", "no public address"),
        ("empty", "says nothing"),
        ("nowhere", "status 404"),
        ("page", "could not be parsed"),
    ):
        assert any(each.startswith(f"{url}{path} ") and why in each for each in found.warnings), path
    assert len(found.warnings) == 4


async def test_a_source_that_stalls_costs_its_time_and_no_other_source() -> None:
    async with web_server(serve) as url:
        web_sources = sources(url, fetch_seconds=1)
        found = await web_sources.find(ResearchRequest(pages=[f"{url}stall", f"{url}page"]))
    assert [each.source.title for each in found.findings] == ["page"]
    assert "did not answer within 1 s" in found.warnings[0]


async def test_an_answer_that_is_no_searxngs_is_a_warning() -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.json_response(["results"])

    async with web_server(handle) as url:
        found = await sources(url, search_url=url).find(ResearchRequest(question="?"))
    assert found.warnings == [
        "the web was not searched: the answer is not that of a SearXNG with the format json"
    ]


async def test_a_search_service_that_redirects_is_not_followed() -> None:
    async def handle(request: web.Request) -> web.Response:
        raise web.HTTPFound("/elsewhere")

    async with web_server(handle) as url:
        found = await sources(url, search_url=url).find(ResearchRequest(question="?"))
    assert "redirects" in found.warnings[0]


async def test_a_text_holds_no_control_characters() -> None:
    async with web_server(serve) as url:
        found = await sources(url).find(ResearchRequest(pages=[f"{url}text"]))
    assert "\x1b" not in found.findings[0].text
    assert found.findings[0].text.startswith("plain")


async def test_a_long_page_is_cut() -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(text="word " * 50_000)

    async with web_server(handle) as url:
        fetcher = fetcher_of(url, max_bytes=2**20)
        found = await sources(url, fetcher=fetcher).find(ResearchRequest(pages=[url]))
    assert 190_000 < len(found.findings[0].text) <= 200_000


async def test_pages_that_the_operator_does_not_allow_are_not_read() -> None:
    found = await sources("http://127.0.0.2:1/", reads_pages=False).find(
        ResearchRequest(pages=["http://a.test/"])
    )
    assert not found.findings
    assert "PARLEY_RESEARCH_PAGES" in found.warnings[0]


def test_what_may_be_found_is_bounded_by_pages_results_feeds_and_servers() -> None:
    spec = DebateSpec(research=True, research_pages=["http://a.test/", "http://b.test/"])
    servers = (ToolServer("wiki", ("wiki",), "search", "query"),)
    everything = {"search_url": "http://s/", "results": 5, "feeds": ("http://f/",), "servers": servers}
    one = sources("http://127.0.0.2:1/", reads_pages=False, feeds=("http://f/",)).most_characters(spec)
    assert one >= 12_000
    assert sources("http://127.0.0.2:1/", **everything).most_characters(spec) == 9 * one
    assert sources("http://127.0.0.2:1/", **everything).most_characters(DebateSpec()) == 0


@pytest.mark.parametrize(
    ("fields", "pages", "expected"),
    [({}, [], False), ({}, ["http://a.test/"], True), ({"feeds": ("http://a.test/",)}, [], True)],
)
def test_nothing_is_looked_for_if_nothing_could_be_found(
    fields: dict[str, Any], pages: list[str], expected: bool
) -> None:
    spec = DebateSpec(research_pages=pages)
    assert sources("http://127.0.0.2:1/", **fields).has_something_for(spec) is expected
