"""What one provider's answers become on their way through the gateway."""

import asyncio
import json
import threading

import grpc
import pytest

from parley.gateway import servicer
from parley.v1 import agent_pb2, gateway_pb2
from tests.integration.gateway.harness import (
    CHAT,
    RESPONSES,
    Heard,
    failure_of,
    make_structured_request,
    paths,
    request,
    run_with_server,
)
from tests.support.catching import catch_error
from tests.support.model_server import (
    Fault,
    FaultKind,
    Latency,
    Match,
    ModelServer,
    Outcome,
    Rule,
    error,
)


@pytest.mark.parametrize("responses", [True, False])
async def test_text_streams_in_order_and_adds_up_to_the_answer(responses: bool) -> None:
    latency = Latency(0.1, first_token_share=0.1)
    async with (
        ModelServer(responses=responses, latency=latency, answer="one two three four five six") as server,
        run_with_server(server) as gateway,
    ):
        heard = await gateway.ask()
    assert len(heard.deltas) > 1
    text = ""
    for delta in heard.deltas:
        assert (delta.route_attempt, delta.offset) == (1, len(text))
        text += delta.text
    assert text == heard.answer.text == "one two three four five six"
    assert heard.answer.usage.output_tokens > 0
    assert heard.answer.usage.input_tokens > 0


async def test_an_answer_that_comes_word_by_word_is_heard_whole_and_in_order_in_few_pieces() -> None:
    words = " ".join(f"word{number}" for number in range(300))
    latency = Latency(0.3, first_token_share=0.1)
    async with ModelServer(latency=latency, answer=words) as server, run_with_server(server) as gateway:
        heard = await gateway.ask(request(step="s"))
    text = ""
    for delta in heard.deltas:
        assert (delta.route_attempt, delta.offset) == (1, len(text))
        text += delta.text
    assert text == heard.answer.text == words
    seconds = heard.answer.latency.ToMilliseconds() / 1000
    assert 1 < len(heard.deltas) <= seconds / 0.025 + 2, "beside the first and the last, one every 25 ms"


async def test_a_new_attempt_voids_the_text_of_the_one_before() -> None:
    # Void text is not heard by those who are slow to listen: the second answer leaves time to hear the first.
    rules = [Rule(fault=Fault(FaultKind.DROP_MID_STREAM), times=1), Rule(latency=Latency(2.0))]
    latency = Latency(0.1, first_token_share=0.1)
    async with (
        ModelServer(rules=rules, latency=latency, answer="a b c d e") as server,
        run_with_server(server) as gateway,
    ):
        heard = await gateway.ask()
    assert [attempt.number for attempt in heard.attempts] == [1, 2]
    assert {delta.route_attempt for delta in heard.deltas} == {1, 2}
    assert (
        "".join(delta.text for delta in heard.deltas if delta.route_attempt == 2)
        == heard.answer.text
        == "a b c d e"
    )
    assert next(delta.offset for delta in heard.deltas if delta.route_attempt == 2) == 0


async def test_an_answer_that_ends_at_the_limit_says_so() -> None:
    rules = [Rule(fault=Fault(FaultKind.CUT_SHORT))]
    for responses in (True, False):
        async with (
            ModelServer(rules=rules, responses=responses) as server,
            run_with_server(server) as gateway,
        ):
            assert (await gateway.ask()).answer.truncated


@pytest.mark.parametrize("responses", [True, False])
@pytest.mark.parametrize(
    "kind",
    [FaultKind.CONTROL_CHARACTERS, FaultKind.BAD_UTF8, FaultKind.HUGE_ANSWER],
)
async def test_whatever_text_comes_passes_the_sanitizer(kind: FaultKind, responses: bool) -> None:
    rules = [Rule(fault=Fault(kind, size=300_000))]
    async with ModelServer(rules=rules, responses=responses) as server, run_with_server(server) as gateway:
        heard = await gateway.ask()
    assert "".join(delta.text for delta in heard.deltas) == heard.answer.text
    assert not set(heard.answer.text) & {"\x00", "\x1b", "\u202e"}
    assert 0 < len(heard.answer.text) <= 262_144
    assert heard.answer.truncated == (kind is FaultKind.HUGE_ANSWER)


