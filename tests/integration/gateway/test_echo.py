"""The echo: an answer that asks no model, says so, and has whatever shape is asked for."""

import json
from pathlib import Path
from typing import Any

import pytest

from parley.gateway.settings import GatewaySettings
from parley.runtime.errors import ConfigurationError
from parley.v1 import gateway_pb2
from tests.integration.gateway.harness import failure_of, request, run_gateway, run_with_server
from tests.support.model_server import ModelServer

SHAPES = [
    {"type": "object", "properties": {"stand": {"type": "string", "maxLength": 9}}, "required": ["stand"]},
    {
        "type": "object",
        "properties": {
            "scores": {"type": "object", "properties": {"A": {"type": "integer", "minimum": 3}}, "required": ["A"]},
            "ranking": {"type": "array", "items": {"enum": ["A", "B"]}, "minItems": 2},
            "limit": {"type": "number", "maximum": -2},
            "sure": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
            "part": {"$ref": "#/$defs/part"},
        },
        "required": ["scores", "ranking", "limit", "sure", "part"],
        "$defs": {"part": {"type": "object", "properties": {"kind": {"const": "x"}}, "required": ["kind"]}},
    },
]  # fmt: skip


def make_settings(**fields: Any) -> GatewaySettings:
    fields = {"echo": True, **fields}
    return GatewaySettings(
        local_servers="off", local_model="off", openai_api_key=None, openrouter_api_key=None, **fields
    )


async def test_every_answer_says_that_no_model_was_asked_and_its_route_is_a_demonstration() -> None:
    async with run_gateway(make_settings()) as gateway:
        heard = await gateway.ask(request("Is water wet?"))
        route = (await gateway.routes())["echo/echo"]
    assert heard.answer.text.startswith("Echo (no model was asked): Is water wet?")
    assert heard.text() == heard.answer.text
    assert (heard.answer.route, heard.answer.usage.cost_micros) == ("echo/echo", 0)
    assert route.demonstration


@pytest.mark.parametrize("shape", SHAPES)
async def test_an_answer_has_the_shape_that_is_asked_for(shape: dict[str, Any]) -> None:
    schema = gateway_pb2.AnswerSchema(name="shape", json_schema=json.dumps(shape))
    async with run_gateway(make_settings()) as gateway:
        heard = await gateway.ask(
            request("Well?", schema=schema)
        )  # the gateway itself refuses any other shape
    assert heard.answer.usage.requests == 1
    assert json.loads(heard.answer.text).keys() == shape["properties"].keys()


async def test_beside_a_real_provider_it_answers_only_where_it_is_named() -> None:
    async with ModelServer() as server, run_with_server(server, echo=True) as gateway:
        usual = await gateway.ask(request("Is water wet?"))
        named = await gateway.ask(request("Is water wet?", routes=["echo/echo"]))
    assert usual.answer.route == "openai/m-1"
    assert named.answer.text.startswith("Echo (no model was asked)")


async def test_it_is_not_there_unless_it_is_switched_on() -> None:
    async with run_gateway(make_settings(echo=False)) as gateway:
        failure = await failure_of(gateway, request(routes=["echo/echo"]))
        assert await gateway.routes() == {}
    assert "echo/echo" in str(failure)


async def test_a_provider_of_the_file_with_its_name_stops_the_start(tmp_path: Path) -> None:
    file = tmp_path / "agents.yaml"
    file.write_text('providers: [{name: echo, kind: openai-compatible, base_url: "http://localhost:1/v1"}]')
    with pytest.raises(ConfigurationError, match="PARLEY_ECHO: the agents file has a provider echo too"):
        async with run_gateway(make_settings(agents_file=file)):
            pass
