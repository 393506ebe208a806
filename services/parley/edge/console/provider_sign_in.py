"""Signing people in at an OpenID provider, and keeping them signed in while the provider agrees.

The browser keeps all of it, encrypted: for ten minutes what a sign-in began with, then the provider's token in the session,
and apart from it the one that gets a new token, which is sent to these addresses alone.
"""

import hmac
import time
from contextlib import suppress
from html import escape
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from parley.edge.calls import OrchestratorCalls
from parley.edge.console.cookies import CookieTooLargeError, delete_cookie, set_cookie
from parley.edge.console.provider import Provider, Tokens
from parley.edge.console.seals import Seal
from parley.edge.console.sessions import PROVIDER_PATH, RENEWAL, Credentials, Sessions
from parley.edge.console.sign_in import check_credentials
from parley.edge.statuses import http_status, to_response
from parley.runtime.errors import ParleyError, unauthenticated

_BEGUN: Final = "parley-sign-in"
_BEGUN_SECONDS: Final = 600
_RENEWAL_TEXTS: Final = 3
_NO_STORE: Final = {"Cache-Control": "no-store"}
_PAGE_HEADERS: Final = {
    **_NO_STORE,
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}
_UNKNOWN_HERE: Final = (
    "your provider signed you in, but Parley does not accept its token: {}. Ask whoever runs it; "
    "the token has to name your tenant and your roles, and PARLEY_JWT_AUDIENCE of the orchestrator"
)


class _Renewal(Struct, frozen=True):
    """What renews a session: a token, empty without one; when people signed in, in seconds since 1970; and who did."""

    refresh_token: str
    signed_in: float
    subject: str


