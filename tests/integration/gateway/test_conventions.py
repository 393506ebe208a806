"""Requests to models are measured and traced by the semantic conventions for generative AI."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from parley.gateway.wire import instrumentation
from tests.integration.gateway.harness import failure_of, request, run_with_server
from tests.support.model_server import ModelServer
from tests.support.model_server.faults import error
from tests.support.model_server.rules import Rule
from tests.support.spans import forget_spans, list_ended_spans


@dataclass
class Recorder:
    """Takes the place of an instrument."""

    points: list[tuple[float, dict[str, Any]]] = field(default_factory=list)

    def record(self, value: float, attributes: Mapping[str, Any]) -> None:
        self.points.append((value, dict(attributes)))


@pytest.fixture
def durations(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(instrumentation, "_duration", recorder)
    return recorder


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(instrumentation, "_tokens", recorder)
    return recorder


async def test_a_request_is_measured_with_its_model_its_server_and_its_tokens(
    durations: Recorder, tokens: Recorder
) -> None:
    async with ModelServer() as server, run_with_server(server) as gateway:
        heard = await gateway.ask(request("Is water wet?"))
    (seconds, attributes) = durations.points[-1]
    assert seconds > 0
    assert (
        attributes.items()
        >= {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "m-1",
            "server.address": "127.0.0.1",
        }.items()
    )
    assert "error.type" not in attributes
    counted = {each["gen_ai.token.type"]: value for value, each in tokens.points[-2:]}
    assert counted == {"input": heard.answer.usage.input_tokens, "output": heard.answer.usage.output_tokens}


async def test_a_request_that_fails_is_measured_with_its_error(durations: Recorder) -> None:
    rules = [Rule(fault=error(401))]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        await failure_of(gateway)
    assert durations.points[-1][1]["error.type"] == "401"


async def test_a_span_says_where_it_was_asked_which_answer_it_was_and_why_it_ended() -> None:
    async with ModelServer() as server, run_with_server(server) as gateway:
        forget_spans()
        await gateway.ask(request("Is water wet?"))
    span = [each for each in list_ended_spans() if each.name == "chat m-1"][-1]
    assert span.attributes is not None
    assert span.attributes["server.address"] == "127.0.0.1"
    assert span.attributes["server.port"]
    assert span.attributes["gen_ai.response.id"]
    assert span.attributes["gen_ai.response.finish_reasons"] == ("stop",)