async def test_a_failed_answer_is_a_failure_and_never_made_up() -> None:
    rules = [Rule(fault=Fault(FaultKind.EMPTY_ANSWER))]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        failure = await failure_of(gateway)
        assert len(server.ledger.calls) == 2
    assert failure.reason == "EMPTY_ANSWER"
    assert "no text" in failure.message


@pytest.mark.parametrize("nothing", ["", " \n", "<think>Is it?</think>"])
@pytest.mark.parametrize("shaped", [False, True])
async def test_an_answer_without_text_is_asked_for_once_more(nothing: str, shaped: bool) -> None:
    right = '{"stand": "wet", "confidence": 80}' if shaped else "Yes."
    async with (
        ModelServer(rules=[Rule(answer=nothing, times=1), Rule(answer=right)]) as server,
        run_with_server(server) as gateway,
    ):
        answer = (await gateway.ask(make_structured_request() if shaped else None)).answer
        first, second = server.ledger.calls
    assert (answer.text, answer.repeats) == (right, 1)
    assert second.prompt.startswith(first.prompt)
    assert "your answer held no text" in second.prompt
    assert ("JSON Schema" in second.prompt) is shaped


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("responses", [True, False])
async def test_reasoning_in_a_text_is_no_part_of_it(streams: bool, responses: bool) -> None:
    rules = [] if streams else [Rule(Match(streamed=True), fault=error(400, param="stream"))]
    said = "<think>\nIs it? It is.\n</think>\n\nYes, it is."
    latency = Latency(0.1, first_token_share=0.1)
    async with (
        ModelServer(responses=responses, rules=rules, answer=said, latency=latency) as server,
        run_with_server(server) as gateway,
    ):
        heard = await gateway.ask()
    assert heard.text() == heard.answer.text == "Yes, it is."
    assert heard.answer.usage.output_tokens > 5, "it was paid for"


async def test_reasoning_that_only_its_end_tells_is_void() -> None:
    said = "Is it? It is.\n</think>\n\nYes, it is."
    async with ModelServer(answer=said) as server, run_with_server(server) as gateway:
        heard = await gateway.ask()
    assert len(heard.attempts) == 2
    assert heard.text(2) == heard.answer.text == "Yes, it is."
    assert len(server.ledger.calls) == 1


async def test_reasoning_is_a_sign_of_life() -> None:
    said = f"<think>{'Is it? ' * 40}</think>Yes."
    async with (
        ModelServer(answer=said, latency=Latency(3.5, first_token_share=0.01)) as server,
        run_with_server(server, first_token_timeout_seconds=3) as gateway,
    ):
        assert (await gateway.ask(request(timeout=60))).answer.text == "Yes."


@pytest.mark.parametrize("responses", [True, False])
async def test_a_model_that_takes_no_schema_is_asked_in_words_and_that_is_remembered(responses: bool) -> None:
    said = 'Sure:\n```json\n{"stand": "Yes\\u0000", "confidence": 7}\n```'
    async with (
        ModelServer(responses=responses, schema_support=False, answer=said) as server,
        run_with_server(server) as gateway,
    ):
        await gateway.ask()
        for _ in range(2):
            answer = (await gateway.ask(make_structured_request())).answer
            assert json.loads(answer.text) == {"stand": "Yes", "confidence": 7}
        path = RESPONSES if responses else CHAT
        assert paths(server)[-4:] == [path] * 4
        assert "JSON Schema" in server.ledger.calls[-1].prompt


