"""Model servers on this machine: found on their ports, whatever else is there passed over."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from parley.gateway import discovery
from parley.gateway.discovery import USUAL_SERVERS, UsualServer, find_servers, servers_on
from tests.support.http_server import serve_app
from tests.support.model_server import ModelServer
from tests.support.ports import free_ports

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_server(server: ModelServer, provider: str = "ollama", title: str = "Ollama") -> UsualServer:
    return UsualServer(provider, title, server.port)


@asynccontextmanager
async def serve_handler(handler: Handler, host: str = "127.0.0.1") -> AsyncIterator[int]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    async with serve_app(app, host) as port:
        yield port


async def test_servers_are_found_in_the_order_of_preference_with_the_models_they_list() -> None:
    async with ModelServer(models=("llama3.2:3b", "qwen3:8b")) as one, ModelServer(models=("m",)) as other:
        usual = (
            make_server(one),
            UsualServer("vllm", "vLLM", next(free_ports())),
            make_server(other, "lm-studio", "LM Studio"),
        )
        found = await find_servers(usual)
    assert [(each.provider, list(each.models)) for each in found] == [
        ("ollama", ["llama3.2:3b", "qwen3:8b"]),
        ("lm-studio", ["m"]),
    ]
    assert found[0].base_url == f"http://127.0.0.1:{one.port}/v1"


async def test_models_that_only_make_vectors_are_left_out() -> None:
    vectors = (
        "nomic-embed-text:latest",
        "mxbai-embed-large",
        "all-minilm:33m",
        "bge-m3",
        "BAAI/bge-large-en",
        "text-embedding-qwen3-0.6b",
        "intfloat/e5-large",
        "bge-reranker-v2",
    )
    async with (
        ModelServer(models=(*vectors, "gemma3:4b", "bigger-e5ence")) as both,
        ModelServer(models=vectors) as none,
    ):
        found = await find_servers((make_server(both), make_server(none, "vllm")))
    assert [list(each.models) for each in found] == [["gemma3:4b", "bigger-e5ence"]]


@pytest.mark.parametrize(
    "answer",
    [
        lambda: web.Response(text="<html>Tomcat</html>"),
        lambda: web.Response(status=404),
        lambda: web.Response(status=401, text='{"data": [{"id": "m"}]}'),
        lambda: web.json_response([]),
        lambda: web.json_response({"data": {"id": "m"}}),
        lambda: web.json_response({"data": [{"id": 7}, {"id": ""}, {"id": "a\nb"}, None]}),
        lambda: web.Response(text="[" * 100_000),
        lambda: web.Response(body=b"\xff\xfe"),
        lambda: web.Response(text='{"data": [{"id": "m"}], "x": "' + "x" * 2_000_000 + '"}'),
    ],
    ids=["page", "missing", "locked", "list", "object", "no names", "deep", "bytes", "huge"],
)
async def test_something_else_on_a_port_is_passed_over(answer: Callable[[], web.Response]) -> None:
    async def handler(_: web.Request) -> web.Response:
        return answer()

    async with serve_handler(handler) as port:
        assert await find_servers([UsualServer("vllm", "vLLM", port)]) == ()


async def test_nobody_is_followed_to_another_place() -> None:
    async with ModelServer(models=("m",)) as other:

        async def handler(_: web.Request) -> web.Response:
            raise web.HTTPFound(f"{other.base_url}/models")

        async with serve_handler(handler) as port:
            assert await find_servers([UsualServer("vllm", "vLLM", port)]) == ()
        assert other.ledger.calls == ()


async def test_silent_ports_cost_one_short_wait_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "_SECONDS", 0.5)
    both, asked = asyncio.Barrier(2), 0

    async def handler(_: web.Request) -> web.Response:
        nonlocal asked
        await both.wait()
        asked += 1
        await asyncio.Event().wait()
        return web.Response()

    async with (
        serve_handler(handler) as one,
        serve_handler(handler) as two,
        ModelServer(models=("m",)) as server,
    ):
        found = await find_servers(
            [UsualServer("a", "A", one), UsualServer("b", "B", two), make_server(server)]
        )
    assert asked == 2
    assert [list(each.models) for each in found] == [["m"]]


async def test_a_server_that_listens_on_the_other_loopback_address_alone_is_found() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m"}]})

    try:
        async with serve_handler(handler, "::1") as port:
            found = await find_servers([UsualServer("ollama", "Ollama", port)])
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    assert [each.base_url for each in found] == [f"http://[::1]:{port}/v1"]


def test_a_usual_port_keeps_its_name_and_any_other_has_one_of_its_own() -> None:
    assert servers_on([1234, 4321]) == (
        UsualServer("lm-studio", "LM Studio", 1234),
        UsualServer("port-4321", "a model server", 4321),
    )
    assert [each.port for each in USUAL_SERVERS] == [11434, 1234, 8000, 8080]