class ProviderSignIn:
    """Signs people in at one provider."""

    def __init__(
        self, provider: Provider, issuer: str, seal: Seal, sessions: Sessions, calls: OrchestratorCalls
    ) -> None:
        self._provider = provider
        self._name = urlsplit(issuer).hostname or issuer
        self._seal = seal
        self._sessions = sessions
        self._calls = calls

    def create_routes(self) -> list[BaseRoute]:
        """Return the routes of the edge's application."""
        return [
            Route(PROVIDER_PATH, self.answer_name),
            Route(f"{PROVIDER_PATH}/start", self.start),
            Route(f"{PROVIDER_PATH}/callback", self.finish),
            Route(f"{PROVIDER_PATH}/renew", self.renew, methods=["POST"]),
            Route(f"{PROVIDER_PATH}/end", self.end, methods=["POST"]),
        ]

    async def answer_name(self, _: Request) -> Response:
        """Return the provider's name, as the page shows it."""
        return JSONResponse({"name": self._name}, headers=_NO_STORE)

    async def start(self, request: Request) -> Response:
        """Lead the browser to the provider."""
        try:
            begun = await self._provider.begin(_find_return_address(request))
        except ParleyError as error:
            return _show_error(error)
        answer = RedirectResponse(begun.url, 303, _NO_STORE)
        target = _check_target(request.query_params.get("next", "/"))
        sealed = self._seal.encrypt("sign-in", begun.state, begun.nonce, begun.verifier, target)
        # Lax: the provider leads the browser back, from its site to ours.
        set_cookie(answer, request, _BEGUN, sealed, _BEGUN_SECONDS, path=PROVIDER_PATH, same_site="lax")
        return answer

    async def finish(self, request: Request) -> Response:
        """Sign in whom the provider leads back, and show the page that was asked for."""
        try:
            tokens, target = await self._redeem(request)
            answer: Response = RedirectResponse(target, 303, _NO_STORE)
            # First, as a token that is too long for a cookie may be too long for the metadata of a call.
            self._keep(answer, request, tokens, time.time())
            await self._check(tokens)
        except ParleyError as error:
            answer = _show_error(error)
        delete_cookie(answer, request, _BEGUN, path=PROVIDER_PATH)
        return answer

    async def renew(self, request: Request) -> Response:
        """Get a new token for a session whose token has expired. 401: people sign in again."""
        kept = self._read_renewal(request)
        if kept is None or not kept.refresh_token:
            return to_response(unauthenticated("SIGN_IN_OVER", "sign in again"))
        answer = Response(status_code=204, headers=_NO_STORE)
        try:
            tokens = await self._provider.renew(kept.refresh_token, kept.subject)
            self._keep(answer, request, tokens, kept.signed_in)
        except ParleyError as error:
            return to_response(error)
        return answer

    async def end(self, request: Request) -> Response:
        """Sign out here, and return where the browser signs out at the provider; empty if nowhere."""
        kept, address = self._read_renewal(request), ""
        with suppress(ParleyError):  # whoever wants to leave is let go, also if the provider is away
            address = (
                await self._provider.sign_out(kept.refresh_token, f"{_find_base(request)}/login")
                if kept
                else ""
            )
        answer = JSONResponse({"address": address}, headers=_NO_STORE)
        self._sessions.delete_cookies(answer, request)
        return answer

    async def _redeem(self, request: Request) -> tuple[Tokens, str]:
        """Return the tokens for the code in the address, and the page to show. Raise ParleyError if this browser did not begin it."""
        given = request.query_params
        begun = self._seal.decrypt("sign-in", request.cookies.get(_BEGUN, ""), _BEGUN_SECONDS)
        if begun is None or not hmac.compare_digest(begun[0].encode(), given.get("state", "").encode()):
            raise unauthenticated(
                "SIGN_IN_REFUSED", "this sign-in was begun in another browser, or more than ten minutes ago"
            )
        _, nonce, verifier, target = begun
        if "error" in given or not given.get("code"):
            reason = given.get("error_description") or given.get("error") or "it sent no code"
            raise unauthenticated("SIGN_IN_REFUSED", f"the sign-in provider refused: {reason[:300]}")
        tokens = await self._provider.finish(_find_return_address(request), given["code"], nonce, verifier)
        return tokens, target

    async def _check(self, tokens: Tokens) -> None:
        try:
            await check_credentials(self._calls, _to_credentials(tokens))
        except ParleyError as error:
            if http_status(error) not in (401, 403):
                raise
            raise unauthenticated("SIGN_IN_REFUSED", _UNKNOWN_HERE.format(error.message)) from None

    def _keep(self, answer: Response, request: Request, tokens: Tokens, signed_in: float) -> None:
        """Let the browser keep the tokens until the session is over."""
        left = max(signed_in + self._sessions.seconds - time.time(), 0)
        try:
            self._sessions.set_cookie(answer, request, _to_credentials(tokens), left)
            renewal = self._seal.encrypt("renewal", tokens.refresh, str(signed_in), tokens.subject)
            set_cookie(answer, request, RENEWAL, renewal, left, path=PROVIDER_PATH)
        except CookieTooLargeError:
            raise unauthenticated(
                "SIGN_IN_REFUSED",
                "the provider's token is too long for a cookie; let it put fewer claims in, such as no groups",
            ) from None

    def _read_renewal(self, request: Request) -> _Renewal | None:
        """Return what renews a session; None if that is over, or not by us."""
        cookie = request.cookies.get(RENEWAL, "")
        found = self._seal.decrypt("renewal", cookie, self._sessions.seconds) if cookie else None
        if found is None or len(found) != _RENEWAL_TEXTS or "origin" not in request.headers:
            return None
        kept = _Renewal(found[0], float(found[1]), found[2])
        return kept if kept.signed_in + self._sessions.seconds > time.time() else None


def _to_credentials(tokens: Tokens) -> Credentials:
    return Credentials(f"Bearer {tokens.bearer}")


def _find_base(request: Request) -> str:
    """Return the edge's address as the browser knows it. The name was checked, and a trusted proxy says the scheme."""
    return f"{request.url.scheme}://{request.headers.get('host', '')}"


def _find_return_address(request: Request) -> str:
    return f"{_find_base(request)}{PROVIDER_PATH}/callback"


def _check_target(path: str) -> str:
    """Return the page to show; the first one unless it is one of ours."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) else "/"


def _show_error(error: ParleyError) -> Response:
    """Return a page that says what went wrong: nobody's script asked for it."""
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Not signed in · Parley</title>'
        '<link rel="stylesheet" href="/console/style.css"></head><body><header class="bar"><a class="brand" href="/">'
        '<img src="/console/icon.svg" alt="" width="24" height="24">Parley</a></header><main><h1>You are not signed in</h1>'
        f'<p class="failure" role="alert">{escape(error.message)}</p>'
        '<p><a class="button primary" href="/login">Back to sign in</a></p></main></body></html>'
    )
    return HTMLResponse(page, http_status(error), _PAGE_HEADERS)
