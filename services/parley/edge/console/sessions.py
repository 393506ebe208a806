"""Sessions of the console: credentials become an encrypted cookie, which the edge turns into the header of each call again.

The edge keeps no session: the cookie has all of it.
"""

import secrets
import time
from typing import Final

from msgspec import Struct
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from parley.edge.console.cookies import delete_cookie, set_cookie
from parley.edge.console.seals import Seal

COOKIE: Final = "parley-session"
RENEWAL: Final = "parley-renewal"
"""The cookie with what renews a session that a provider began; it is sent to `PROVIDER_PATH` alone."""
PROVIDER_PATH: Final = "/console/oidc"
TICKET_SECONDS: Final = 600
_SAFE: Final = frozenset({"GET", "HEAD"})


class Credentials(Struct, frozen=True):
    """What a caller's requests carry: the header `Authorization`, and the tenant if one is named."""

    authorization: str
    tenant: str = ""


class Sessions:
    """Credentials as cookies, and as tickets that sign in once."""

    def __init__(self, seal: Seal, seconds: float) -> None:
        """Let a session last that long."""
        self.seconds = seconds
        self._seal = seal
        self._used_tickets: dict[str, float] = {}

    def set_cookie(
        self, answer: Response, request: Request, credentials: Credentials, seconds: float
    ) -> None:
        """Let the browser have the credentials for that long. Raise CookieTooLargeError."""
        content = self._seal.encrypt("session", credentials.authorization, credentials.tenant)
        set_cookie(answer, request, COOKIE, content, seconds)

    def delete_cookies(self, answer: Response, request: Request) -> None:
        """Take the credentials from the browser, and what would renew them."""
        delete_cookie(answer, request, COOKIE)
        self.delete_renewal(answer, request)

    def delete_renewal(self, answer: Response, request: Request) -> None:
        """Take from the browser what would renew a session that a provider began."""
        delete_cookie(answer, request, RENEWAL, path=PROVIDER_PATH)

    def read_cookie(self, request: Request) -> Credentials | None:
        """Return the credentials; None if there is no cookie of ours, or if it is too old."""
        cookie = request.cookies.get(COOKIE, "")
        found = self._seal.decrypt("session", cookie, self.seconds) if cookie else None
        return Credentials(*found) if found else None

    def create_ticket(self, credentials: Credentials) -> str:
        """Return a ticket, which signs in once within ten minutes."""
        number = secrets.token_urlsafe(12)
        return self._seal.encrypt("ticket", number, credentials.authorization, credentials.tenant)

    def use_ticket(self, ticket: str) -> Credentials | None:
        """Return the credentials; None if the ticket is not ours, too old, or was used at this edge."""
        now = time.monotonic()
        self._used_tickets = {name: ends for name, ends in self._used_tickets.items() if ends > now}
        found = self._seal.decrypt("ticket", ticket, TICKET_SECONDS)
        if found is None or found[0] in self._used_tickets:
            return None
        self._used_tickets[found[0]] = now + TICKET_SECONDS
        return Credentials(*found[1:])


class SessionCookie:
    """Gives a request the credentials of its cookie, unless it has its own. A request that writes must name its origin, as browsers do."""

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        self._app = app
        self._sessions = sessions

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
        return self._sessions.read_cookie(Request(scope))
