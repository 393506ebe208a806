"""Signing people in and out by a key or a ticket, and tickets for those who are known already."""

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from parley.edge.calls import OrchestratorCalls
from parley.edge.console.cookies import CookieTooLargeError
from parley.edge.console.sessions import Credentials, Sessions
from parley.edge.statuses import to_response
from parley.runtime.errors import ParleyError, unauthenticated

_MAX_BYTES: Final = 16 * 1024
_NO_STORE: Final = {"Cache-Control": "no-store"}


class SignIn:
    """Signs people in and out, and creates tickets for those who are known already."""

    def __init__(self, sessions: Sessions, calls: OrchestratorCalls) -> None:
        self._sessions = sessions
        self._calls = calls

    def create_routes(self) -> list[BaseRoute]:
        """Return the routes of the edge's application."""
        return [
            Route("/console/session", self.create_session, methods=["POST"]),
            Route("/console/session", self.delete_session, methods=["DELETE"]),
            Route("/console/ticket", self.create_ticket, methods=["POST"]),
        ]

    async def create_session(self, request: Request) -> Response:
        """Set the cookie for `{"key": …, "tenant": …}` or `{"ticket": …}`. 401: they are not valid."""
        given = await _read_object(request)
        if "ticket" in given:
            credentials = self._sessions.use_ticket(str(given["ticket"]))
        else:
            credentials = Credentials(f"Bearer {given.get('key', '')}", str(given.get("tenant", "")))
        if credentials is None:
            return _refuse("this link was used, or is older than ten minutes; make a new one: parley open")
        answer = Response(status_code=204, headers=_NO_STORE)
        try:
            # First, as a token that is too long for a cookie may be too long for the metadata of a call.
            self._sessions.set_cookie(answer, request, credentials, self._sessions.seconds)
            self._sessions.delete_renewal(answer, request)  # else it would renew another caller's session
            await check_credentials(self._calls, credentials)
        except ParleyError as error:
            return to_response(error)
        except CookieTooLargeError:
            return _refuse("this token is too long for a cookie of your browser; sign in with a key")
        return answer

    async def delete_session(self, request: Request) -> Response:
        """Take the cookie away."""
        answer = Response(status_code=204, headers=_NO_STORE)
        self._sessions.delete_cookies(answer, request)
        return answer

    async def create_ticket(self, request: Request) -> Response:
        """Return the path of a link that signs its reader in as the caller, once. 401: the caller has no credentials."""
        authorization = request.headers.get("authorization", "")
        if not authorization:
            return _refuse("send the header Authorization")
        credentials = Credentials(authorization, request.headers.get("parley-tenant", ""))
        try:
            await check_credentials(self._calls, credentials)
        except ParleyError as error:
            return to_response(error)
        # After `#`, so that no server or log on the way sees it.
        return JSONResponse(
            {"path": f"/login#ticket={self._sessions.create_ticket(credentials)}"}, headers=_NO_STORE
        )


async def check_credentials(calls: OrchestratorCalls, credentials: Credentials) -> None:
    """Raise ParleyError unless the orchestrator knows whose they are, who may read debates."""
    headers: Mapping[str, str] = {
        "authorization": credentials.authorization,
        **({"parley-tenant": credentials.tenant} if credentials.tenant else {}),
    }
    await calls.check_reader(headers)


async def _read_object(request: Request) -> Mapping[str, Any]:
    if int(request.headers.get("content-length", 0)) > _MAX_BYTES:
        return {}
    try:
        found = json.loads(await request.body())
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _refuse(message: str) -> Response:
    return to_response(unauthenticated("SIGN_IN_REFUSED", message))
