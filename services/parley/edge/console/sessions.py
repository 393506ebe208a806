"""Sign-in of the console: a key becomes an encrypted cookie, which the edge turns into the header of each call again.

The edge keeps no session: the cookie has all of it. Its encryption is authenticated (Fernet: AES-CBC with HMAC-SHA-256).
"""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from parley.edge.calls import OrchestratorCalls
from parley.edge.statuses import to_response
from parley.runtime.errors import ParleyError

COOKIE: Final = "parley-session"
TICKET_SECONDS: Final = 600
_MAX_BYTES: Final = 16 * 1024
_SAFE: Final = frozenset({"GET", "HEAD"})
_NO_STORE: Final = {"Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a caller's requests carry: the header `Authorization`, and the tenant if one is named."""

    authorization: str
    tenant: str = ""


class SessionSeal:
    """Encrypts credentials: for a cookie, or for a ticket that signs in once."""

    def __init__(self, secrets_: Sequence[str], session_seconds: float) -> None:
        """Encrypt with the first of the secrets, and read what any of them encrypted. None given: one of this process alone."""
        self._fernet = MultiFernet(
            [Fernet(_derive_key(each)) for each in secrets_ or [secrets.token_urlsafe(32)]]
        )
        self.session_seconds = session_seconds
        self._used_tickets: dict[str, float] = {}

    def seal_session(self, credentials: Credentials) -> str:
        """Return the value of a cookie."""
        return self._seal("session", credentials)

    def open_session(self, cookie: str) -> Credentials | None:
        """Return the credentials; None if the cookie is not ours, or too old."""
        found = self._open("session", cookie, self.session_seconds)
        return found and found[0]

    def seal_ticket(self, credentials: Credentials) -> str:
        """Return a ticket, which signs in once within ten minutes."""
        return self._seal("ticket", credentials)

    def use_ticket(self, ticket: str) -> Credentials | None:
        """Return the credentials; None if the ticket is not ours, too old, or was used at this edge."""
        now = time.monotonic()
        self._used_tickets = {name: ends for name, ends in self._used_tickets.items() if ends > now}
        found = self._open("ticket", ticket, TICKET_SECONDS)
        if found is None or found[1] in self._used_tickets:
            return None
        self._used_tickets[found[1]] = now + TICKET_SECONDS
        return found[0]

    def _seal(self, purpose: str, credentials: Credentials) -> str:
        content = [purpose, secrets.token_urlsafe(12), credentials.authorization, credentials.tenant]
        return self._fernet.encrypt(json.dumps(content).encode()).decode()

    def _open(self, purpose: str, sealed: str, seconds: float) -> tuple[Credentials, str] | None:
        try:
            content = json.loads(self._fernet.decrypt(sealed.encode(), ttl=int(seconds)))
        except (InvalidToken, UnicodeEncodeError):
            return None
        found, number, authorization, tenant = content
        return (Credentials(authorization, tenant), number) if found == purpose else None


class SessionCookie:
    """Gives a request the credentials of its cookie, unless it has its own. A request that writes must name its origin, as browsers do."""

    def __init__(self, app: ASGIApp, seal: SessionSeal) -> None:
        self._app = app
        self._seal = seal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] == "http":
            credentials = self._find_credentials(scope)
            if credentials is not None:
                scope = {**scope, "headers": list(scope["headers"])}
                headers = MutableHeaders(scope=scope)
                headers["authorization"] = credentials.authorization
                if credentials.tenant:
                    headers.setdefault("parley-tenant", credentials.tenant)
        await self._app(scope, receive, send)

    def _find_credentials(self, scope: Scope) -> Credentials | None:
        headers = Headers(scope=scope)
        may_use = scope["method"] in _SAFE or "origin" in headers
        if "authorization" in headers or not may_use:
            return None
        cookie = Request(scope).cookies.get(COOKIE, "")
        return self._seal.open_session(cookie) if cookie else None


class SignIn:
    """Signs people in and out, and creates tickets for those who are known already."""

    def __init__(self, seal: SessionSeal, calls: OrchestratorCalls) -> None:
        self._seal = seal
        self._calls = calls

    async def create_session(self, request: Request) -> Response:
        """Set the cookie for `{"key": …, "tenant": …}` or `{"ticket": …}`. 401: they are not valid."""
        given = await _read_object(request)
        if "ticket" in given:
            credentials = self._seal.use_ticket(str(given["ticket"]))
        else:
            credentials = Credentials(f"Bearer {given.get('key', '')}", str(given.get("tenant", "")))
        if credentials is None:
            return _refuse("this link was used, or is older than ten minutes; make a new one: parley open")
        refused = await self._try_credentials(credentials)
        if refused is not None:
            return refused
        answer = Response(status_code=204, headers=_NO_STORE)
        answer.set_cookie(
            COOKIE,
            self._seal.seal_session(credentials),
            max_age=int(self._seal.session_seconds),
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return answer

    async def delete_session(self, request: Request) -> Response:
        """Take the cookie away."""
        answer = Response(status_code=204, headers=_NO_STORE)
        answer.delete_cookie(COOKIE, secure=request.url.scheme == "https", httponly=True, samesite="strict")
        return answer

    async def create_ticket(self, request: Request) -> Response:
        """Return the path of a link that signs its reader in as the caller, once. 401: the caller has no credentials."""
        authorization = request.headers.get("authorization", "")
        if not authorization:
            return _refuse("send the header Authorization")
        credentials = Credentials(authorization, request.headers.get("parley-tenant", ""))
        refused = await self._try_credentials(credentials)
        if refused is not None:
            return refused
        # After `#`, so that no server or log on the way sees it.
        return JSONResponse(
            {"path": f"/login#ticket={self._seal.seal_ticket(credentials)}"}, headers=_NO_STORE
        )

    async def _try_credentials(self, credentials: Credentials) -> Response | None:
        headers: Mapping[str, str] = {
            "authorization": credentials.authorization,
            **({"parley-tenant": credentials.tenant} if credentials.tenant else {}),
        }
        try:
            await self._calls.check_reader(headers)
        except ParleyError as error:
            return to_response(error)
        return None


async def _read_object(request: Request) -> Mapping[str, Any]:
    if int(request.headers.get("content-length", 0)) > _MAX_BYTES:
        return {}
    try:
        found = json.loads(await request.body())
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _refuse(message: str) -> Response:
    return JSONResponse({"code": "unauthenticated", "message": message}, 401, _NO_STORE)


def _derive_key(secret: str) -> bytes:
    return base64.urlsafe_b64encode(hashlib.sha256(f"parley console session:{secret}".encode()).digest())
