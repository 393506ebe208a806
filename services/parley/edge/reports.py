"""A debate's report as a file: as Markdown, however long it is, and as HTML."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Final

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from grpc import StatusCode
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from parley.edge.calls import OrchestratorCalls, find_address
from parley.edge.statuses import to_response
from parley.runtime.errors import ParleyError
from parley.runtime.html_page import PAGE_POLICY, render_page
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.orchestrator_pb2 import StreamReportRequest

_MAX_CHARACTERS: Final = 1_000_000
"""Of a report that becomes HTML here, where others wait for the same thread. The command has no such bound."""


class Reports:
    """Reports of debates, over the orchestrator's `StreamReport`."""

    def __init__(self, method: MethodDescriptor, calls: OrchestratorCalls) -> None:
        self._method = method
        self._calls = calls

    async def answer_markdown(self, request: Request) -> Response:
        """Return the report as Markdown, piece by piece."""
        pieces = self._read_pieces(request)
        try:
            first = await anext(pieces, "")
        except ParleyError as error:
            return to_response(error)
        return StreamingResponse(
            _with_first(first, pieces),
            headers=_headers(request, "md"),
            media_type="text/markdown; charset=utf-8",
        )

    async def answer_html(self, request: Request) -> Response:
        """Return the report as one HTML file."""
        try:
            async with aclosing(self._read_pieces(request)) as pieces:
                markdown = await _join(pieces)
        except ParleyError as error:
            return to_response(error)
        page = await in_thread_if_large(len(markdown), partial(render_page, markdown))
        return Response(page, headers=_headers(request, "html"), media_type="text/html; charset=utf-8")

    async def _read_pieces(self, request: Request) -> AsyncGenerator[str, None]:
        wanted = StreamReportRequest(debate_id=request.path_params["debate_id"])
        found: AsyncGenerator[Message, None] = self._calls.stream(
            self._method, wanted, dict(request.headers), find_address(request)
        )
        async with aclosing(found):
            async for each in found:
                yield each.markdown  # type: ignore[attr-defined]


async def _with_first(first: str, pieces: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    async with aclosing(pieces):
        yield first
        async for each in pieces:
            yield each


async def _join(pieces: AsyncGenerator[str, None]) -> str:
    """Return all pieces as one text. Raise ParleyError if it is too long."""
    found, characters = [], 0
    async for each in pieces:
        characters += len(each)
        if characters > _MAX_CHARACTERS:
            raise ParleyError(
                StatusCode.FAILED_PRECONDITION,
                "REPORT_TOO_LARGE",
                f"the report has more than {_MAX_CHARACTERS:,} characters: read it as Markdown (report.md), "
                "or make the page with: parley report ID --html",
            )
        found.append(each)
    return "".join(found)


def _headers(request: Request, ending: str) -> dict[str, str]:
    """Return headers by which a browser saves the file, and would run nothing of it."""
    name = "".join(each for each in request.path_params["debate_id"] if each.isalnum() or each == "-")[:64]
    return {
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="{name}.{ending}"',
        "Content-Security-Policy": f"{PAGE_POLICY}; sandbox",
        "X-Content-Type-Options": "nosniff",
    }
