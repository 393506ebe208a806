"""The page of a one-time link: a GET shows what is asked and changes nothing, its button does what the link is for."""

import html
from datetime import UTC
from typing import Final

from google.protobuf.descriptor import ServiceDescriptor
from starlette.requests import Request
from starlette.responses import HTMLResponse

from parley.edge.calls import OrchestratorCalls
from parley.edge.statuses import http_status
from parley.runtime.errors import UNKNOWN_CALLER, ParleyError
from parley.runtime.html_page import FORM_POLICY, render_form_page
from parley.runtime.printable import printable
from parley.v1.link_pb2 import (
    LINK_ACTION_APPROVE,
    LINK_ACTION_CONTINUE,
    LINK_ACTION_END,
    GetLinkRequest,
    GetLinkResponse,
    UseLinkRequest,
    UseLinkResponse,
)

_BUTTONS: Final = {
    LINK_ACTION_CONTINUE: "Continue",
    LINK_ACTION_END: "End the rounds",
    LINK_ACTION_APPROVE: "Approve",
}
_DONE: Final = {
    LINK_ACTION_CONTINUE: "The debate goes on.",
    LINK_ACTION_END: "The rounds are ended; the debate goes to its answer.",
    LINK_ACTION_APPROVE: "It is approved.",
}
_GONE: Final = frozenset(
    {"LINK_USED", "LINK_EXPIRED", "CHECKPOINT_CLOSED", "EXPIRED_CREDENTIALS", "DEBATE_ENDED"}
)
_HEADERS: Final = {
    "Cache-Control": "no-store",
    # The token is in the address: it goes to no other site.
    "Referrer-Policy": "same-origin",
    "Content-Security-Policy": f"{FORM_POLICY}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
}


class Links:
    """Pages of one-time links, over the orchestrator's `GetLink` and `UseLink`.

    The link's token is all that is sent for it: who is signed in, if anybody, counts for nothing, so no other site gains by sending the form.
    """

    def __init__(self, service: ServiceDescriptor, calls: OrchestratorCalls) -> None:
        self._get = service.methods_by_name["GetLink"]
        self._use = service.methods_by_name["UseLink"]
        self._calls = calls

    async def answer_page(self, request: Request) -> HTMLResponse:
        """Return the page that asks whether to do it."""
        token = request.path_params["token"]
        try:
            found = await self._calls.call(self._get, GetLinkRequest(token=token), _credentials(token))
        except ParleyError as error:
            return _refusal_page(error)
        assert isinstance(found, GetLinkResponse)
        return _page(_question_body(found))

    async def answer_use(self, request: Request) -> HTMLResponse:
        """Do what the link is for, and return a page that says so."""
        token = request.path_params["token"]
        try:
            done = await self._calls.call(self._use, UseLinkRequest(token=token), _credentials(token))
        except ParleyError as error:
            return _refusal_page(error)
        assert isinstance(done, UseLinkResponse)
        return _page(
            f"<h1>Done</h1>\n<p>{_DONE.get(done.action, 'It is done.')} This link works no more.</p>\n"
        )


def _credentials(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def _question_body(found: GetLinkResponse) -> str:
    button = _BUTTONS.get(found.action, "Do it")
    until = found.expire_time.ToDatetime(UTC)
    return (
        f"<h1>{html.escape(button)}?</h1>\n"
        f"<p>A debate waits for a person. Its question:</p>\n<blockquote>{_text(found.question)}</blockquote>\n"
        f"<p>What is asked:</p>\n<blockquote>{_text(found.asked)}</blockquote>\n"
        f'<form method="post"><button type="submit">{html.escape(button)}</button></form>\n'
        f"<p>This link does this alone, once, until {until:%Y-%m-%d %H:%M} UTC.</p>\n"
    )


def _refusal_page(error: ParleyError) -> HTMLResponse:
    reason = error.reason
    if reason in _GONE:
        message = "This link has expired." if reason == "EXPIRED_CREDENTIALS" else f"{error.message}."
        return _page(f"<h1>This link works no more</h1>\n<p>{_text(message)}</p>\n", 410)
    if reason in UNKNOWN_CALLER or reason == "LINK_NOT_FOUND":
        return _page("<h1>No such link</h1>\n<p>There is no such link here. Is all of it copied?</p>\n", 404)
    return _page(f"<h1>It could not be done</h1>\n<p>{_text(error.message)}</p>\n", http_status(error))


def _page(body: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(render_form_page(body), status, _HEADERS)


def _text(text: str) -> str:
    """Return a text that others wrote as HTML that shows it as it is."""
    return "<br>\n".join(map(html.escape, printable(text).splitlines()))
