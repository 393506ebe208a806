"""Texts of agents as HTML for the page: rendered and cleaned here, so that the page needs no library."""

import asyncio
import json
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from parley.runtime.safe_html import render_markdown

_MAX_BYTES: Final = 4 * 1024 * 1024


async def answer_markdown(request: Request) -> Response:
    """Return the HTML of each text of a JSON list, in its order."""
    if int(request.headers.get("content-length", 0)) > _MAX_BYTES:
        return PlainTextResponse(f"at most {_MAX_BYTES} bytes at once\n", 413)
    try:
        texts = json.loads(await request.body())
    except ValueError:
        texts = None
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        return PlainTextResponse("send a JSON list of texts\n", 400)
    rendered = await asyncio.to_thread(lambda: [render_markdown(each) for each in texts])
    return JSONResponse(rendered, headers={"Cache-Control": "no-store"})
