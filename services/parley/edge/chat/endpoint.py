"""`/v1/models` and `/v1/chat/completions`, as OpenAI's clients call them."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import aclosing
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from parley.edge.calls import find_address
from parley.edge.chat.catalogue import Catalogue
from parley.edge.chat.debates import Answer, Caller, ChatDebates
from parley.edge.chat.errors import refuse, to_error_response
from parley.edge.chat.messages import ALIVE, END, Completion, to_error_event
from parley.edge.chat.progress import Progress
from parley.edge.chat.request import ChatRequest, read_chat_request
from parley.runtime.errors import ParleyError
from parley.runtime.logs import get_logger
from parley.v1.debate_pb2 import DebateSpec
from parley.v1.event_pb2 import Concluded

_MAX_BYTES: Final = 4 * 1024 * 1024
_SILENCE_SECONDS: Final = 15.0
"""Proxies cut connections on which nothing comes for a minute."""
_NEVER_AGAIN: Final = {"x-should-retry": "false"}
"""OpenAI's clients send a failed request again, which would be another debate."""
_UNBUFFERED: Final = {"X-Accel-Buffering": "no"}
_STREAM: Final = {"Content-Type": "text/event-stream; charset=utf-8", **_UNBUFFERED}
_JSON: Final = {"Content-Type": "application/json", **_UNBUFFERED}
_CANCEL: Final = "parley-cancel-on-disconnect"
_PIECE: Final = 4000
"""Characters of the answer in one part."""

T = TypeVar("T")
_logger = get_logger(__name__)


class ChatCompletions:
    """The application behind `/v1/chat/completions`: a debate for each request."""

    def __init__(self, catalogue: Catalogue, debates: ChatDebates) -> None:
        self._catalogue = catalogue
        self._debates = debates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request with what its debate comes to. It goes on if the client hangs up, unless a header says otherwise."""
        request = Request(scope, receive)
        caller = _caller(request)
        try:
            asked = read_chat_request(await _read_body(request))
            spec = self._specify(asked)
            with self._debates.count_stream(caller):
                debate_id = await self._debates.create(spec, caller)
                completion = Completion(debate_id, asked.model, asked.ignored)
                if asked.stream:
                    answering = self._stream(completion, caller, send, include_usage=asked.include_usage)
                else:
                    answering = self._answer(completion, caller, scope, receive, send)
                finished = await _run_while_connected(receive, answering)
                if not finished and caller.headers.get(_CANCEL, "").lower() == "true":
                    await self._cancel(debate_id, caller)
        except ParleyError as error:
            await to_error_response(error)(scope, receive, send)

    def _specify(self, asked: ChatRequest) -> DebateSpec:
        spec = DebateSpec()
        spec.CopyFrom(self._catalogue.find(asked.model).spec)
        spec.question = asked.question
        spec.context.extend(asked.documents)
        return spec

    async def _answer(
        self, completion: Completion, caller: Caller, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer in one piece. What takes long begins with empty lines, which JSON allows; then its status is 200, whatever comes."""
        begun = False
        async with aclosing(_with_beats(self._conclude(completion, caller))) as responses:
            async for response in responses:
                if response is not None and not begun:
                    await response(scope, receive, send)
                    return
                if not begun:
                    await _begin(send, {**completion.headers, **_NEVER_AGAIN, **_JSON})
                    begun = True
                body = b"\n" if response is None else response.body
                await send({"type": "http.response.body", "body": body, "more_body": response is None})

    async def _conclude(self, completion: Completion, caller: Caller) -> AsyncGenerator[Response, None]:
        """Yield the answer or the error, once it is there."""
        try:
            concluded = Concluded()
            async with aclosing(self._debates.follow(completion.debate_id, caller)) as events:
                async for event in events:
                    concluded = event.concluded
            answer = await self._debates.get_answer(completion.debate_id, concluded, caller)
        except ParleyError as error:
            yield to_error_response(error, {**completion.headers, **_NEVER_AGAIN})
        else:
            yield JSONResponse(completion.whole(answer), headers=completion.headers)

    async def _stream(
        self, completion: Completion, caller: Caller, send: Send, *, include_usage: bool
    ) -> None:
        await _begin(send, {**completion.headers, **_STREAM})
        written = self._write(completion, caller, include_usage=include_usage)
        async with aclosing(_with_beats(written)) as parts:
            async for part in parts:
                body = (part or ALIVE).encode()
                await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _write(
        self, completion: Completion, caller: Caller, *, include_usage: bool
    ) -> AsyncGenerator[str, None]:
        """Yield the parts of the answer: what the agents say as reasoning, then the answer."""
        yield completion.part({"role": "assistant", "content": ""})
        progress, concluded = Progress(), Concluded()
        try:
            async with aclosing(self._debates.follow(completion.debate_id, caller)) as events:
                async for event in events:
                    concluded = event.concluded
                    if text := progress.tell(event):
                        yield completion.part({"reasoning_content": text})
            answer = await self._debates.get_answer(completion.debate_id, concluded, caller)
        except ParleyError as error:
            yield to_error_event(error)
            return
        for part in _answer_parts(completion, answer, include_usage=include_usage):
            yield part

    async def _cancel(self, debate_id: str, caller: Caller) -> None:
        try:
            await self._debates.cancel(debate_id, caller)
        except ParleyError as error:
            _logger.warning(
                "a debate goes on though its client hung up: it was not cancelled",
                debate_id=debate_id,
                error=error.message,
            )


