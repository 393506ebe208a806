"""Agents that look things up: tools over the context documents that travel with a debate."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.gateway.routing.call import Timeouts
from parley.v1 import agent_pb2, gateway_pb2
from tests.integration.gateway.harness import failure_of, request, routes_file, run_gateway, run_with_server
from tests.integration.gateway.looking_up import (
    BOTH,
    NAMES,
    READ,
    SECRET,
    gateway_for,
    looks_up,
    make_request_with_tools,
)
from tests.support.model_server import (
    Fault,
    FaultKind,
    Latency,
    Match,
    ModelServer,
    Outcome,
    Rule,
    ToolCall,
    ToolCalls,
    error,
)
from tests.support.spans import forget_spans, spans_when


@BOTH
@pytest.mark.parametrize("structured", [True, False])
async def test_an_agent_looks_up_what_it_was_only_told_of(responses: bool, structured: bool) -> None:
    then = {"stand": "at 7 bar"} if structured else "It opens at 7 bar."
    search = ToolCalls([ToolCall("list_files"), ToolCall("context_search", {"query": "valve opens"})])
    async with gateway_for(looks_up(search, READ, then=then), responses=responses) as (server, gateway):
        answer = (await gateway.ask(make_request_with_tools(structured=structured))).answer
        await gateway.ask(make_request_with_tools(structured=structured))
        asked = server.ledger.calls[0 if responses else 1 :][:3]
    assert answer.text == (json.dumps(then) if structured else then)
    assert answer.prompt_characters_left_out == 0
    for record in asked:
        assert record.tools == NAMES
        assert record.streamed
    assert SECRET not in asked[0].prompt
    assert "docs/valve.md (44 characters, 3 lines)" in asked[0].prompt
    listed, found, read = asked[2].tool_results
    assert listed.splitlines()[0] == "docs/valve.md (44 characters, 3 lines)"
    assert found.startswith("docs/valve.md, lines 1 to 3:")
    assert f"3: Measured: {SECRET}." in read
    assert [(each.name, each.failed) for each in answer.tool_calls] == [
        ("list_files", False),
        ("context_search", False),
        ("file_read", False),
    ]
    assert json.loads(answer.tool_calls[2].arguments) == {"path": "docs/valve.md"}
    assert [each.characters for each in answer.tool_calls] == [len(listed), len(found), len(read)]


@BOTH
async def test_usage_is_that_of_all_requests_together(responses: bool) -> None:
    async with gateway_for(looks_up(READ, READ), responses=responses) as (server, gateway):
        usage = (await gateway.ask(make_request_with_tools())).answer.usage
        paid = [record for record in server.ledger.calls if record.outcome is Outcome.ANSWERED]
    assert len(paid) == 3
    assert usage.input_tokens == sum(record.tokens_in for record in paid)
    assert usage.output_tokens == sum(record.tokens_out for record in paid)


@BOTH
async def test_text_before_a_tool_call_is_void_for_those_who_read_along(responses: bool) -> None:
    thinking = ToolCalls(READ.calls, text="Let me look that up first.")
    # Void text is not heard by those who are slow to listen: the first answer ends once its text was heard.
    text_heard = asyncio.Event()
    before, answer = looks_up(thinking)
    rules = [replace(before, ends_after=text_heard), answer]
    async with gateway_for(rules, responses=responses) as (_, gateway):
        heard = await gateway.ask(make_request_with_tools(), on_delta=text_heard.set)
    assert [attempt.route for attempt in heard.attempts] == ["openai/m-1"] * 2
    last = "".join(delta.text for delta in heard.deltas if delta.route_attempt == 2)
    assert last == heard.answer.text == "It opens at 7 bar."
    assert next(delta.offset for delta in heard.deltas if delta.route_attempt == 2) == 0
    assert "".join(delta.text for delta in heard.deltas if delta.route_attempt == 1).startswith("Let me")


async def test_a_model_that_never_stops_asking_has_to_answer_once_its_caller_can_afford_no_more() -> None:
    async with gateway_for([Rule(Match(tools=True), answer=READ), Rule(answer="at 7 bar")]) as (_, gateway):
        free = (await gateway.ask(make_request_with_tools(limit=20))).answer
        bound = (await gateway.ask(make_request_with_tools(limit=20, affordable_input_tokens=3000))).answer
    assert (len(free.tool_calls), bound.text) == (20, "at 7 bar")
    assert 3 <= len(bound.tool_calls) < 20
    assert bound.usage.input_tokens + bound.usage.output_tokens <= 3000 < free.usage.input_tokens


@BOTH
@pytest.mark.parametrize(("limit", "allowed"), [(0, 10), (3, 3)])
async def test_a_model_that_never_stops_asking_has_to_answer_at_the_limit(
    responses: bool, limit: int, allowed: int
) -> None:
    two = ToolCalls([*READ.calls, *READ.calls])
    rules = [Rule(Match(tools=True), answer=two), Rule(answer="Enough.")]
    async with gateway_for(rules, responses=responses) as (server, gateway):
        answer = (await gateway.ask(make_request_with_tools(limit=limit))).answer
        last = server.ledger.calls[-1]
    assert answer.text == "Enough."
    assert len(answer.tool_calls) == allowed
    assert last.body["tool_choice"] == "none"
    assert len(last.tool_results) == allowed + allowed % 2
    refused = f"The limit of {allowed} tool calls is reached. Answer with what you have."
    assert [each for each in last.tool_results if each == refused] == [refused] * (allowed % 2)


async def test_a_model_that_asks_for_tools_when_it_may_not_has_given_no_answer() -> None:
    async with gateway_for([Rule(answer=READ)]) as (_, gateway):
        failure = await failure_of(gateway, make_request_with_tools(limit=1))
        assert "holds no text" in failure.message
        assert (await gateway.routes())["openai/m-1"].failures_in_a_row == 0


@BOTH
async def test_a_wrong_call_is_told_to_the_model_and_not_to_the_caller(responses: bool) -> None:
    wrong = ToolCalls([ToolCall("file_read", {"path": "../../etc/passwd"}), ToolCall("shell", {"run": "ls"})])
    async with gateway_for(looks_up(wrong), responses=responses) as (server, gateway):
        answer = (await gateway.ask(make_request_with_tools())).answer
        results = server.ledger.calls[-1].tool_results
    assert results == (
        "There is no document '../../etc/passwd'. Documents: docs/valve.md, docs/pump.md.",
        "There is no tool 'shell'. Tools: context_search, file_read, list_files.",
    )
    assert [(each.name, each.failed) for each in answer.tool_calls] == [("file_read", True), ("shell", True)]


async def test_a_stored_answer_keeps_what_was_looked_up() -> None:
    async with gateway_for(looks_up(READ)) as (server, gateway):
        asked = make_request_with_tools(step="round/1/propose/ada")
        paid = (await gateway.ask(asked)).answer
        stored = (await gateway.ask(asked)).answer
        assert len(server.ledger.calls) == 2
    assert stored.stored
    assert list(stored.tool_calls) == list(paid.tool_calls) != []


async def test_the_re_ask_of_a_structured_answer_offers_no_tools_and_keeps_what_was_read() -> None:
    rules = [
        Rule(Match(tool_results=0), answer=READ),
        Rule(Match(tool_results=1), answer={"wrong": 1}, times=1),
        Rule(answer={"stand": "at 7 bar"}),
    ]
    for responses in (True, False):
        async with gateway_for(rules, responses=responses) as (server, gateway):
            answer = (await gateway.ask(make_request_with_tools(structured=True))).answer
            last = server.ledger.calls[-1]
        assert (answer.repeats, len(answer.tool_calls)) == (1, 1)
        assert last.body["tool_choice"] == "none"
        assert SECRET in last.tool_results[0]
        said = last.body["input" if responses else "messages"]
        assert [each["role"] for each in said[-2:]] == ["assistant", "user"]


async def test_a_failure_between_two_tool_calls_goes_on_at_the_next_route_from_the_start(
    tmp_path: Path,
) -> None:
    broken = [Rule(Match(tool_results=0), answer=READ), Rule(fault=error(500))]
    async with ModelServer(rules=broken) as bad, ModelServer(rules=looks_up(READ)) as good:
        settings = routes_file(tmp_path, bad, good)
        async with run_gateway(settings, environment={"KEY_1": "a", "KEY_2": "b"}) as gateway:
            answer = (await gateway.ask(make_request_with_tools())).answer
        assert [len(record.tool_results) for record in good.ledger.calls] == [0, 1]
    assert answer.route == "p2/m"
    assert len(answer.tool_calls) == 1
    assert answer.usage.requests == 4


async def test_a_tool_call_that_begins_is_a_sign_of_life() -> None:
    slow = Rule(Match(tools=True, tool_results=0), answer=READ, latency=Latency(1.0, first_token_share=0.1))
    rules = [slow, Rule(answer="It opens at 7 bar.")]
    for responses in (True, False):
        async with (
            ModelServer(rules=rules, responses=responses) as server,
            run_with_server(server, first_token_timeout_seconds=0.6) as gateway,
        ):
            await gateway.ask(request("warm", timeout=10))
            assert (await gateway.ask(make_request_with_tools())).answer.usage.requests == 2


async def test_the_time_of_a_route_attempt_covers_all_its_requests() -> None:
    rules = [Rule(Match(tools=True), answer=READ, latency=Latency(0.15))]
    async with (
        ModelServer(rules=rules) as server,
        run_with_server(
            server, timeouts=Timeouts(route_attempt_seconds=0.5, first_pause_seconds=0.02)
        ) as gateway,
    ):
        failure = await failure_of(gateway, make_request_with_tools(timeout=0.8))
        assert failure.reason in {"PROVIDER_UNAVAILABLE", "CALL_TIMEOUT"}
        assert len(server.ledger.calls) < 8
        await server.ledger.wait_for(lambda ledger: ledger.in_flight == 0, within=30)


async def test_cancelling_stops_a_call_between_its_tools() -> None:
    rules = [Rule(Match(tool_results=0), answer=READ), Rule(fault=Fault(FaultKind.HANG))]
    async with gateway_for(rules) as (server, gateway):
        asked = make_request_with_tools(step="round/1/propose/ada")
        call = asyncio.create_task(gateway.ask(asked))
        await server.ledger.wait_for(
            lambda ledger: len(ledger.calls) == 1 and ledger.in_flight == 1, within=30
        )
        await gateway.stub.CancelCall(gateway_pb2.CancelCallRequest(call_id=asked.call_id))
        with pytest.raises(grpc.aio.AioRpcError):
            await call
        await server.ledger.wait_for(lambda ledger: ledger.in_flight == 0, within=30)


async def test_every_bad_field_of_tools_and_documents_is_named() -> None:
    asked = make_request_with_tools((agent_pb2.TOOL_FILE_READ, agent_pb2.TOOL_FILE_READ), limit=101, files={})
    newer: Any = [0, 9]
    asked.agent.tools.extend(newer)
    for path in ("/abs", "a/../b", "twice", "twice", "a\nb"):
        asked.prompt.add(role=gateway_pb2.PROMPT_ROLE_USER, text="x").document = path
    asked.prompt.add(role=gateway_pb2.PROMPT_ROLE_SYSTEM, text="x").document = "fine.md"
    asked.prompt.add(role=gateway_pb2.PROMPT_ROLE_USER, text="x").source = 1
    asked.prompt.add(role=gateway_pb2.PROMPT_ROLE_USER, text="x", document="S.md").source = -1
    asked.prompt.add(role=gateway_pb2.PROMPT_ROLE_USER, text="x").passages.add(start=0, end=1)
    for start, end in ((-1, 1), (1, 1)):
        part = asked.prompt.add(role=gateway_pb2.PROMPT_ROLE_USER, text="x", document=f"{start}.md")
        part.passages.add(start=start, end=end)
    many = asked.prompt.add(role=gateway_pb2.PROMPT_ROLE_USER, text="x", document="many.md")
    for _ in range(257):
        many.passages.add(start=0, end=1)
    async with gateway_for([]) as (_, gateway):
        failure = await failure_of(gateway, asked)
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert [each.field for each in failure.violations] == [
        "agent.tools[1]",
        "agent.tools[2]",
        "agent.tools[3]",
        "agent.tool_call_limit",
        "prompt[1].document",
        "prompt[2].document",
        "prompt[4].document",
        "prompt[5].document",
        "prompt[6].document",
        "prompt[7].source",
        "prompt[8].source",
        "prompt[9].passages",
        "prompt[10].passages",
        "prompt[11].passages",
        "prompt[12].passages",
    ]


@pytest.mark.parametrize("content", [True, False])
async def test_every_tool_call_has_its_span_and_shows_nothing_unless_asked_to(content: bool) -> None:
    wrong = ToolCall("file_read", {"path": "gone.md"})
    async with (
        ModelServer(rules=looks_up(ToolCalls([*READ.calls, wrong]))) as server,
        run_with_server(server, trace_content=content) as gateway,
    ):
        forget_spans()
        await gateway.ask(make_request_with_tools())
        spans = await spans_when(lambda ended: any(span.name.endswith("Generate") for span in ended))
    good, bad = [span for span in spans if span.name == "execute_tool file_read"]
    assert good.attributes is not None
    assert bad.attributes is not None
    assert good.attributes["gen_ai.operation.name"] == "execute_tool"
    assert good.attributes["gen_ai.tool.name"] == "file_read"
    assert good.attributes["gen_ai.tool.call.id"] == "call_1_0"
    assert good.parent is not None
    assert (good.status.is_ok, bad.status.is_ok) == (True, False)
    text = "".join(span.to_json() for span in spans)
    assert (SECRET in text, "gone.md" in text) == (content, content)
