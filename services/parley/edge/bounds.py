"""What an HTTP request may take of the edge before anybody is known: names, origins, sizes and time."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from parley.runtime.byte_budget import ByteBudget, Share
from parley.runtime.errors import ParleyError

CheckCaller = Callable[[Mapping[str, str]], Awaitable[None]]
"""Asks the orchestrator whether it knows who sends these headers. Raises ParleyError if not."""
ToAnswer = Callable[[str, ParleyError], Response]
"""Returns an error as clients of a path expect it."""

BODY_SECONDS: Final = 30.0
"""A body that has not come by then is refused."""
_TOTAL_BYTES: Final = 32 * 1024 * 1024
"""Each body takes some times its size until it is passed on."""
_UNKNOWN_BYTES: Final = 64 * 1024
"""A larger body is read from callers alone that the orchestrator knows."""
HEADER_BYTES: Final = 16 * 1024
"""All headers of a request together."""
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class OriginCheck:
    """Refuses what a page of another site writes, unless its origin is allowed. Programs send no origin."""

    def __init__(self, app: ASGIApp, allowed: Collection[str]) -> None:
        self._app = app
        self._allowed = frozenset(allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403, or pass the request on."""
        if scope["type"] == "http" and scope["method"] not in _SAFE:
            headers = Headers(scope=scope)
            origin, own = headers.get("origin"), f"{scope['scheme']}://{headers.get('host', '')}"
            if origin is not None and origin != own and origin not in self._allowed:
                refused = PlainTextResponse(
                    "pages of this origin may not write here: name it in PARLEY_EDGE_ORIGINS\n", 403
                )
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)


class RequestBounds:
    """Bounds whose large bodies are read, the bytes of all together, and the time in which a body comes and a client reads."""

    def __init__(
        self,
        app: ASGIApp,
        send_seconds: float,
        check_caller: CheckCaller,
        to_answer: ToAnswer,
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self._app = app
        self._check_caller = check_caller
        self._to_answer = to_answer
        self._send_seconds = send_seconds
        self._body_seconds = body_seconds
        self._budget = ByteBudget(_TOTAL_BYTES, _TOTAL_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 408, 411, 415, 431 or 503, or as the orchestrator refuses the caller, or pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refused = _find_refusal(headers)
        if refused is not None:
            await refused(scope, receive, send)
            return
        size = int(headers.get("content-length", 0))
        if size > _UNKNOWN_BYTES:
            try:
                await self._check_caller(headers)
            except ParleyError as error:
                await self._to_answer(scope["path"], error)(scope, receive, send)
                return
        try:
            async with asyncio.timeout(self._body_seconds):
                share = await self._budget.take(size)
        except TimeoutError:
            await PlainTextResponse("too many large requests at once; try again\n", 503)(scope, receive, send)
            return
        request = _BoundedRequest(receive, send, self._body_seconds, self._send_seconds, share)
        try:
            await self._app(scope, request.receive, request.send)
        except TimeoutError:  # nothing can be said to a client that does not read or write
            if not request.answered:
                await PlainTextResponse("the request did not come in time\n", 408)(scope, receive, send)
        finally:
            share.release()


class _BoundedRequest:
    """One request: its body comes within a time, and each part of its answer is read within a time."""

    def __init__(
        self, receive: Receive, send: Send, body_seconds: float, send_seconds: float, share: Share
    ) -> None:
        self._receive = receive
        self._send = send
        self._ends = asyncio.get_running_loop().time() + body_seconds
        self._send_seconds = send_seconds
        self._share = share
        self._is_whole = False
        self.answered = False

    async def receive(self) -> Message:
        """Return the next part of the body; after it the end of the connection."""
        if self._is_whole:
            return await self._receive()
        async with asyncio.timeout_at(self._ends):
            message = await self._receive()
        if message["type"] == "http.request":
            self._is_whole = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the answer. Raise TimeoutError if the client does not read: the server then closes the connection."""
        self.answered = True
        self._share.release()  # the body was read
        async with asyncio.timeout(self._send_seconds):
            await self._send(message)


def _find_refusal(headers: Headers) -> PlainTextResponse | None:
    if sum(len(name) + len(value) for name, value in headers.raw) > HEADER_BYTES:
        return PlainTextResponse(
            f"headers may have {HEADER_BYTES} bytes in all; send fewer or shorter ones\n", 431
        )
    kind = headers.get("content-type", "")
    if kind.startswith("application/grpc") and not kind.startswith("application/grpc-web"):
        return PlainTextResponse(
            "gRPC is spoken at the orchestrator; here: Connect, JSON and gRPC-web\n", 415
        )
    if headers.get("content-encoding", "identity") != "identity":
        return PlainTextResponse("send the body without Content-Encoding\n", 415)
    if "transfer-encoding" in headers:  # its size would be known only when it is there
        return PlainTextResponse("send the body with Content-Length, not in chunks\n", 411)
    return None
