"""Whatever a caller asks and an endpoint sends, the gateway's loop belongs to everyone: nothing holds it for 50 ms, and what is wrong has a name."""

import asyncio
import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial, reduce

import pytest

from parley.runtime.errors import ParleyError
from parley.v1 import agent_pb2
from parley.v1.gateway_pb2 import PROMPT_ROLE_USER, GenerateRequest
from tests.integration.gateway.harness import failure_of, make_structured_request, request
from tests.integration.gateway.looking_up import NAMES, make_request_with_tools
from tests.integration.gateway.test_odd_endpoints import endpoint, piece
from tests.support.loop_holds import longest_hold_allowed, loop_holds

_MANY = 60_000
_TRIES = 8
"""What holds the loop does so each time; what else the machine runs lengthens some."""
_SECONDS = 240
"""For a call. Its answer is gone through several times, and each takes seconds where others want the machine too."""
_JSON = {"content-type": "application/json"}
_EVENTS = {"content-type": "text/event-stream"}
_MIB = 1024 * 1024

Body = Callable[[], bytes]
"""Made by the test that sends it: what is packed takes a second, and every worker collects every test."""


def gzip_pieces(pieces: Iterator[bytes]) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([*map(packer.compress, pieces), packer.flush()])


def make_body(text: bytes, mebibytes: int) -> Body:
    return partial(_pack, text, mebibytes)


