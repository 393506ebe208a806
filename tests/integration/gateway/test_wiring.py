"""Agents, routes, spans and secrets of a whole gateway."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.gateway.__main__ import build
from parley.gateway.calls.registry import CallRegistry
from parley.gateway.settings import GatewaySettings
from parley.runtime.channel import channel
from parley.runtime.errors import ConfigurationError, PartFailedError
from parley.v1 import gateway_pb2, gateway_pb2_grpc
from tests.integration.gateway.harness import (
    KEY,
    failure_of,
    request,
    routes_file,
    run_gateway,
    run_with_server,
    serve_as_local_model,
    settings_for,
)
from tests.integration.gateway.processes import gateway_process
from tests.support.catching import catch_error
from tests.support.model_server import Fault, FaultKind, ModelServer, Rule, error
from tests.support.spans import forget_spans, spans_when


async def read_to_end(stream: AsyncIterator[Any]) -> None:
    async for _ in stream:
        pass


async def test_agents_are_listed_in_order_and_found_by_id() -> None:
    async with ModelServer() as server, run_with_server(server) as gateway:
        listed = await gateway.stub.ListAgents(gateway_pb2.ListAgentsRequest())
        ids = [agent.id for agent in listed.agents]
        assert ids == sorted(ids)
        assert list(listed.default_team) == ["architect", "performance"]
        assert listed.default_judge == "judge"
        found = await gateway.stub.GetAgent(gateway_pb2.GetAgentRequest(agent_id="security"))
        assert found.agent.role == "security"
        error = await catch_error(gateway.stub.GetAgent(gateway_pb2.GetAgentRequest(agent_id="nobody")))
        assert error.code is grpc.StatusCode.NOT_FOUND


async def test_routes_say_what_serves_an_agent_without_routes(tmp_path: Path) -> None:
    async with ModelServer() as first, ModelServer() as second:
        environment = {"KEY_1": "a", "KEY_2": "b"}
        async with run_gateway(routes_file(tmp_path, first, second), environment=environment) as gateway:
            listed = await gateway.stub.ListRoutes(gateway_pb2.ListRoutesRequest())
            assert list(listed.default_routes) == ["p1/m", "p2/m"]
            assert list(listed.open_providers) == ["p1", "p2"]
            assert [route.name for route in listed.routes] == ["p1/m", "p2/m"]


async def test_a_prompt_is_fitted_to_its_route_and_says_what_was_left_out(tmp_path: Path) -> None:
    async with ModelServer(context_tokens=512) as server:
        settings = routes_file(tmp_path, server, extra="    context_tokens: 512\n")
        async with run_gateway(settings, environment={"KEY_1": "a"}) as gateway:
            asked = request("word " * 3000)
            asked.prompt[0].shrink_priority = 1
            asked.prompt.add(role=gateway_pb2.PROMPT_ROLE_USER, text="The question itself?")
            answer = (await gateway.ask(asked)).answer
            assert answer.prompt_characters_left_out > 10_000
            assert "The question itself?" in server.ledger.calls[0].prompt
            assert "characters left out" in server.ledger.calls[0].prompt

            asked.prompt[0].shrink_priority = 0
            failure = await failure_of(gateway, asked)
            assert failure.reason == "CONTEXT_OVERFLOW"
            assert len(server.ledger.calls) == 1


async def test_cost_is_counted_where_prices_are_known(tmp_path: Path) -> None:
    async with ModelServer() as server:
        settings = routes_file(
            tmp_path, server, extra="    input_price: 2\n    output_price: 8\n    stronger: true\n"
        )
        async with run_gateway(settings, environment={"KEY_1": "a"}) as gateway:
            usage = (await gateway.ask()).answer.usage
            assert usage.cost_micros == 2 * usage.input_tokens + 8 * usage.output_tokens > 0
            listed = await gateway.stub.ListRoutes(gateway_pb2.ListRoutesRequest())
            assert all(each.stronger for each in listed.routes)


async def test_every_http_request_has_its_span_under_the_call() -> None:
    rules = [Rule(fault=error(500), times=1)]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        forget_spans()
        await gateway.ask(request(step="round/1/propose/ada"))
        spans = await spans_when(lambda ended: any(span.name.endswith("Generate") for span in ended))
    failed, answered = [span for span in spans if span.name == "chat m-1"]
    assert not failed.status.is_ok
    assert failed.attributes is not None
    assert answered.attributes is not None
    assert failed.attributes["error.type"] == "500"
    assert answered.status.status_code.name == "UNSET"
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m-1",
        "gen_ai.agent.name": "Ada",
        "gen_ai.conversation.id": "deb-1",
    }
    for span in (failed, answered):
        assert span.attributes is not None
        assert {name: span.attributes[name] for name in expected} == expected
        assert span.parent is not None
    assert answered.attributes["gen_ai.usage.output_tokens"] == server.ledger.calls[1].tokens_out
    text = "".join(span.to_json() for span in spans)
    assert "water" not in text
    assert KEY not in text


async def test_spans_carry_prompt_and_answer_only_when_asked_to() -> None:
    async with (
        ModelServer(answer="It is.") as server,
        run_gateway(settings_for(server, trace_content=True)) as gateway,
    ):
        forget_spans()
        await gateway.ask()
        spans = await spans_when(lambda ended: any(span.name == "chat m-1" for span in ended))
    chat = next(span for span in spans if span.name == "chat m-1")
    assert chat.attributes is not None
    assert "Is water wet?" in str(chat.attributes["gen_ai.input.messages"])
    assert json.loads(str(chat.attributes["gen_ai.output.messages"]))[0]["parts"][0]["content"] == "It is."


async def test_a_key_shows_in_no_error_log_or_span(capfd: pytest.CaptureFixture[str]) -> None:
    said = f"key {KEY} is wrong; you sent 'Bearer {KEY}'"
    rules = [Rule(fault=error(status, said)) for status in (401, 400, 500)]
    forget_spans()
    for rule in rules:
        async with ModelServer(rules=[rule]) as server, run_with_server(server) as gateway:
            failure = await failure_of(gateway)
            assert KEY not in f"{failure.message} {failure.metadata}"
            assert KEY not in str(await gateway.routes())
    spans = await spans_when(lambda ended: any(span.name == "chat m-1" for span in ended))
    assert KEY not in "".join(span.to_json() for span in spans)
    output = capfd.readouterr()
    assert KEY not in output.out + output.err


async def test_a_provider_without_a_key_gets_no_authorization_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    path = tmp_path / "agents.yaml"
    async with ModelServer(require_key=KEY) as server:
        path.write_text(f"providers:\n  - name: mine\n    base_url: {server.base_url}\n")
        async with run_gateway(GatewaySettings(agents_file=path, openai_api_key=None)) as gateway:
            failure = await failure_of(gateway, request(routes=["mine/m"]))
            assert failure.reason == "PROVIDER_AUTH"


async def test_without_any_provider_and_without_the_local_model_the_answer_says_what_to_set() -> None:
    settings = GatewaySettings(
        openai_api_key=None, openai_base_url=None, openrouter_api_key=None, local_model="off"
    )
    async with run_gateway(settings) as gateway:
        failure = await failure_of(gateway)
        assert "OPENAI_API_KEY" in failure.message


JUDGEMENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "winner": {"type": "string", "enum": ["ada", "bo"]},
        "reasons": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["answer", "winner", "reasons"],
    "additionalProperties": False,
}


def make_judge_request() -> gateway_pb2.GenerateRequest:
    schema = gateway_pb2.AnswerSchema(name="judgement", json_schema=json.dumps(JUDGEMENT))
    return request("Ada says yes, Bo says no. Who is right?", schema=schema)


async def test_the_model_on_this_machine_is_held_to_a_schema_whose_texts_have_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = GatewaySettings(openai_api_key=None, openai_base_url=None, openrouter_api_key=None)
    async with ModelServer() as server:
        serve_as_local_model(server, monkeypatch)
        async with run_gateway(settings) as gateway:
            answer = (await gateway.ask(make_judge_request())).answer
        assert set(json.loads(answer.text)) == set(JUDGEMENT["required"])
        (call,) = server.ledger.calls
        sent = call.body["response_format"]["json_schema"]["schema"]["properties"]
        assert sent["answer"]["maxLength"] > 0
        assert sent["reasons"]["maxItems"] > 0
        assert call.body["max_tokens"] > 0
        assert "JSON Schema" not in call.prompt


@pytest.mark.model
@pytest.mark.timeout(240)  # a model that shares two cores with much else takes its time
async def test_without_any_provider_the_model_on_this_machine_answers_and_keeps_to_a_schema() -> None:
    settings = GatewaySettings(openai_api_key=None, openai_base_url=None, openrouter_api_key=None)
    async with run_gateway(settings) as gateway:
        heard = await gateway.ask(request("Say hello.", max_output_tokens=8))
        assert heard.answer.text
        assert heard.answer.route == "local/smollm2-135m-instruct"
        assert heard.answer.usage.cost_micros == 0
        assert heard.answer.usage.HasField("cost_micros")
        route = (await gateway.routes())["local/smollm2-135m-instruct"]
        assert route.local
        assert route.context_tokens == 2048
        judged = await gateway.ask(make_judge_request())
    assert json.loads(judged.answer.text)["winner"] in {"ada", "bo"}
    assert not judged.answer.truncated
    assert len(judged.deltas) > 1
    assert json.loads(judged.text()) == json.loads(judged.answer.text)


async def test_a_missing_key_stops_the_start_and_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "agents.yaml"
    path.write_text("agents:\n  - role: architect\n    provider: openrouter\n    model: a/b\n")
    settings = GatewaySettings(
        agents_file=path, openai_api_key=None, openrouter_api_key=None, store=f"sqlite:///{tmp_path}"
    )
    with pytest.raises(ConfigurationError, match=r"agents\.yaml:3: .*OPENROUTER_API_KEY"):
        async with build(settings, environment={}):
            pass


async def test_a_stopping_server_lets_a_call_finish_and_ends_watches_with_draining() -> None:
    async with ModelServer(latency=0.3) as server, run_with_server(server) as gateway:
        watch = aiter(gateway.stub.WatchRoutes(gateway_pb2.WatchRoutesRequest(), timeout=10))
        call = asyncio.create_task(gateway.ask())
        await server.ledger.wait_for(lambda ledger: ledger.in_flight == 1, within=30)
        draining = asyncio.create_task(gateway.server.drain())
        error = await catch_error(read_to_end(watch))
        assert error.reason == "DRAINING"
        assert (await call).answer.text
        await draining


async def test_a_stop_that_cannot_wait_leaves_no_http_request_behind() -> None:
    rules = [Rule(fault=Fault(FaultKind.HANG))]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        call = asyncio.create_task(gateway.ask())
        await server.ledger.wait_for(lambda ledger: ledger.in_flight == 1, within=30)
        await gateway.server.drain()
        await server.ledger.wait_for(lambda ledger: ledger.in_flight == 0, within=30)
        await asyncio.wait([call])
        assert call.exception() is not None


async def test_the_module_serves_alone_and_stops_on_a_signal(tmp_path: Path) -> None:
    async with ModelServer(answer="hello") as server:
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": KEY,
            "PARLEY_MODEL": "m",
            "PARLEY_PORT": "17462",
            "PARLEY_STORE": f"sqlite:///{tmp_path}",
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "parley.gateway", env=environment
        )
        try:
            async with channel("127.0.0.1:17462") as connection:
                stub = gateway_pb2_grpc.GatewayServiceStub(connection)
                last = None
                async for response in stub.Generate(request(), timeout=30, wait_for_ready=True):
                    last = response
                assert last is not None
                assert last.completed.text == "hello"
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), 30) == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def test_a_gateway_that_cannot_keep_its_calls_any_more_stops_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fail = asyncio.Event()

    async def keep(_: CallRegistry) -> None:
        await fail.wait()
        raise KeyError("run-7")

    monkeypatch.setattr(CallRegistry, "keep", keep)

    async def serve_one_call() -> None:
        async with asyncio.timeout(30), ModelServer() as server, run_with_server(server) as gateway:
            await gateway.ask()
            fail.set()
            await asyncio.Event().wait()

    with pytest.raises(PartFailedError, match=r"keeping the calls failed: KeyError: 'run-7'"):
        await serve_one_call()


async def test_a_hangup_reads_the_file_again_and_ends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "agents.yaml"
    path.write_text("agents:\n  - role: architect\n")
    async with (
        ModelServer() as server,
        gateway_process(server.base_url, f"sqlite:///{tmp_path}", KEY, agents_file=str(path)) as gateway,
    ):
        path.write_text("agents:\n  - role: poet\n")
        gateway.process.send_signal(signal.SIGHUP)
        async with asyncio.timeout(30):
            while True:
                listed = await gateway.stub.ListAgents(gateway_pb2.ListAgentsRequest())
                if "poet" in {agent.id for agent in listed.agents}:
                    break
        assert gateway.process.poll() is None


async def test_a_gateway_that_serves_has_imported_what_checks_answers_before_the_first_call(
    tmp_path: Path,
) -> None:
    script = (
        "import asyncio, sys\n"
        "from parley.gateway import __main__ as gateway\n"
        "async def serve(*_, **__):\n"
        "    print('jsonschema' in sys.modules)\n"
        "gateway.serve = serve\n"
        "asyncio.run(gateway.main())\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")}
    environment |= {"PARLEY_STORE": f"sqlite:///{tmp_path}", "PARLEY_MODEL": "m", "OPENAI_API_KEY": KEY}
    environment["OPENAI_BASE_URL"] = "http://127.0.0.1:9/v1"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, env=environment, stdout=asyncio.subprocess.PIPE
    )
    written, _ = await process.communicate()
    assert written.decode().split() == ["True"]
