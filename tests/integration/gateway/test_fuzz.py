"""Whatever an endpoint sends comes out as what it said, clean, or as a row of the error table."""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from parley.gateway.failures import FAILURE_KINDS, INVALID_ANSWER, Failure
from parley.gateway.prompt.documents import Documents
from parley.gateway.prompt.sanitizer import clean, clean_value
from parley.gateway.prompt.structured_answers import parse_shape
from parley.gateway.routing.breaker import DEFAULT_POLICY, RouteBreaker
from parley.gateway.routing.call import Call
from parley.gateway.routing.exchange import Exchange
from parley.gateway.routing.queue import Limits, RouteQueue
from parley.gateway.routing.route import LiveRoute, Route
from parley.gateway.tracing import TraceLabels
from parley.gateway.usage import RouteUsage, UsageMeter
from parley.gateway.wire.api import Api, ModelRequest
from parley.gateway.wire.endpoint import EndpointLimits, Provider
from parley.gateway.wire.openai_endpoint import OpenAIEndpoint
from parley.v1.gateway_pb2 import GenerateRequest
from tests.support.manual_clock import ManualClock
from tests.support.prompt_parts import user

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"stand": {"type": "string"}, "votes": {"type": "array", "items": {"type": "integer"}}},
    "required": ["stand"],
}
SHAPE = parse_shape("stand", json.dumps(SCHEMA))


class Unheard:
    """Nobody listens."""

    def start_route_attempt(self, route: str) -> None:
        pass

    def mark_alive(self) -> None:
        pass

    def add_text(self, piece: str) -> None:
        pass


