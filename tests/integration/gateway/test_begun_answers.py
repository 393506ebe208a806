"""Answers that are begun for a model: gone on with where that can be done, left alone elsewhere."""

from typing import Any

import pytest

from parley.gateway.settings import GatewaySettings
from parley.v1 import gateway_pb2
from tests.integration.gateway.harness import (
    failure_of,
    request,
    run_gateway,
    run_with_server,
    serve_as_local_model,
)
from tests.support.model_server import ModelServer

START = "I recommend to"
KEYLESS: dict[str, Any] = {"openai_api_key": None, "openai_base_url": None, "openrouter_api_key": None}


@pytest.mark.parametrize("said", [" wait.", f"{START} wait."], ids=["the rest", "all of it"])
async def test_the_model_on_this_machine_goes_on_from_what_was_begun(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(answer=said) as server:
        serve_as_local_model(server, monkeypatch)
        async with run_gateway(GatewaySettings(**KEYLESS)) as gateway:
            heard = await gateway.ask(request(answer_start=START))
            routes = await gateway.routes()
        (call,) = server.ledger.calls
    assert heard.answer.text == f"{START} wait."
    assert heard.text().startswith(START)
    assert call.body["messages"][-1] == {"role": "assistant", "content": START}
    assert routes["local/tiny"].demonstration


@pytest.mark.parametrize(
    ("wanted", "ignored"), [("qwen3:8b", "qwen3:8b"), ("tiny", ""), ("local/tiny", ""), (None, "")]
)
async def test_a_model_that_is_wanted_and_that_the_small_model_stands_in_for_is_named(
    wanted: str | None, ignored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer() as server:
        serve_as_local_model(server, monkeypatch)
        async with run_gateway(GatewaySettings(**KEYLESS, model=wanted)) as gateway:
            listed = await gateway.stub.ListRoutes(gateway_pb2.ListRoutesRequest())
    assert listed.ignored_model == ignored


async def test_any_other_model_begins_its_own_answer() -> None:
    async with ModelServer(answer="Wait.") as server, run_with_server(server) as gateway:
        heard = await gateway.ask(request(answer_start=START))
        assert START not in server.ledger.calls[0].prompt
        assert not (await gateway.routes())["openai/m-1"].demonstration
    assert heard.answer.text == heard.text() == "Wait."


async def test_a_start_is_plain_text_of_some_length_at_most() -> None:
    schema = gateway_pb2.AnswerSchema(name="a", json_schema='{"type": "object"}')
    async with ModelServer() as server, run_with_server(server) as gateway:
        beside = await failure_of(gateway, request(answer_start=START, schema=schema))
        long = await failure_of(gateway, request(answer_start="x" * 1001))
    assert [each.field for each in beside.violations] == ["answer_start"]
    assert "1000 characters" in str(long)


@pytest.mark.model
async def test_the_real_model_goes_on_in_the_middle_of_the_sentence() -> None:
    async with run_gateway(GatewaySettings(**KEYLESS)) as gateway:
        asked = request("Should a team write its tests first?", answer_start=START, max_output_tokens=24)
        heard = await gateway.ask(asked)
    assert heard.answer.text.startswith(f"{START} ")
    assert heard.answer.text.count(START) == 1
    assert heard.text() == heard.answer.text
