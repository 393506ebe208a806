"""No provider's bad day becomes ours: dead primaries, mixed faults, and answers that are none."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.gateway.airlock import MAX_CHARACTERS, clean
from parley.gateway.endpoint import Endpoint, EndpointLimits, Provider, Spent, TraceLabels
from parley.gateway.errors_table import AttemptFailed
from parley.gateway.fitting import Message
from parley.gateway.wire import ModelRequest
from tests.integration.gateway.harness import routes_file, running
from tests.integration.gateway.scenarios import DEAD, KEYS, SHORT, mixed
from tests.support.manual_clock import ManualClock
from tests.support.model_server import Fault, ModelServer, Rule


def names(fault: Fault) -> str:
    return fault.name


@pytest.mark.parametrize("fault", DEAD, ids=names)
async def test_a_dead_primary_gets_three_calls_and_then_one_a_cooldown_and_no_request_fails(
    fault: Fault, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with (
        ModelServer(rules=[Rule(fault=fault)]) as first,
        ModelServer(answer="fine") as second,
        running(
            routes_file(tmp_path, first, second), environment=KEYS, clock=clock, timeouts=SHORT
        ) as gateway,
    ):
        for _ in range(8):
            assert (await gateway.ask()).answer.text == "fine"
        assert len(first.ledger.calls) + first.ledger.in_flight == 3
        for cooldown in range(1, 4):
            clock.advance(60)
            for _ in range(4):
                assert (await gateway.ask()).answer.text == "fine"
            assert len(first.ledger.calls) + first.ledger.in_flight == 3 + cooldown


@pytest.mark.parametrize("fault", DEAD, ids=names)
async def test_with_calls_in_flight_a_dead_primary_gets_two_more_than_those(
    fault: Fault, tmp_path: Path
) -> None:
    at_once = 8
    async with (
        ModelServer(rules=[Rule(fault=fault)]) as first,
        ModelServer(answer="fine") as second,
        running(routes_file(tmp_path, first, second), environment=KEYS, timeouts=SHORT) as gateway,
    ):
        places = asyncio.Semaphore(at_once)

        async def ask() -> str:
            async with places:
                return (await gateway.ask()).answer.text

        assert set(await asyncio.gather(*(ask() for _ in range(60)))) == {"fine"}
        assert len(first.ledger.calls) + first.ledger.in_flight <= at_once + 2


async def test_mixed_calls_under_seeded_faults_all_end_in_an_answer_or_a_typed_status(tmp_path: Path) -> None:
    outcomes, late = await mixed(tmp_path, calls=400, at_once=32, seed=7)
    assert sum(outcomes.values()) == 400
    assert outcomes["answer"] > 200
    assert not {name for name in outcomes if name in {"INTERNAL", "UNKNOWN", ""}}
    assert late == 0


class Raw:
    """An HTTP server that answers with the bytes it was given, whatever they are."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.chunks: list[bytes] = []
        self.server = self.loop.run_until_complete(asyncio.start_server(self.answer, "127.0.0.1", 0))
        port = self.server.sockets[0].getsockname()[1]
        provider = Provider("raw", "openai-compatible", f"http://127.0.0.1:{port}/v1", keep_alive=False)
        self.endpoint = Endpoint(provider, EndpointLimits(2.0, 2.0, 2.0))

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line
            )
            await reader.readexactly(length)
            for chunk in self.chunks:
                writer.write(chunk)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, StopIteration):
            return
        finally:
            writer.close()

    def ask(self, chunks: list[bytes], *, stream: bool) -> str | AttemptFailed:
        self.chunks = chunks
        return self.loop.run_until_complete(self._ask(stream))

    async def _ask(self, stream: bool) -> str | AttemptFailed:
        asked = ModelRequest("m", (Message("user", "?"),), stream=stream)
        try:
            async with asyncio.timeout(10):
                return (await self.endpoint.complete(asked, Spent(), TraceLabels())).text
        except AttemptFailed as failed:
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


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    if isinstance(answer, AttemptFailed):
        assert answer.message
        assert "\n" not in answer.message
        assert answer.message == clean(answer.message)
        assert len(answer.message) < 1000
    else:
        assert answer.strip()
        assert answer == clean(answer)
        assert len(answer) <= MAX_CHARACTERS


def test_an_answer_without_end_is_cut_and_not_kept_in_memory(raw: Raw) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    event = b'data: {"type":"response.output_text.delta","delta":"' + b"x" * 60_000 + b'"}\n\n'
    long = raw.ask([head, *[event] * 40], stream=True)
    assert isinstance(long, str | AttemptFailed)
    one_event = raw.ask([head, b'data: {"x":"', *[b"y" * 1_000_000] * 12], stream=True)
    assert isinstance(one_event, AttemptFailed)