class Raw:
    """An HTTP server that answers with the bytes it was given, whatever they are."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.chunks: list[bytes] = []
        self.sent = 0
        self.server = self.loop.run_until_complete(asyncio.start_server(self.answer, "127.0.0.1", 0))
        port = self.server.sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}/v1"
        provider = Provider("raw", "openai-compatible", url, keep_alive=False, first_api=Api.RESPONSES)
        self.endpoint = OpenAIEndpoint(provider, EndpointLimits(2.0, 2.0, 2.0))

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lengths = [
                int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line
            ]
            await reader.readexactly(sum(lengths))
            self.sent = 0
            for chunk in self.chunks:
                writer.write(chunk)
                await writer.drain()
                self.sent += len(chunk)
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    def ask(self, chunks: list[bytes], *, stream: bool) -> str | Failure:
        self.chunks = chunks
        return self.loop.run_until_complete(self._ask(stream))

    async def _ask(self, stream: bool) -> str | Failure:
        asked = ModelRequest("m", (user("?"),), stream=stream)
        try:
            async with asyncio.timeout(30):
                return (await self.endpoint.complete(asked, RouteUsage(), TraceLabels())).text
        except Failure as failed:
            return failed

    def ask_for_structure(self, chunks: list[bytes]) -> str | Failure:
        self.chunks = chunks
        return self.loop.run_until_complete(self._ask_for_structure())

    async def _ask_for_structure(self) -> str | Failure:
        route = Route("raw/m", "raw", "m")
        breaker = RouteBreaker(ManualClock(), DEFAULT_POLICY, lambda: None)
        live = LiveRoute(route, self.endpoint, breaker, RouteQueue(Limits()))
        call = Call(GenerateRequest(prompt=[user("?")]), SHAPE)
        try:
            async with asyncio.timeout(30):
                return (await Exchange(live, call, Documents({}), UsageMeter(), Unheard()).answer()).text
        except Failure as failed:
            return failed

    def list_models(self, chunks: list[bytes]) -> str | Failure:
        self.chunks = chunks
        try:
            return self.loop.run_until_complete(asyncio.wait_for(self.endpoint.list_models(), 30))[0].name
        except Failure as failed:
            return failed

    def close(self) -> None:
        self.server.close()
        self.loop.run_until_complete(self.endpoint.aclose())
        self.loop.close()


@pytest.fixture(scope="module")
def raw() -> Iterator[Raw]:
    made = Raw()
    yield made
    made.close()


PIECES = st.sampled_from(
    [
        b'{"type":"response.output_text.delta","delta":"hi \\u0000\\u202e\\ud800"}',
        b'{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":"x"}}}',
        b'{"choices":[{"delta":{"content":"hey"},"finish_reason":null}]}',
        b'{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":-1}}',
        b'{"choices":[{"message":{"content":["no text"]},"finish_reason":7}]}',
        b'{"output":[{"type":"message","content":[{"type":"output_text","text":"whole"}]}],"status":"completed"}',
        b'{"error":{"message":{"deep":["\xff"]},"code":[1]}}',
        b'{"choices":{"0":1}}',
        b'{"output":[null,{"type":"message","content":"text"}],"model":7}',
        b"[DONE]",
        b"[" * 3000,
        b"\xff\xfe\x00",
        b'{"delta":',
        b"null",
        b'"text"',
        b"1e999",
    ]
)
HEADS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 5000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: \xff\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 429 Slow\r\nRetry-After: soon\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 500 No\r\nRetry-After: -5\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 999 Odd\r\nConnection: close\r\n\r\n",
        b"HTTP/9.9 what\r\n\r\n",
        b"",
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    head=HEADS,
    pieces=st.lists(st.one_of(PIECES, st.binary(max_size=200)), max_size=6),
    events=st.booleans(),
    stream=st.booleans(),
    noise=st.binary(max_size=20),
)
def test_whatever_an_endpoint_sends_becomes_clean_text_or_a_row_of_the_table(
    raw: Raw, head: bytes, pieces: list[bytes], events: bool, stream: bool, noise: bytes
) -> None:
    body = b"".join(b"data: " + piece + b"\n\n" for piece in pieces) if events else b"".join(pieces)
    answer = raw.ask([head, body, noise], stream=stream)
    if isinstance(answer, Failure):
        says_what_happened(answer)
    else:
        assert head.startswith(b"HTTP/1.1 200")
        assert re.fullmatch("(hi \ufffd|hey|whole)+", answer), (
            "it says what the endpoint said and nothing else"
        )
        assert re.search(rb'"completed"|finish_reason":("stop"|7)', body), "and nothing that broke off"


def says_what_happened(failure: Failure) -> None:
    assert failure.kind in FAILURE_KINDS
    assert failure.message
    assert "\n" not in failure.message
    assert failure.message == clean(failure.message)
    assert len(failure.message) < 1000


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
STANDS = st.fixed_dictionaries(
    {"stand": st.text()}, optional={"votes": st.lists(st.integers()), "more": ANYTHING}
)
WRAPPED = st.sampled_from(["{}", "  {}\n", "Here it is:\n```json\n{}\n```\nBye."])


def nest(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return {"stand": "yes", "more": value}


def levels_of(value: Any) -> int:
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if held is None else 1 + max(map(levels_of, held), default=0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.one_of(STANDS, ANYTHING), wrapped=WRAPPED, ascii_only=st.booleans())
@example(value=nest(63), wrapped="{}", ascii_only=True)
@example(value=nest(64), wrapped="{}", ascii_only=True)
@example(value=nest(130), wrapped="{}", ascii_only=True)
@example(value={"stand": "\ud800\x00\u202e"}, wrapped="{}", ascii_only=True)
@example(value={"stand": "yes", "votes": [float("nan")]}, wrapped="{}", ascii_only=True)
@example(value={"stand": "\x85", "more": float("inf")}, wrapped="{}", ascii_only=False)
def test_a_structured_answer_comes_out_as_it_was_meant_or_is_an_invalid_one(
    raw: Raw, value: Any, wrapped: str, ascii_only: bool
) -> None:
    text = wrapped.replace("{}", json.dumps(value, ensure_ascii=ascii_only))
    assume(ascii_only or "\\r" not in text)  # beside a line end of another kind it may become one with it
    answer = raw.ask_for_structure([JSON_HEAD, make_answer(text)])
    if isinstance(answer, Failure):
        assert answer.kind is INVALID_ANSWER
        says_what_happened(answer)
        assert not is_stand(value) or "```" in text or is_no_json(text)
    elif is_no_json(text):
        assert is_stand(json.loads(answer)), "what was mended is not always what was meant, but it fits"
    else:
        assert is_stand(value)
        assert json.loads(answer) == clean_value(value)


def is_no_json(text: str) -> bool:
    return "NaN" in text or "Infinity" in text


def is_stand(value: Any) -> bool:
    return levels_of(value) <= 64 and jsonschema.Draft202012Validator(SCHEMA).is_valid(clean_value(value))


JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"


def make_answer(text: str) -> bytes:
    """A whole answer of the Responses API."""
    content = [{"type": "output_text", "text": text}]
    return json.dumps({"status": "completed", "output": [{"type": "message", "content": content}]}).encode()


NESTED = f'{{"stand": "yes", "more": {"[" * 520}{"]" * 520}}}'


# Few examples: each that holds a brace is given to a process of its own, which mends it.
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text()
    | st.sampled_from(['{"stand": ', NESTED, "[" * 5_000, '{"a":' * 5_000, "{" * 300, '{"stand": 1e999}'])
)
def test_whatever_stands_in_place_of_a_structured_answer_is_a_known_failure_or_says_something(
    raw: Raw, text: str
) -> None:
    answer = raw.ask_for_structure([JSON_HEAD, make_answer(text)])
    if isinstance(answer, Failure):
        says_what_happened(answer)
    else:  # such as {stand: x
        assert json.loads(answer)["stand"], "nothing is made up where a value is missing"


def test_an_answer_without_end_is_cut_and_not_kept_in_memory(raw: Raw) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    event = b'data: {"type":"response.output_text.delta","delta":"' + b"x" * 60_000 + b'"}\n\n'
    long = raw.ask([head, *[event] * 40], stream=True)
    assert isinstance(long, str | Failure)
    one_event = raw.ask([head, b'data: {"x":"', *[b"y" * 1_000_000] * 12], stream=True)
    assert isinstance(one_event, Failure)


ENDLESS = [b"y" * 1_000_000] * 200


@pytest.mark.parametrize("status", [b"500 No", b"302 Found", b"404 Not Found", b"429 Slow"])
def test_an_error_without_end_is_cut_and_not_kept_in_memory(raw: Raw, status: bytes) -> None:
    head = b"HTTP/1.1 " + status + b"\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    failure = raw.ask([head, *ENDLESS], stream=True)
    assert isinstance(failure, Failure)
    says_what_happened(failure)
    assert raw.sent < 20_000_000


def test_a_list_of_models_without_end_is_not_kept_in_memory(raw: Raw) -> None:
    assert isinstance(raw.list_models([JSON_HEAD, b'{"data": ["', *ENDLESS]), Failure)
    assert raw.sent < 40_000_000