async def test_a_parameter_that_is_refused_is_left_out_from_then_on() -> None:
    def refuse(param: str) -> Rule:
        return Rule(
            Match(path=CHAT), fault=error(400, f"Unsupported parameter: '{param}'.", param=param), times=1
        )

    rules = [refuse("stream_options"), refuse("temperature"), refuse("max_tokens")]
    asked = request(max_output_tokens=50)
    asked.agent.temperature = 0.5
    async with ModelServer(responses=False, rules=rules) as server, run_with_server(server) as gateway:
        await gateway.ask(asked)
        await gateway.ask(asked)
        last, second_last = server.ledger.calls[-1].body, server.ledger.calls[-2].body
        assert len(server.ledger.calls) == 6
        assert set(last) == set(second_last) == {"model", "messages", "stream", "max_completion_tokens"}


async def test_hanging_up_stops_the_http_request_at_once() -> None:
    rules = [Rule(fault=Fault(FaultKind.STALL_MID_STREAM))]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        call = gateway.stub.Generate(request(), timeout=20)
        async for response in call:
            if response.WhichOneof("event") == "delta":
                break
        assert server.ledger.in_flight == 1
        call.cancel()
        await server.ledger.wait_for(lambda ledger: ledger.in_flight == 0, within=30)
        assert server.ledger.calls[0].outcome is Outcome.CANCELLED
        assert (await gateway.routes())["openai/m-1"].failures_in_a_row == 0


async def test_a_deadline_stops_the_http_request_and_is_called_a_timeout() -> None:
    rules = [Rule(fault=Fault(FaultKind.HANG))]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        failure = await failure_of(gateway, request(timeout=0.2))
        assert failure.code in {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE}
        assert failure.reason in {"CALL_TIMEOUT", "PROVIDER_UNAVAILABLE"}
        assert failure.metadata["route"] == "openai/m-1"
        await server.ledger.wait_for(lambda ledger: ledger.in_flight == 0, within=30)
        assert {record.outcome for record in server.ledger.calls} == {Outcome.CANCELLED}


async def test_cancel_call_stops_the_named_call() -> None:
    rules = [Rule(fault=Fault(FaultKind.HANG))]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        asked = request(step="round/1/propose/ada")
        call = asyncio.create_task(gateway.ask(asked))
        await server.ledger.wait_for(lambda ledger: ledger.in_flight == 1, within=30)
        cancelled = await gateway.stub.CancelCall(gateway_pb2.CancelCallRequest(call_id=asked.call_id))
        assert cancelled.was_running
        failure = await catch_error(call)
        assert (failure.code, failure.reason) == (grpc.StatusCode.CANCELLED, "CALL_CANCELLED")
        await server.ledger.wait_for(lambda ledger: ledger.in_flight == 0, within=30)
        again = await gateway.stub.CancelCall(gateway_pb2.CancelCallRequest(call_id=asked.call_id))
        assert not again.was_running


async def test_a_forgotten_answer_is_refused_to_who_asks_for_it_again() -> None:
    async with ModelServer() as server, run_with_server(server) as gateway:
        asked = request(step="round/1/propose/ada")
        await gateway.ask(asked)
        await gateway.stub.ForgetAnswers(gateway_pb2.ForgetAnswersRequest(call_ids=[asked.call_id]))
        failure = await failure_of(gateway, asked)
        assert (failure.code, failure.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "ANSWER_FORGOTTEN")
        assert len(server.ledger.calls) == 1


@pytest.mark.parametrize(
    ("calls", "field", "said"),
    [
        ([], "call_ids", "must be 1 to 256 calls"),
        ([request(step="s").call_id] * 257, "call_ids", "must be 1 to 256 calls"),
        (
            [request(step="s").call_id, gateway_pb2.CallId(tenant="default", debate_id="deb-1", step="s")],
            "call_ids[1].step_attempt",
            "must be 1 or more",
        ),
    ],
)
async def test_a_bad_list_of_calls_to_forget_is_refused(
    calls: list[gateway_pb2.CallId], field: str, said: str
) -> None:
    async with ModelServer() as server, run_with_server(server) as gateway:
        failure = await catch_error(
            gateway.stub.ForgetAnswers(gateway_pb2.ForgetAnswersRequest(call_ids=calls))
        )
        assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
        assert [(each.field, each.description) for each in failure.violations] == [(field, said)]


