"""Models that reason before they answer, beside the text or in it, by both APIs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from parley.gateway.routing.call import Timeouts
from tests.integration.gateway.harness import (
    failure_of,
    make_structured_request,
    request,
    routes_file,
    run_gateway,
    run_with_server,
)
from tests.integration.gateway.looking_up import READ, SECRET, looks_up, make_request_with_tools
from tests.integration.gateway.scenarios import KEYS
from tests.support.model_server import (
    Call,
    Fault,
    FaultKind,
    Latency,
    Match,
    ModelServer,
    Reasoned,
    Rule,
    ToolCalls,
    error,
)

BOTH = pytest.mark.parametrize("responses", [True, False], ids=["responses", "chat"])
LONG = "Is it? It may be. " * 20
SLOW = Latency(3.0, first_token_share=0.01)
SPENT = Rule(fault=Fault(FaultKind.SPENT_ON_REASONING))


def api(responses: bool) -> str:
    return "responses" if responses else "chat"


@BOTH
async def test_reasoning_is_a_sign_of_life_and_no_part_of_the_answer(responses: bool) -> None:
    async with (
        ModelServer(responses=responses, answer=Reasoned(LONG, "Yes."), latency=SLOW) as server,
        run_with_server(server, first_token_timeout_seconds=1.5, idle_timeout_seconds=1.5) as gateway,
    ):
        heard = await gateway.ask()
        assert len(heard.attempts) == 1
        assert heard.text() == heard.answer.text == "Yes."
        assert heard.answer.usage.output_tokens == server.ledger.calls[-1].tokens_out > 80


async def test_a_model_that_is_said_to_think_may_be_silent_for_longer_than_others() -> None:
    silent = Rule(answer=Reasoned(LONG, "Yes, it is.", hidden=True))
    async with (
        ModelServer(rules=[silent], latency=SLOW) as server,
        run_with_server(server, idle_timeout_seconds=1.0) as gateway,
    ):
        assert (await gateway.ask()).answer.text == "Yes, it is."
        server.rules = [Rule(answer="Yes, it is.", latency=Latency(20.0, first_token_share=0.01))]
        assert "silent for 1 s" in (await failure_of(gateway, request(timeout=20))).message


@BOTH
async def test_a_route_that_reasons_is_not_hedged(responses: bool, tmp_path: Path) -> None:
    async with (
        ModelServer(answer=Reasoned(LONG, "Yes."), latency=SLOW) as first,
        ModelServer(answer="No.") as second,
        run_gateway(
            routes_file(tmp_path, first, second, api=api(responses)),
            environment=KEYS,
            timeouts=Timeouts(route_attempt_seconds=15.0, hedge_seconds=1.5),
        ) as gateway,
    ):
        assert (await gateway.ask()).answer.text == "Yes."
        assert not second.ledger.calls


@BOTH
async def test_a_route_that_asks_for_tools_is_not_hedged(responses: bool, tmp_path: Path) -> None:
    calls = ToolCalls([*READ.calls] * 12)
    async with (
        ModelServer(rules=looks_up(calls), latency=SLOW) as first,
        ModelServer(answer="No.") as second,
        run_gateway(
            routes_file(tmp_path, first, second, api=api(responses)),
            environment=KEYS,
            timeouts=Timeouts(route_attempt_seconds=15.0, hedge_seconds=1.5),
        ) as gateway,
    ):
        assert (await gateway.ask(make_request_with_tools())).answer.text == "It opens at 7 bar."
        assert not second.ledger.calls


@BOTH
@pytest.mark.parametrize("shaped", [False, True])
@pytest.mark.parametrize(
    "rule",
    [
        SPENT,
        Rule(answer=Reasoned(LONG, "Yes.", hidden=True), fault=SPENT.fault),
        Rule(answer=f"<think>{LONG}", fault=Fault(FaultKind.CUT_SHORT)),
        Rule(match=Match(streamed=True), fault=error(400, param="stream")),
    ],
    ids=["told", "hidden", "think", "in one piece"],
)
async def test_an_answer_that_was_all_reasoning_is_truncated_and_paid_for_once(
    responses: bool, rule: Rule, shaped: bool, tmp_path: Path
) -> None:
    async with (
        ModelServer(rules=[rule, SPENT]) as first,
        ModelServer() as second,
        run_gateway(routes_file(tmp_path, first, second, api=api(responses)), environment=KEYS) as gateway,
    ):
        asked = make_structured_request(accepts_prose=True) if shaped else request()
        asked.max_output_tokens = 60
        failure = await failure_of(gateway, asked)
        assert failure.reason == "TRUNCATED"
        assert "all 60 tokens" in failure.message
        assert "raise max_output_tokens" in failure.message
        assert len([call for call in first.ledger.calls if call.status == 200]) == 1
        assert not second.ledger.calls
        assert (await gateway.routes())["p1/m"].failures_in_a_row == 0
        assert int(failure.metadata["output_tokens"]) > 10


async def test_an_endpoint_that_says_stop_where_its_tokens_ended_is_not_believed() -> None:
    body = Reasoned(LONG, "")
    async with ModelServer(answer=body) as server, run_with_server(server) as gateway:
        assert (await failure_of(gateway, request(max_output_tokens=40))).reason == "TRUNCATED"
        failure = await failure_of(gateway, request(max_output_tokens=4000, timeout=30))
        assert failure.reason == "EMPTY_ANSWER"


@BOTH
async def test_reasoning_without_a_first_tag_that_is_cut_off_is_no_answer(responses: bool) -> None:
    whole, cut = (
        Rule(answer=f"{LONG}</think>Yes.", times=2),
        Rule(answer=LONG * 2, fault=Fault(FaultKind.CUT_SHORT)),
    )
    async with (
        ModelServer(responses=responses, rules=[whole, cut]) as server,
        run_with_server(server) as gateway,
    ):
        for _ in range(2):
            assert (await gateway.ask()).answer.text == "Yes."
        assert (await failure_of(gateway)).reason == "TRUNCATED"
        server.rules = [Rule(answer="No, it is dry.")]
        assert (await gateway.ask()).answer.text == "No, it is dry.", "it need not reason"


@pytest.mark.parametrize("stray", ["Yes.</think>", "Yes.\n</think>\n", "Is it?</think>Yes."])
async def test_a_stray_end_tag_takes_no_answer_and_changes_no_later_one(stray: str) -> None:
    cut = Rule(answer="It is wet, since it is water.", fault=Fault(FaultKind.CUT_SHORT))
    async with (
        ModelServer(rules=[Rule(answer=stray, times=1), cut]) as server,
        run_with_server(server) as gateway,
    ):
        assert (await gateway.ask()).answer.text == "Yes."
        later = (await gateway.ask()).answer
    assert later.truncated
    assert later.text.startswith("It is")


async def test_an_answer_that_stands_whole_in_reasoning_without_an_end_is_found_there() -> None:
    whole = '{"stand": "wet", "confidence": 80}'
    async with ModelServer(answer=f"<think>It is wet. {whole}") as server, run_with_server(server) as gateway:
        assert json.loads((await gateway.ask(make_structured_request())).answer.text) == json.loads(whole)
        assert len(server.ledger.calls) == 1
        assert (await failure_of(gateway)).reason == "EMPTY_ANSWER", (
            "of prose it cannot be told where it begins"
        )


@pytest.mark.parametrize("hidden", [True, False])
async def test_reasoning_goes_back_with_the_results_of_tools_by_responses(hidden: bool) -> None:
    thought = Reasoned("I had better look.", READ, hidden=hidden)
    rules = [Rule(Match(tool_results=0), answer=thought), Rule(answer="At 7 bar.")]
    async with (
        ModelServer(rules=rules, reasoning_back="wanted") as server,
        run_with_server(server) as gateway,
    ):
        assert (await gateway.ask(make_request_with_tools())).answer.text == "At 7 bar."
        first, second = server.ledger.calls
    assert first.body["include"] == ["reasoning.encrypted_content"]
    kinds = [item.get("type", "message") for item in second.body["input"]]
    assert kinds == ["message", "reasoning", "function_call", "function_call_output"]
    item = second.body["input"][1]
    assert (item["encrypted_content"], item["summary"]) == ("sealed 1", [])
    assert "status" not in item


async def test_a_model_that_seals_no_reasoning_is_asked_without_from_then_on() -> None:
    rules = [Rule(Match(tool_results=0), answer=READ), Rule(answer="At 7 bar.")]
    async with (
        ModelServer(rules=rules, reasoning_back="refused") as server,
        run_with_server(server) as gateway,
    ):
        for requests in (3, 2):
            assert (await gateway.ask(make_request_with_tools())).answer.usage.requests == requests
        assert all("tools" in call.body for call in server.ledger.calls)
        assert ["include" in call.body for call in server.ledger.calls] == [True] + [False] * 4


@pytest.mark.parametrize(("back", "requests"), [(None, [2, 2]), ("refused", [2, 2]), ("wanted", [3, 2])])
async def test_reasoning_goes_back_by_chat_only_where_it_is_missed(
    back: str | None, requests: list[int]
) -> None:
    rules = [
        Rule(Match(tools=True, tool_results=0), answer=Reasoned("I had better look.", READ)),
        Rule(answer="At 7 bar."),
    ]
    async with (
        ModelServer(responses=False, rules=rules, reasoning_back=back) as server,
        run_with_server(server) as gateway,
    ):
        await gateway.ask()  # which finds out that there is only Chat
        for count in requests:
            assert (await gateway.ask(make_request_with_tools())).answer.usage.requests == count
        messages = server.ledger.calls[-1].body["messages"]
    sent = [each.get("reasoning_content") for each in messages if "tool_calls" in each]
    assert sent == ["I had better look." if back == "wanted" else None]


def ignores_the_limit(call: Call) -> Any:
    return READ if "tools" in call.body else "It opens at 7 bar."


@BOTH
@pytest.mark.parametrize("shaped", [False, True])
async def test_a_model_that_ignores_the_limit_is_asked_once_more_without_tools(
    responses: bool, shaped: bool
) -> None:
    def answer(call: Call) -> Any:
        given = ignores_the_limit(call)
        return {"stand": given} if shaped and isinstance(given, str) else given

    async with ModelServer(responses=responses, answer=answer) as server, run_with_server(server) as gateway:
        found = (await gateway.ask(make_request_with_tools(limit=2, structured=shaped))).answer
        *_, ignored, last = server.ledger.calls
    assert "It opens at 7 bar." in found.text
    assert len(found.tool_calls) == 2, "what was asked for after the limit is not run"
    assert ignored.body["tool_choice"] == "none"
    assert not {"tools", "tool_choice"} & last.body.keys()
    assert SECRET in last.prompt
    assert last.prompt.endswith("Answer now, in words, with what you have.")
    said: list[Mapping[str, Any]] = last.body["input" if responses else "messages"]
    assert [each["role"] for each in said] == ["user", "assistant", "user", "assistant", "user"]


@BOTH
async def test_a_model_that_only_ever_calls_tools_has_failed_after_one_more_turn(responses: bool) -> None:
    async with ModelServer(responses=responses, answer=READ) as server, run_with_server(server) as gateway:
        failure = await failure_of(gateway, make_request_with_tools(limit=1))
        assert failure.reason == "EMPTY_ANSWER"
        assert "only calls of tools" in failure.message
        assert len([call for call in server.ledger.calls if call.status == 200]) == 3
        assert (await gateway.routes())["openai/m-1"].failures_in_a_row == 0


@BOTH
async def test_what_a_model_wrote_beside_a_call_that_it_may_not_make_is_its_answer(responses: bool) -> None:
    both = ToolCalls(READ.calls, text="It opens at 7 bar.")
    async with ModelServer(responses=responses, answer=both) as server, run_with_server(server) as gateway:
        heard = await gateway.ask(make_request_with_tools(limit=1))
    assert heard.answer.text == "It opens at 7 bar."
    assert len(heard.answer.tool_calls) == 1


@BOTH
async def test_what_a_reasoning_model_refuses_is_left_out_from_then_on(responses: bool) -> None:
    asked = request(max_output_tokens=50)
    asked.agent.temperature = 0.5
    async with (
        ModelServer(responses=responses, reasoning_model=True) as server,
        run_with_server(server) as gateway,
    ):
        await gateway.ask(asked)
        before = len(server.ledger.calls)
        assert (await gateway.ask(asked)).answer.usage.requests == 1
        sent = server.ledger.calls[before].body
    assert "temperature" not in sent
    assert sent["max_output_tokens" if responses else "max_completion_tokens"] == 50