def _pack(text: bytes, mebibytes: int) -> bytes:
    """Pack a text over and over: what is packed once after a flush stands for itself wherever it comes again."""
    mebibyte = text * (_MIB // len(text))
    packer = zlib.compressobj(9, wbits=31)
    begin = packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(mebibyte) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = reduce(lambda sum_, _: zlib.crc32(mebibyte, sum_), range(mebibytes), 0)
    end = zlib.compressobj(9, wbits=-15).flush()
    return begin + again * mebibytes + end + struct.pack("<II", checksum, len(mebibyte) * mebibytes)


@cache
def make_many_lists() -> bytes:
    return gzip_pieces(iter([b"[", b"[]," * 5_000_000, b"1]"]))


@cache
def event_of_lists() -> bytes:
    return gzip_pieces(iter([b"data: [", b"[]," * 2_500_000, b"1]\n\n"]))


@cache
def empty_events() -> bytes:
    return gzip_pieces(iter([b"data: {}\n\n" * 25_000]))


def choice(message: str) -> bytes:
    return f'{{"choices": [{{"index": 0, "finish_reason": "stop", "message": {message}}}]}}'.encode()


_NESTED = '{"a":' * _MANY + "1" + "}" * _MANY
_ZIPPED = {"content-encoding": "gzip"}


@pytest.fixture(autouse=True, scope="module")
def _loaded() -> None:
    """Load what the first call loads: that holds the loop of a process once."""
    asyncio.run(_ask_once())


async def _ask_once() -> None:
    async with endpoint((piece("Yes.") + "data: [DONE]\n\n").encode()) as gateway:
        await gateway.ask()


@pytest.mark.parametrize(
    ("body", "headers", "status", "said"),
    [
        pytest.param(make_body(b"\0", 300), _JSON | _ZIPPED, 200, "too large", id="zeros"),
        pytest.param(make_body(b"\0", 300), _EVENTS | _ZIPPED, 200, "too large", id="a stream of zeros"),
        pytest.param(make_body(b": on\n", 300), _EVENTS | _ZIPPED, 200, "too large", id="comments"),
        pytest.param(make_body(b":\n", 300), _EVENTS | _ZIPPED, 200, "too large", id="empty comments"),
        pytest.param(make_body(b"\n", 100), _EVENTS | _ZIPPED, 200, "cut off", id="line ends"),
        pytest.param(empty_events, _EVENTS | _ZIPPED, 200, "cut off", id="empty events"),
        pytest.param(make_body(b"\0", 300), _JSON | _ZIPPED, 500, "500", id="an error of zeros"),
        pytest.param(make_many_lists, _JSON | _ZIPPED, 400, "400", id="an error of lists"),
        pytest.param(make_many_lists, _JSON | _ZIPPED, 200, "not JSON", id="an answer of lists"),
        pytest.param(event_of_lists, _EVENTS | _ZIPPED, 200, "not JSON", id="an event of lists"),
        pytest.param(
            b'{"error": {"message": "' + b"no " * 10_000 + b'"}}', _JSON, 400, "400", id="a long error"
        ),
        pytest.param(b"x" * 10_000_000, _JSON, 200, "not JSON", id="no line end"),
        pytest.param(b"data: " + b"x" * 10_000_000, _EVENTS, 200, "too large", id="an event without end"),
        pytest.param(choice(_NESTED), _JSON, 200, "not JSON", id="a nested answer"),
        pytest.param(f"data: {_NESTED}\n\n".encode(), _EVENTS, 200, "not JSON", id="a nested event"),
        pytest.param(b"no gzip", _JSON | _ZIPPED, 200, "", id="no gzip"),
        pytest.param(b"{}", _JSON | {"content-encoding": "br"}, 200, "", id="another encoding"),
    ],
)
async def test_no_answer_of_an_endpoint_holds_the_loop(
    body: Body | bytes, headers: dict[str, str], status: int, said: str
) -> None:
    sent = body if isinstance(body, bytes) else body()
    failed = await _failure(sent, request(timeout=_SECONDS), status, headers)
    assert failed.reason in {"PROVIDER_UNAVAILABLE", "BAD_REQUEST"}
    assert said in failed.message
    assert len(failed.message) < 1000


@pytest.mark.parametrize("answer", [_NESTED, "[" * _MANY + "]" * _MANY])
async def test_no_structured_answer_holds_the_loop(answer: str) -> None:
    body = (piece(answer) + "data: [DONE]\n\n").encode()
    failed = await _failure(body, make_structured_request())
    assert failed.reason == "INVALID_STRUCTURED_ANSWER"


@pytest.mark.parametrize("unit", ["\n", "\r\n", "\t\n", "<", "\u200b"])
async def test_no_answer_after_reasoning_holds_the_loop(unit: str) -> None:
    said = f"A thought.</think>\n{unit * (200_000 // len(unit))}Yes."
    longest: list[Sequence[str]] = []
    async with endpoint((piece(said) + "data: [DONE]\n\n").encode()) as gateway:
        for _ in range(_TRIES):
            with loop_holds() as holds:
                assert (await gateway.ask()).answer.text.endswith("Yes.")
            if holds.longest < longest_hold_allowed():
                return
            longest.append(holds.told()[:3])
    raise AssertionError(f"the loop was held for too long: {longest}")


async def test_arguments_of_a_tool_that_are_nested_without_end_hold_nothing() -> None:
    call = {"index": 0, "id": "1", "type": "function", "function": {"name": NAMES[0], "arguments": _NESTED}}
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    body = f"data: {json.dumps({'model': 'm', 'choices': [choice]})}\n\ndata: [DONE]\n\n".encode()
    failed = await _failure(body, make_request_with_tools(limit=2))
    assert failed.reason == "EMPTY_ANSWER"
    assert "tool" in failed.message


def _make_request(documents: Sequence[str], tools: Sequence[agent_pb2.Tool.ValueType]) -> GenerateRequest:
    asked = request(timeout=_SECONDS)
    for number, text in enumerate(documents):
        asked.prompt.add(role=PROMPT_ROLE_USER, text=text, document=f"{number}.txt", shrink_priority=2)
    asked.agent.tools.extend(tools)
    return asked


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param(["Words of a document. " * 200_000], id="words"),
        pytest.param(["> " * 2 * _MIB], id="marks"),
        pytest.param(["\x01" * 4 * _MIB], id="control characters"),
        pytest.param(["€" * (4 * _MIB // 3)], id="letters of three bytes"),
        pytest.param(["Words of a document. " * 100] * 2_000, id="many documents"),
    ],
)
@pytest.mark.parametrize("tools", [(), (agent_pb2.TOOL_FILE_READ,)], ids=["quoted", "read by tools"])
async def test_no_question_with_documents_holds_the_loop(
    documents: Sequence[str], tools: Sequence[agent_pb2.Tool.ValueType]
) -> None:
    longest: list[Sequence[str]] = []
    asked = _make_request(documents, tools)
    async with endpoint((piece("Yes.") + "data: [DONE]\n\n").encode()) as gateway:
        for _ in range(_TRIES):
            with loop_holds() as holds:
                assert (await gateway.ask(asked)).answer.text == "Yes."
            if holds.longest < longest_hold_allowed():
                return
            longest.append(holds.told()[:3])
    raise AssertionError(f"the loop was held for too long: {longest}")


async def _failure(
    body: bytes, asked: GenerateRequest, status: int = 200, headers: Mapping[str, str] = _EVENTS
) -> ParleyError:
    """Return what a call fails with that is answered so, once it was seen to hold nothing: a machine that gives its time to others makes one try look long."""
    longest: list[Sequence[str]] = []
    for _ in range(_TRIES):
        async with endpoint(body, status=status, headers=headers) as gateway:
            with loop_holds() as holds:
                failed = await failure_of(gateway, asked)
        if holds.longest < longest_hold_allowed():
            return failed
        longest.append(holds.told()[:3])
    raise AssertionError(f"the loop was held for too long: {longest}")
