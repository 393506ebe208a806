import asyncio
from pathlib import Path

import pytest
from openai import AsyncOpenAI

from tests.support.model_server import (
    Fault,
    FaultKind,
    Latency,
    Match,
    ModelServer,
    Outcome,
    Rule,
    error,
    most_at_once,
    read_ledger,
)
from tests.unit.support.clients import Asking, ask, client_of, stream_text


async def test_every_call_is_recorded_as_it_was_and_ended(
    openai_client: AsyncOpenAI, model_server: ModelServer
) -> None:
    await openai_client.responses.create(
        model="small",
        instructions="Be short.",
        input=[{"role": "user", "content": [{"type": "input_text", "text": "Why?"}]}],
        extra_headers={"traceparent": "00-1-2-01", "X-Parley-Agent": "ada"},
        max_output_tokens=64,
    )
    await stream_text(openai_client, "chat", "How?")
    one, two = model_server.ledger.calls
    assert (one.number, one.path, one.model, one.prompt) == (1, "/v1/responses", "small", "Be short.\nWhy?")
    assert (one.headers["traceparent"], one.headers["x-parley-agent"]) == ("00-1-2-01", "ada")
    assert one.body["max_output_tokens"] == 64
    assert (one.outcome, one.status, one.streamed) == (Outcome.ANSWERED, 200, False)
    assert one.tokens_in == 4
    assert one.tokens_out > 10
    assert one.started <= one.ended <= two.started
    assert (two.path, two.prompt, two.streamed) == ("/v1/chat/completions", "How?", True)
    assert model_server.ledger.to("/v1/chat/completions") == (two,)


async def test_it_knows_what_is_in_flight_and_the_most_that_was(
    openai_client: AsyncOpenAI, model_server: ModelServer
) -> None:
    model_server.latency = Latency(0.2)
    async with asyncio.TaskGroup() as calls:
        for number in range(5):
            calls.create_task(ask(openai_client, "chat", str(number)))
        await model_server.ledger.wait_for(lambda ledger: ledger.in_flight == 5, within=30)
        assert {call.prompt for call in model_server.ledger.open_calls} == set("01234")
    assert model_server.ledger.in_flight == 0
    assert model_server.ledger.max_in_flight == 5
    await ask(openai_client, "chat")
    assert most_at_once(model_server.ledger.calls) == 5


async def test_a_client_that_hangs_up_during_the_latency_or_the_stream_is_seen(
    openai_client: AsyncOpenAI, model_server: ModelServer
) -> None:
    model_server.latency = Latency(30)
    both: tuple[Asking, ...] = (ask, stream_text)
    for asking in both:
        call = asyncio.ensure_future(asking(openai_client, "responses"))
        await model_server.ledger.wait_for(lambda ledger: ledger.in_flight == 1, within=30)
        call.cancel()
        await model_server.ledger.wait_for(lambda ledger: ledger.in_flight == 0, within=30)
    assert [record.outcome for record in model_server.ledger.calls] == [Outcome.CANCELLED] * 2


async def test_waiting_for_what_never_comes_ends_and_says_what_was_there(model_server: ModelServer) -> None:
    with pytest.raises(TimeoutError, match="0 calls ended, 0 in flight"):
        await model_server.ledger.wait_for(lambda ledger: ledger.in_flight == 1, within=0.05)


async def test_a_server_that_stops_cuts_what_is_in_flight(model_server: ModelServer) -> None:
    model_server.rules = [Rule(fault=Fault(FaultKind.HANG))]
    async with client_of(model_server) as client:
        call = asyncio.create_task(ask(client, "chat"))
        await model_server.ledger.wait_for(lambda ledger: ledger.in_flight == 1, within=30)
        async with asyncio.timeout(30):
            await model_server.stop()
            with pytest.raises(Exception, match=r"."):
                await call


async def test_the_file_holds_the_same_calls_and_an_unfinished_line_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    assert read_ledger(file) == ()
    async with ModelServer(ledger_file=file) as server, client_of(server) as client:
        server.rules = [Rule(Match(call=2), fault=error(429))]
        await ask(client, "chat", "one \x00 \u20ac")
        with pytest.raises(Exception, match="429"):
            await ask(client, "responses", "two")
        in_memory = [record.to_json() for record in server.ledger.calls]
    with file.open("a") as text:
        text.write('{"number": 3, "pa')
    records = read_ledger(file)
    assert [record.to_json() for record in records] == in_memory
    assert records[1].outcome is Outcome.FAULTED
