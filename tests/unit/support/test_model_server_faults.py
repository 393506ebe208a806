import asyncio
import time
from email.utils import parsedate_to_datetime

import httpx2
import openai
import pytest
from openai import AsyncOpenAI

from tests.support.model_server import (
    ErrorShape,
    Fault,
    FaultKind,
    Match,
    ModelServer,
    Outcome,
    Rule,
    context_overflow,
    error,
)
from tests.unit.support.clients import Asking, ask, client_of, deltas, stream_text

BOTH = pytest.mark.parametrize("api", ["responses", "chat"])
STREAMED_OR_NOT = pytest.mark.parametrize("asking", [ask, stream_text])


@BOTH
@STREAMED_OR_NOT
@pytest.mark.parametrize(
    ("status", "raised"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (402, openai.APIStatusError),
        (403, openai.PermissionDeniedError),
        (404, openai.NotFoundError),
        (408, openai.APIStatusError),
        (409, openai.ConflictError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
async def test_an_error_status_is_what_the_client_makes_of_the_real_one(
    openai_client: AsyncOpenAI,
    model_server: ModelServer,
    api: str,
    asking: Asking,
    status: int,
    raised: type[openai.APIStatusError],
) -> None:
    model_server.rules = [Rule(fault=error(status))]
    with pytest.raises(raised) as caught:
        await asking(openai_client, api)
    assert caught.value.status_code == status
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["message"]
    (record,) = model_server.ledger.calls
    assert (record.outcome, record.status) == (Outcome.FAULTED, status)


@pytest.mark.parametrize("as_date", [False, True])
async def test_a_rate_limit_says_when_to_come_back(
    openai_client: AsyncOpenAI, model_server: ModelServer, as_date: bool
) -> None:
    model_server.rules = [Rule(fault=error(429, retry_after=30, retry_after_as_date=as_date), times=1)]
    with pytest.raises(openai.RateLimitError) as caught:
        await ask(openai_client, "chat")
    said = caught.value.response.headers["retry-after"]
    seconds = parsedate_to_datetime(said).timestamp() - time.time() if as_date else float(said)
    assert 25 < seconds <= 30
    assert await ask(openai_client, "chat")


async def test_a_context_overflow_has_its_code(openai_client: AsyncOpenAI, model_server: ModelServer) -> None:
    model_server.rules = [Rule(fault=context_overflow())]
    with pytest.raises(openai.BadRequestError) as caught:
        await ask(openai_client, "responses")
    assert caught.value.code == "context_length_exceeded"
    assert model_server.ledger.calls[0].fault == "context_length_exceeded"


async def test_a_proxys_page_is_an_error_without_a_code(
    openai_client: AsyncOpenAI, model_server: ModelServer
) -> None:
    model_server.rules = [Rule(fault=error(502, "Bad Gateway", shape=ErrorShape.HTML))]
    with pytest.raises(openai.InternalServerError) as caught:
        await ask(openai_client, "responses")
    assert caught.value.response.text.startswith("<html>")


@BOTH
@STREAMED_OR_NOT
@pytest.mark.parametrize(
    "kind", [FaultKind.DROP_BEFORE_ANY_BYTE, FaultKind.DROP_AFTER_HEADERS, FaultKind.DROP_MID_STREAM]
)
async def test_a_dropped_connection_is_noticed_at_once(
    openai_client: AsyncOpenAI, model_server: ModelServer, api: str, asking: Asking, kind: FaultKind
) -> None:
    model_server.rules = [Rule(fault=Fault(kind), times=1)]
    # The client's aiohttp transport calls some of these a timeout, so what counts is that it did not wait for one.
    async with asyncio.timeout(60):
        with pytest.raises((openai.APIConnectionError, httpx2.TransportError)):
            await asking(openai_client, api)
    (record,) = model_server.ledger.calls
    assert (record.outcome, record.fault) == (Outcome.FAULTED, kind.value)
    assert await ask(openai_client, api)


@BOTH
async def test_a_stream_dropped_in_the_middle_gives_its_first_words(
    model_server: ModelServer, api: str
) -> None:
    model_server.rules = [
        Rule(answer="one two three four", fault=Fault(FaultKind.DROP_MID_STREAM, after_chunks=3))
    ]
    seen = await _words_before_the_end(model_server, api, within=10)
    assert seen == ["one", " two", " three"]


@BOTH
async def test_a_stalled_stream_gives_its_first_words_and_then_nothing(
    model_server: ModelServer, api: str
) -> None:
    model_server.rules = [Rule(answer="one two three four", fault=Fault(FaultKind.STALL_MID_STREAM))]
    assert await _words_before_the_end(model_server, api, within=1) == ["one", " two"]
    await model_server.ledger.wait_for(lambda ledger: ledger.in_flight == 0, within=30)
    (record,) = model_server.ledger.calls
    assert (record.outcome, record.fault) == (Outcome.CANCELLED, "stall-mid-stream")


@BOTH
async def test_an_error_in_mid_stream_is_told_in_the_stream(model_server: ModelServer, api: str) -> None:
    model_server.rules = [Rule(fault=Fault(FaultKind.ERROR_MID_STREAM))]
    async with client_of(model_server) as client:
        if api == "chat":
            with pytest.raises(openai.APIError, match="had an error"):
                await stream_text(client, api)
        else:
            events = [e async for e in await client.responses.create(model="small", input="go", stream=True)]
            assert events[-1].type == "response.failed"
            assert events[-1].response.error is not None


@BOTH
@STREAMED_OR_NOT
async def test_a_call_that_hangs_ends_when_its_client_hangs_up(
    openai_client: AsyncOpenAI, model_server: ModelServer, api: str, asking: Asking
) -> None:
    model_server.rules = [Rule(fault=Fault(FaultKind.HANG))]
    call = asyncio.ensure_future(asking(openai_client, api))
    await model_server.ledger.wait_for(lambda ledger: ledger.in_flight == 1, within=30)
    call.cancel()
    await model_server.ledger.wait_for(lambda ledger: len(ledger.calls) == 1, within=30)
    assert model_server.ledger.calls[0].outcome is Outcome.CANCELLED


@BOTH
@STREAMED_OR_NOT
@pytest.mark.parametrize("kind", [FaultKind.WRONG_JSON, FaultKind.BAD_UTF8])
async def test_a_body_that_is_no_json_or_no_text_is_never_taken_for_a_clean_answer(
    model_server: ModelServer, api: str, asking: Asking, kind: FaultKind
) -> None:
    model_server.rules = [Rule(answer="one two three", fault=Fault(kind))]
    async with client_of(model_server) as client:
        try:
            got = await asking(client, api)
        except (ValueError, openai.APIError):
            return
    assert "".join(got) != "one two three"


@BOTH
@STREAMED_OR_NOT
async def test_control_characters_reach_the_client_in_the_text(
    openai_client: AsyncOpenAI, model_server: ModelServer, api: str, asking: Asking
) -> None:
    model_server.rules = [Rule(fault=Fault(FaultKind.CONTROL_CHARACTERS))]
    text = "".join(await asking(openai_client, api))
    assert text.count("\x00") == 2
    assert "\x1b[31m" in text
    assert "\u202e" in text


@BOTH
@STREAMED_OR_NOT
async def test_an_answer_can_be_empty(
    openai_client: AsyncOpenAI, model_server: ModelServer, api: str, asking: Asking
) -> None:
    model_server.rules = [Rule(fault=Fault(FaultKind.EMPTY_ANSWER))]
    assert not "".join(await asking(openai_client, api))


@BOTH
async def test_an_answer_can_be_huge(openai_client: AsyncOpenAI, model_server: ModelServer, api: str) -> None:
    model_server.rules = [Rule(fault=Fault(FaultKind.HUGE_ANSWER, size=3_000_001))]
    assert len(await ask(openai_client, api)) == 3_000_001


async def test_an_answer_cut_short_says_so(openai_client: AsyncOpenAI, model_server: ModelServer) -> None:
    model_server.rules = [Rule(fault=Fault(FaultKind.CUT_SHORT))]
    response = await openai_client.responses.create(model="small", input="go")
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"
    events = [e async for e in await openai_client.responses.create(model="small", input="go", stream=True)]
    assert events[-1].type == "response.incomplete"
    answer = await openai_client.chat.completions.create(
        model="small", messages=[{"role": "user", "content": "go"}]
    )
    assert answer.choices[0].finish_reason == "length"


@BOTH
async def test_structure_faults_are_text_that_is_no_json_or_json_of_another_schema(
    openai_client: AsyncOpenAI, model_server: ModelServer, api: str
) -> None:
    model_server.rules = [
        Rule(fault=Fault(FaultKind.BROKEN_STRUCTURE), times=1),
        Rule(fault=Fault(FaultKind.WRONG_STRUCTURE), times=1),
    ]
    assert not (await ask(openai_client, api)).endswith("}")
    assert "nothing_you_asked_for" in await ask(openai_client, api)


async def test_faults_of_text_pass_embeddings_by_and_others_do_not(
    openai_client: AsyncOpenAI, model_server: ModelServer
) -> None:
    model_server.rules = [Rule(fault=Fault(FaultKind.EMPTY_ANSWER)), Rule(answer="text")]
    assert (await openai_client.embeddings.create(model="e", input="a", encoding_format="float")).data
    model_server.rules = [Rule(Match(path="/v1/embeddings"), fault=error(503))]
    with pytest.raises(openai.InternalServerError):
        await openai_client.embeddings.create(model="e", input="a", encoding_format="float")


async def _words_before_the_end(server: ModelServer, api: str, within: float) -> list[str]:
    seen: list[str] = []

    async def read(client: AsyncOpenAI) -> None:
        async for delta in deltas(client, api):
            seen.append(delta)  # noqa: PERF401 - the words before an error are kept

    async with client_of(server, within=within) as client:
        with pytest.raises(Exception, match=r".*"):
            await read(client)
    return seen
