"""Answers that are to satisfy a schema, on their way through the gateway."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.runtime.large_texts import in_thread_per_tenant
from tests.integration.gateway.harness import (
    failure_of,
    make_structured_request,
    request,
    routes_file,
    run_gateway,
    run_with_server,
)
from tests.integration.gateway.scenarios import KEYS
from tests.support.model_server import (
    Fault,
    FaultKind,
    Latency,
    Match,
    ModelServer,
    Rule,
    error,
)


@pytest.mark.parametrize("responses", [True, False])
async def test_a_structured_answer_streams_and_satisfies_its_schema(responses: bool) -> None:
    async with ModelServer(responses=responses) as server, run_with_server(server) as gateway:
        heard = await gateway.ask(make_structured_request())
        assert server.ledger.calls[-1].streamed
    assert heard.text() == heard.answer.text
    assert set(json.loads(heard.answer.text)) == {"stand", "confidence"}
    assert heard.answer.repeats == 0


async def test_a_schema_is_checked_in_a_thread_once_and_each_other_one_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_thread: list[str] = []

    async def count(work: Callable[[], Any]) -> Any:
        in_thread.append("")
        return await in_thread_per_tenant(work)

    monkeypatch.setattr("parley.gateway.servicer.in_thread_per_tenant", count)
    asked = make_structured_request()
    schema = json.loads(asked.schema.json_schema)
    counts = []
    async with ModelServer() as server, run_with_server(server) as gateway:
        for description in ("one", "one", "other"):
            schema["description"] = f"{description} " * 100
            asked.schema.json_schema = json.dumps(schema)
            await gateway.ask(asked)
            counts.append(len(in_thread))
    assert counts == [1, 1, 2]


@pytest.mark.parametrize("responses", [True, False])
async def test_deltas_of_a_structured_answer_are_what_the_model_said_and_its_end_is_the_checked_json(
    responses: bool,
) -> None:
    said = 'Sure:\n```json\n{"stand":  "Yes\\u0000, and\x07 cold too",\n "confidence": 7}\n```'
    latency = Latency(0.2, first_token_share=0.1)
    async with (
        ModelServer(responses=responses, latency=latency, answer=said) as server,
        run_with_server(server) as gateway,
    ):
        heard = await gateway.ask(make_structured_request())
    assert len(heard.attempts) == 1
    assert len(heard.deltas) > 1
    assert heard.text() == said.replace("\x07", "")
    assert heard.answer.text == '{"stand": "Yes, and cold too", "confidence": 7}'


@pytest.mark.parametrize("responses", [True, False])
async def test_a_re_ask_voids_the_text_that_did_not_satisfy_the_schema(responses: bool) -> None:
    # Void text is not heard by those who are slow to listen: the second answer leaves time to hear the first.
    rules = [Rule(answer={"wrong": 1}, times=1), Rule(latency=Latency(2.0))]
    latency = Latency(0.1, first_token_share=0.1)
    async with (
        ModelServer(responses=responses, rules=rules, latency=latency) as server,
        run_with_server(server) as gateway,
    ):
        heard = await gateway.ask(make_structured_request())
    assert [(attempt.number, attempt.route) for attempt in heard.attempts] == [
        (1, "openai/m-1"),
        (2, "openai/m-1"),
    ]
    assert heard.text(1) == '{"wrong": 1}'
    assert heard.text(2) == heard.answer.text
    assert heard.answer.repeats == 1


@pytest.mark.parametrize("responses", [True, False])
async def test_an_endpoint_that_streams_no_schema_answers_in_one_piece_and_that_is_remembered(
    responses: bool,
) -> None:
    async with (
        ModelServer(responses=responses, schema_streaming=False) as server,
        run_with_server(server) as gateway,
    ):
        await gateway.ask()
        first, again = [await gateway.ask(make_structured_request()) for _ in range(2)]
        await gateway.ask()
        route = (await gateway.routes())["openai/m-1"]
        refused, answered, last, plain = server.ledger.calls[-4:]
    assert (first.answer.usage.requests, again.answer.usage.requests) == (2, 1)
    assert [each.streamed for each in (refused, answered, last, plain)] == [True, False, False, True]
    assert "JSON Schema" not in answered.prompt + last.prompt, "the schema itself is still sent"
    for heard in (first, again):
        assert heard.text() == heard.answer.text
        assert set(json.loads(heard.answer.text)) == {"stand", "confidence"}
    assert route.failures_in_a_row == 0


@pytest.mark.parametrize("responses", [True, False])
@pytest.mark.parametrize("schemas", [True, False])
async def test_an_endpoint_that_refuses_every_stream_answers_in_one_piece(
    responses: bool, schemas: bool
) -> None:
    told = "Your organization must be verified to stream this model."
    rules = [
        Rule(Match(streamed=True), fault=error(400, told, param="stream", code="unsupported_value")),
        Rule(answer={"stand": "Yes", "confidence": 7}),
    ]
    async with (
        ModelServer(responses=responses, rules=rules, schema_support=schemas) as server,
        run_with_server(server) as gateway,
    ):
        for asked in (make_structured_request(), request()) * 2:
            assert (await gateway.ask(asked)).answer.text == '{"stand": "Yes", "confidence": 7}'
        assert [each.streamed for each in server.ledger.calls[-2:]] == [False, False]
        assert (await gateway.ask(make_structured_request())).answer.usage.requests == 1


async def test_an_answer_to_a_schema_may_be_held_back_until_it_is_whole() -> None:
    async with (
        ModelServer(latency=Latency(0.6)) as server,
        run_with_server(server, first_token_timeout_seconds=0.3) as gateway,
    ):
        assert (await gateway.ask(make_structured_request())).answer.text
        assert "no text within" in (await failure_of(gateway, request(timeout=30))).message


async def test_text_that_comes_in_one_piece_is_heard_to_its_end() -> None:
    rules = [Rule(Match(streamed=True), fault=error(400, param="stream")), Rule(answer="half a pair: \ud800")]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        heard = await gateway.ask()
    assert heard.text() == heard.answer.text == "half a pair: \ufffd"


async def test_every_route_may_be_asked_again_for_the_form_of_its_answer(tmp_path: Path) -> None:
    wrong = Rule(fault=Fault(FaultKind.WRONG_STRUCTURE), times=1)
    async with (
        ModelServer(rules=[wrong, Rule(fault=error(500))]) as first,
        ModelServer(rules=[wrong]) as second,
        run_gateway(routes_file(tmp_path, first, second), environment=KEYS) as gateway,
    ):
        answer = (await gateway.ask(make_structured_request())).answer
        assert answer.route == "p2/m"
        assert answer.repeats == 2
        assert (len(first.ledger.calls), len(second.ledger.calls)) == (2, 2)


@pytest.mark.parametrize("kind", [FaultKind.BROKEN_STRUCTURE, FaultKind.WRONG_STRUCTURE])
async def test_a_wrong_structure_is_asked_again_once_with_the_error(kind: FaultKind) -> None:
    rules = [Rule(fault=Fault(kind), times=1)]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        answer = (await gateway.ask(make_structured_request())).answer
        assert answer.repeats == 1
        assert answer.usage.requests == 2
        assert answer.usage.input_tokens == sum(record.tokens_in for record in server.ledger.calls)
        assert set(json.loads(answer.text)) == {"stand", "confidence"}
        assert "That answer cannot be used" in server.ledger.calls[1].prompt


async def test_a_structure_that_stays_wrong_fails_honestly() -> None:
    rules = [Rule(fault=Fault(FaultKind.WRONG_STRUCTURE))]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        failure = await failure_of(gateway, make_structured_request())
        assert (failure.code, failure.reason) == (
            grpc.StatusCode.FAILED_PRECONDITION,
            "INVALID_STRUCTURED_ANSWER",
        )
        assert failure.metadata["requests"] == "2"
        assert int(failure.metadata["output_tokens"]) > 0
        assert (await gateway.routes())["openai/m-1"].failures_in_a_row == 0


WHOLE = '{"stand": "Yes", "confidence": 7}'

DEVIATIONS = {
    "several at once": "```json\n{'Stand': ['Yes'], 'confidence': '7', 'more': 1,}\n```",
    "a fence": f"```json\n{WHOLE}\n```",
    "a fence of no language": f"```\n{WHOLE}\n```",
    "words round it": f"Here it is: {WHOLE} I hope it helps.",
    "words and a fence": f"Here it is {{really}}:\n```json\n{WHOLE}\n```\nDone.",
    "reasoning before it": f"<think>Is it? {{no}}</think>{WHOLE}",
    "reasoning by another tag": f"[THINK]Is it?[/THINK]\n{WHOLE}",
    "the end of reasoning alone": f"Is it? It is.</think>{WHOLE}",
    "a number as text": '{"stand": "Yes", "confidence": "7"}',
    "a fraction": '{"stand": "Yes", "confidence": 7.2}',
    "a whole fraction": '{"stand": "Yes", "confidence": 7.0}',
    "a number in an object": '{"stand": "Yes", "confidence": {"value": 7}}',
    "keys of its own": '{"stand": "Yes", "confidence": 7, "reason": ["wet"]}',
    "keys in another style": '{"Stand": "Yes", "CONFIDENCE": 7}',
    "a list for a text": '{"stand": ["Yes"], "confidence": 7}',
    "an object inside of another": f'{{"answer": {WHOLE}}}',
    "an object inside of a list": f"[{WHOLE}]",
    "JSON in a text": json.dumps(WHOLE),
    "trailing commas": '{"stand": "Yes", "confidence": 7,}',
    "single quotes": "{'stand': 'Yes', 'confidence': 7}",
    "bare keys": '{stand: "Yes", confidence: 7}',
    "comments": '{"stand": "Yes", // it is\n"confidence": 7}',
    "no end": '{"stand": "Yes", "confidence": 7',
    "control characters": '{"stand": "Y\x00es", "confidence": 7}',
}


@pytest.mark.parametrize("said", DEVIATIONS.values(), ids=DEVIATIONS)
async def test_a_usual_deviation_of_a_structured_answer_is_read_and_not_asked_for_again(said: str) -> None:
    async with ModelServer(answer=said) as server, run_with_server(server) as gateway:
        answer = (await gateway.ask(make_structured_request())).answer
        assert json.loads(answer.text) == json.loads(WHOLE)
        assert (answer.repeats, len(server.ledger.calls)) == (0, 1)


@pytest.mark.parametrize(
    ("said", "given"),
    [
        (["Yes, it is.", "Yes."], "Yes, it is."),
        (["Yes.", '{"stand": "Yes", "sure": "very"}'], '{"stand": "Yes", "sure": "very"}'),
        (['{"confidence": 1e999}', "No."], '{"confidence": 1e999}'),
    ],
)
async def test_where_prose_will_do_the_fuller_answer_counts_when_neither_is_of_the_shape(
    said: list[str], given: str
) -> None:
    rules = [Rule(answer=said[0], times=1), Rule(answer=said[1])]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        answer = (await gateway.ask(make_structured_request(accepts_prose=True))).answer
        assert answer.text == given
        assert (answer.repeats, answer.usage.requests) == (1, 2)


@pytest.mark.parametrize("fault", [error(400, "no"), Fault(FaultKind.EMPTY_ANSWER)])
async def test_where_prose_will_do_it_counts_when_asking_again_brings_nothing(fault: Fault) -> None:
    rules = [Rule(answer="Yes, it is.", times=1), Rule(fault=fault)]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        assert (await gateway.ask(make_structured_request(accepts_prose=True))).answer.text == "Yes, it is."


async def test_prose_does_not_stand_in_the_way_of_another_route(tmp_path: Path) -> None:
    rules = [Rule(answer="Yes, it is.", times=1), Rule(fault=error(500))]
    async with (
        ModelServer(rules=rules) as first,
        ModelServer() as second,
        run_gateway(routes_file(tmp_path, first, second), environment=KEYS) as gateway,
    ):
        answer = (await gateway.ask(make_structured_request(accepts_prose=True))).answer
        assert (answer.route, set(json.loads(answer.text))) == ("p2/m", {"stand", "confidence"})