async def test_two_callers_of_one_call_share_it() -> None:
    async with (
        ModelServer(latency=Latency(0.3, first_token_share=0.1)) as server,
        run_with_server(server) as gateway,
    ):
        first, second = await asyncio.gather(
            *(gateway.ask(request(step="s")) for _ in range(2)),
        )
        assert first.answer.text == second.answer.text
        assert len(server.ledger.calls) == 1


async def test_a_call_id_with_another_question_is_refused() -> None:
    rules = [Rule(fault=Fault(FaultKind.HANG))]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        call = asyncio.create_task(gateway.ask(request(step="s")))
        await server.ledger.wait_for(lambda ledger: ledger.in_flight == 1, within=30)
        failure = await failure_of(gateway, request("Something else?", step="s"))
        assert (failure.code, failure.reason) == (grpc.StatusCode.ALREADY_EXISTS, "CALL_ID_REUSED")
        call.cancel()
        await asyncio.wait([call])


async def test_the_digest_of_a_large_call_is_made_in_a_thread_and_none_of_one_without_an_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make, threads = servicer._digest, list[int]()

    def note(asked: gateway_pb2.GenerateRequest) -> str:
        threads.append(threading.get_ident())
        return make(asked)

    monkeypatch.setattr(servicer, "_digest", note)
    question = "Tea or coffee? " * 5_000
    async with ModelServer() as server, run_with_server(server) as gateway:
        await gateway.ask(request(question))
        assert not threads
        await gateway.ask(request(question, step="s"))
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()


async def test_every_bad_field_is_listed() -> None:
    bad = gateway_pb2.GenerateRequest(
        call_id=gateway_pb2.CallId(tenant="t"),
        agent=agent_pb2.Agent(id="Ada!", temperature=3, routes=[""]),
        prompt=[gateway_pb2.PromptPart(text="x", shrink_priority=-1)],
        schema=gateway_pb2.AnswerSchema(name="position", json_schema='{"type": "array"}'),
        max_output_tokens=-1,
    )
    async with ModelServer() as server, run_with_server(server) as gateway:
        failure = await failure_of(gateway, bad)
        assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
        assert [violation.field for violation in failure.violations] == [
            "call_id.debate_id",
            "call_id.step",
            "call_id.step_attempt",
            "agent.id",
            "agent.temperature",
            "agent.routes[0]",
            "prompt[0].role",
            "prompt[0].shrink_priority",
            "schema.json_schema",
            "max_output_tokens",
        ]
        assert not server.ledger.calls


async def test_an_unknown_route_lists_the_known_ones() -> None:
    async with ModelServer() as server, run_with_server(server) as gateway:
        failure = await failure_of(gateway, request(routes=["nobody/m"]))
        assert (failure.code, failure.reason) == (grpc.StatusCode.NOT_FOUND, "UNKNOWN_ROUTE")
        assert "openai/MODEL" in failure.message


async def test_any_model_of_an_open_provider_can_be_named() -> None:
    async with ModelServer() as server, run_with_server(server) as gateway:
        heard: Heard = await gateway.ask(request(routes=["openai/vendor/other"]))
        assert heard.answer.route == "openai/vendor/other"
        assert server.ledger.calls[0].model == "vendor/other"


async def test_without_a_model_the_first_that_the_endpoint_lists_is_taken_and_remembered() -> None:
    async with (
        ModelServer(models=("text-embedding-x", "chatty", "other")) as server,
        run_with_server(server, model=None) as gateway,
    ):
        for _ in range(2):
            assert (await gateway.ask()).answer.route == "openai/chatty"
        assert paths(server) == ["/v1/models", RESPONSES, RESPONSES]
