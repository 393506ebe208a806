"""An endpoint that sends its caller elsewhere: neither prompt nor key go there."""

from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from parley.gateway.settings import GatewaySettings
from tests.integration.gateway.harness import failure_of, request, run_gateway


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("elsewhere", ["another host", "the same host"])
async def test_no_redirect_is_followed(status: int, elsewhere: str, tmp_path: Path) -> None:
    stolen: list[str] = []

    async def steal(asked: web.Request) -> web.Response:
        stolen.append(f"{asked.headers} {await asked.text()}")
        return web.json_response({"choices": []})

    async def redirect(asked: web.Request) -> web.Response:
        if asked.path.startswith("/elsewhere"):
            return await steal(asked)
        target = thief.make_url("/x") if elsewhere == "another host" else asked.url.with_path("/elsewhere")
        return web.Response(status=status, headers={"Location": str(target)})

    answering = web.Application()
    answering.router.add_route("*", "/{path:.*}", steal)
    sending_on = web.Application()
    sending_on.router.add_route("*", "/{path:.*}", redirect)
    async with TestServer(answering) as thief, TestServer(sending_on) as endpoint:
        file = tmp_path / "agents.yaml"
        file.write_text(
            "providers:\n"
            f"  - {{name: p, kind: azure-openai, base_url: '{endpoint.make_url('/v1')}', api_key_env: MY_KEY}}\n"
            "routes:\n  - {provider: p, model: m}\n"
        )
        settings = GatewaySettings(
            agents_file=file, local_model="off", openai_api_key=None, openrouter_api_key=None
        )
        async with run_gateway(settings, environment={"MY_KEY": "house-key-0123456789"}) as gateway:
            failed = await failure_of(gateway, request(timeout=60))
        assert stolen == []
        assert f"{status} the endpoint redirects to 127.0.0.1:" in failed.message
        assert "base_url must be the address itself" in failed.message