class Models:
    """The models that clients choose from, for whoever may read debates."""

    def __init__(self, catalogue: Catalogue, debates: ChatDebates) -> None:
        self._catalogue = catalogue
        self._debates = debates

    async def list_all(self, request: Request) -> Response:
        """Return all models."""
        try:
            await self._debates.check_reader(_caller(request))
        except ParleyError as error:
            return to_error_response(error)
        return JSONResponse(self._catalogue.describe_all(), headers={"Cache-Control": "no-store"})

    async def get(self, request: Request) -> Response:
        """Return one model."""
        try:
            await self._debates.check_reader(_caller(request))
            model = self._catalogue.find(request.path_params["model"])
        except ParleyError as error:
            return to_error_response(error)
        return JSONResponse(self._catalogue.describe(model), headers={"Cache-Control": "no-store"})


def chat_routes(catalogue: Catalogue, debates: ChatDebates) -> list[Route]:
    """Return the routes of the models and of the completions."""
    models = Models(catalogue, debates)
    return [
        Route("/v1/models", models.list_all),
        Route("/v1/models/{model}", models.get),
        Route("/v1/chat/completions", ChatCompletions(catalogue, debates), methods=["POST"]),
    ]


def _caller(request: Request) -> Caller:
    return Caller(dict(request.headers), find_address(request))


async def _read_body(request: Request) -> bytes:
    if int(request.headers.get("content-length", 0)) > _MAX_BYTES:
        raise refuse("body", f"may have {_MAX_BYTES} bytes at most")
    return await request.body()


async def _run_while_connected(receive: Receive, work: Coroutine[Any, Any, None]) -> bool:
    """Run the work and return True; stop it and return False if the client hangs up first, or does not read."""
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_wait_for_disconnect(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            return False
        working.result()
    except (OSError, TimeoutError):
        return False
    else:
        return True
    finally:
        for each in (working, leaving):
            each.cancel()
        await asyncio.wait({working, leaving})


async def _begin(send: Send, headers: Mapping[str, str]) -> None:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": 200, "headers": raw})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _with_beats(parts: AsyncGenerator[T, None]) -> AsyncGenerator[T | None, None]:
    """Yield the parts, and None whenever none came for a while."""
    pending = asyncio.ensure_future(anext(parts))
    try:
        while True:
            done, _ = await asyncio.wait({pending}, timeout=_SILENCE_SECONDS)
            if not done:
                yield None
                continue
            try:
                part = pending.result()
            except StopAsyncIteration:
                return
            yield part
            pending = asyncio.ensure_future(anext(parts))
    finally:
        pending.cancel()
        await asyncio.wait({pending})
        await parts.aclose()


def _answer_parts(completion: Completion, answer: Answer, *, include_usage: bool) -> list[str]:
    pieces = [answer.text[at : at + _PIECE] for at in range(0, len(answer.text), _PIECE)]
    parts = [completion.part({"content": each}) for each in pieces]
    parts.append(completion.part({}, "stop"))
    return [*parts, *([completion.usage_part(answer.usage)] if include_usage else []), END]
