"""One request from its first byte to its last: who refuses it, which rule takes it, how it is sent."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, Never, Protocol

from aiohttp import ClientConnectionResetError, web

from tests.support.model_server import wire_chat, wire_responses
from tests.support.model_server.answers import digest_of, make_up, reply_to, spoil
from tests.support.model_server.embedding import as_base64, embed
from tests.support.model_server.faults import Fault, FaultKind, error
from tests.support.model_server.latency import BENCH_KEY_HEADER, Latency, sleep_until
from tests.support.model_server.ledger import Ledger, Outcome
from tests.support.model_server.rules import NO_ANSWER, Answer, Call, Rule, RuleBook
from tests.support.model_server.schema_instance import UnsupportedSchemaError
from tests.support.model_server.settings import Switches, refusal
from tests.support.model_server.wire import Reply, Stream, encode, prompt_of
from tests.support.model_server.words import count_tokens, split_words

_JSON = {"Content-Type": "application/json"}
_SSE = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}


class _Wire(Protocol):
    """One of the two APIs that answer with text."""

    def body(self, reply: Reply, request: Mapping[str, Any]) -> bytes: ...

    def stream(self, reply: Reply, request: Mapping[str, Any]) -> Stream: ...


_WIRES: Mapping[str, _Wire] = {"/v1/chat/completions": wire_chat, "/v1/responses": wire_responses}


@dataclass(slots=True)
class _Turn:
    """A call on its way: the request to write to, the fault in its way and the latency it draws from."""

    call: Call
    request: web.Request
    fault: Fault | None
    latency: Latency
    draw: float
    ends_after: asyncio.Event | None
    tokens: tuple[int, int] = (0, 0)

    @property
    def kind(self) -> FaultKind | None:
        return None if self.fault is None else self.fault.kind

    def due(self, words: int) -> float:
        """The moment at which an answer of that many words is complete."""
        return self.call.started + self.draw + words * self.latency.per_token


class Handling:
    """Answers requests. Its switches, rules, answer and latency may be replaced at any time; each call goes by
    what stands when it comes in."""

    def __init__(
        self,
        *,
        switches: Switches,
        rules: Iterable[Rule],
        answer: Answer | None,
        latency: Latency,
        ledger: Ledger,
    ) -> None:
        self.switches = switches
        self.rule_book = RuleBook(rules)
        self.answer = answer
        self.latency = latency
        self.ledger = ledger
        self._number = 0
        self._occurrences: Counter[str] = Counter()

    def reset(self) -> None:
        """Forget every call: counters, what rules have seen, and the ledger in memory."""
        self._number = 0
        self._occurrences.clear()
        self.rule_book = RuleBook(self.rule_book.rules)
        self.ledger.reset()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request of the model's API, and put it in the ledger however it ends."""
        started = monotonic()
        raw = await request.read()
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            body = None
        valid = isinstance(body, dict)
        call = self._call(request, body if isinstance(body, dict) else {}, started)
        self.ledger.begin(call)
        try:
            if not valid:
                return self._refuse(call, error(400, "We could not parse the JSON body of your request."))
            return await self._respond(call, request)
        except (asyncio.CancelledError, ConnectionError):
            self.ledger.end(call, Outcome.CANCELLED)
            raise
        except Exception:
            self.ledger.end(call, Outcome.FAULTED, fault="broken-rule", status=500)
            raise

    def _call(self, request: web.Request, body: Mapping[str, Any], started: float) -> Call:
        path, model, prompt = request.path, str(body.get("model", "")), prompt_of(body)
        digest = digest_of(path, model, prompt)
        place = path + digest
        self._number += 1
        self._occurrences[place] += 1
        return Call(
            number=self._number,
            path=path,
            model=model,
            prompt=prompt,
            digest=digest,
            occurrence=self._occurrences[place],
            streamed=body.get("stream") is True,
            headers=request.headers,
            body=body,
            started=started,
        )

    async def _respond(self, call: Call, request: web.Request) -> web.StreamResponse:
        refused = refusal(self.switches, call)
        if refused is not None:
            return self._refuse(call, refused)
        rule = self.rule_book.pick(call)
        own_latency = None if rule is None else rule.latency
        latency = self.latency if own_latency is None else own_latency
        fault = None if rule is None else rule.fault
        key = call.headers.get(BENCH_KEY_HEADER) or f"{call.digest}/{call.occurrence}"
        ends_after = None if rule is None else rule.ends_after
        turn = _Turn(call, request, fault, latency, latency.draw(key), ends_after)
        if fault is not None:
            failed = await self._fail_at_once(turn, fault, waits=own_latency is not None)
            if failed is not None:
                return failed
        if call.path == "/v1/embeddings":
            return await self._send_whole(turn, self._embeddings(turn), words=0)
        if call.path == "/v1/models":
            return await self._send_whole(turn, _models(self.switches), words=0)
        return await self._send_text(turn, NO_ANSWER if rule is None else rule.answer)

    async def _fail_at_once(self, turn: _Turn, fault: Fault, *, waits: bool) -> web.StreamResponse | None:
        """Carry out a fault that needs no answer; an error waits only for a latency of its own rule."""
        match fault.kind:
            case FaultKind.ERROR:
                if waits:
                    await sleep_until(turn.due(0))
                return self._refuse(turn.call, fault)
            case FaultKind.DROP_BEFORE_ANY_BYTE:
                if waits:
                    await sleep_until(turn.due(0))
                await self._drop(turn)
            case FaultKind.HANG:
                await self._wait_for_the_client_to_go(turn)
            case _:
                pass
        return None

    async def _send_text(self, turn: _Turn, answer: Any) -> web.StreamResponse:
        call = turn.call
        if answer is NO_ANSWER:
            answer = self.answer
        if answer is None:
            try:
                answer = make_up(
                    call, self.switches.answer_words, states_position=self.switches.states_positions
                )
            except UnsupportedSchemaError as problem:
                return self._refuse(call, error(400, f"Invalid schema: {problem}.", code="invalid_schema"))
        reply = reply_to(call, answer, call.number)
        if turn.fault is not None:
            reply = spoil(reply, turn.fault)
        turn.tokens = (reply.tokens_in, reply.tokens_out)
        wire = _WIRES[call.path]
        if call.streamed:
            return await self._send_stream(turn, wire.stream(reply, call.body))
        words = len(split_words(reply.text)) if turn.latency.per_token else 0
        return await self._send_whole(turn, wire.body(reply, call.body), words)

    def _embeddings(self, turn: _Turn) -> bytes:
        body = turn.call.body
        given = body.get("input", "")
        texts = [given] if isinstance(given, str) or (given and isinstance(given[0], int)) else given
        vectors = [
            embed(str(text), int(body.get("dimensions") or self.switches.dimensions)) for text in texts
        ]
        packed = body.get("encoding_format") == "base64"
        tokens = count_tokens(turn.call.prompt)
        turn.tokens = (tokens, 0)
        data = [
            {"object": "embedding", "index": index, "embedding": as_base64(vector) if packed else vector}
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return encode({"object": "list", "data": data, "model": turn.call.model, "usage": usage})

    async def _send_whole(self, turn: _Turn, body: bytes, words: int) -> web.StreamResponse:
        await sleep_until(turn.due(words))
        kind = turn.kind
        if kind is FaultKind.ERROR_MID_STREAM:
            return self._refuse(turn.call, error(500))
        if kind in {FaultKind.DROP_AFTER_HEADERS, FaultKind.DROP_MID_STREAM, FaultKind.STALL_MID_STREAM}:
            response = web.StreamResponse(headers={**_JSON, "Content-Length": str(len(body))})
            await response.prepare(turn.request)
            if kind is not FaultKind.DROP_AFTER_HEADERS:
                await response.write(body[: len(body) // 2])
            await self._break_off(turn)
        if kind is FaultKind.WRONG_JSON:
            body = body[: len(body) // 2]
        elif kind is FaultKind.BAD_UTF8 and not turn.call.has_text:
            body += b"\xff\xfe"
        self._finish(turn)
        return web.Response(body=body, headers=_JSON)

    async def _send_stream(self, turn: _Turn, stream: Stream) -> web.StreamResponse:
        response = web.StreamResponse(headers=_SSE)
        await response.prepare(turn.request)
        if turn.kind is FaultKind.DROP_AFTER_HEADERS:
            await self._drop(turn)
        pieces = stream.pieces
        breaks = turn.fault is not None and turn.fault.kind in _BREAKS
        if breaks and turn.fault is not None:
            pieces = pieces[: turn.fault.after_chunks]
        rest = await self._send_paced(turn, response, stream.head, pieces)
        if not breaks:
            if turn.ends_after is not None:
                await response.write(rest)
                rest = b""
                await turn.ends_after.wait()
            self._finish(turn)
            await response.write(rest + stream.tail)
            with suppress(ClientConnectionResetError):  # whoever has read the tail may leave before the end
                await response.write_eof()
            return response
        match turn.kind:
            case FaultKind.ERROR_MID_STREAM:
                self._finish(turn)
                await response.write(rest + stream.error)
            case FaultKind.WRONG_JSON:
                self._finish(turn)
                await response.write(rest + b'data: {"id": "broken", "choices": [{"del\n\n')
            case _:
                await response.write(rest)
                await self._break_off(turn)
        await response.write_eof()
        return response

    async def _send_paced(
        self, turn: _Turn, response: web.StreamResponse, head: bytes, pieces: list[bytes]
    ) -> bytes:
        """Write what is due while there is something to wait for; return the rest, to go out in one write."""
        latency = turn.latency
        if turn.draw == 0.0 and latency.per_token == 0.0:
            return head + b"".join(pieces)
        await response.write(head)
        first = turn.call.started + turn.draw * latency.first_token_share
        await sleep_until(first)
        step = latency.per_token + turn.draw * (1.0 - latency.first_token_share) / max(len(pieces), 1)
        if step == 0.0:
            return b"".join(pieces)
        for index, piece in enumerate(pieces):
            if piece:
                await response.write(piece)
            await sleep_until(first + (index + 1) * step)
        return b""

    def _refuse(self, call: Call, fault: Fault) -> web.Response:
        self.ledger.end(call, Outcome.FAULTED, fault=fault.name, status=fault.status)
        return web.Response(status=fault.status, headers=fault.headers(), body=fault.body())

    def _finish(self, turn: _Turn) -> None:
        """Record before the last byte goes out, so that who has the answer finds it in the ledger."""
        if turn.fault is None:
            self.ledger.end(turn.call, Outcome.ANSWERED, status=200, tokens=turn.tokens)
        else:
            self.ledger.end(turn.call, Outcome.FAULTED, fault=turn.fault.name, status=200, tokens=turn.tokens)

    async def _break_off(self, turn: _Turn) -> Never:
        if turn.kind is FaultKind.STALL_MID_STREAM:
            await self._wait_for_the_client_to_go(turn)
        await self._drop(turn)

    async def _drop(self, turn: _Turn) -> Never:
        """Close the connection under the client; what was written before still arrives."""
        assert turn.fault is not None
        self.ledger.end(turn.call, Outcome.FAULTED, fault=turn.fault.name)
        if turn.request.transport is not None:
            turn.request.transport.close()
        await _wait_forever()

    async def _wait_for_the_client_to_go(self, turn: _Turn) -> Never:
        assert turn.fault is not None
        try:
            await _wait_forever()
        finally:
            self.ledger.end(turn.call, Outcome.CANCELLED, fault=turn.fault.name)


_BREAKS = frozenset(
    {
        FaultKind.DROP_MID_STREAM,
        FaultKind.STALL_MID_STREAM,
        FaultKind.ERROR_MID_STREAM,
        FaultKind.WRONG_JSON,
    }
)


async def _wait_forever() -> Never:
    """Wait until the handler is cancelled, which is when the connection is gone."""
    while True:
        await asyncio.get_running_loop().create_future()


def _models(switches: Switches) -> bytes:
    names = switches.models if switches.models is not None else ("test-model",)
    data = [
        {"id": name, "object": "model", "created": 0, "owned_by": "test", **switches.model_entry}
        for name in names
    ]
    return encode({"object": "list", "data": data})
