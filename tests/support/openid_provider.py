"""An OpenID provider on loopback, with one person who is signed in already: codes, PKCE, and renewal tokens that count once."""

import base64
import hashlib
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from aiohttp import BasicAuth, web

from tests.support.token_issuer import AUDIENCE, TokenIssuer

CLIENT_ID = "parley-console"
CLIENT_SECRET = "of-the-console"


class OpenIdProvider(TokenIssuer):
    """What a test may set, and what it may ask.

    Attributes:
        access: Claims of its access tokens; `lasts` is their time.
        identity: Claims of its ID tokens that are otherwise right.
        refuses: The error with which it leads browsers back, if any.
        renews: Whether it gives tokens for renewal.
        revoked: Renewal tokens that were given back.
    """

    def __init__(self) -> None:
        super().__init__()
        self.access: dict[str, Any] = {"roles": ["debate", "read"]}
        self.identity: dict[str, Any] = {}
        self.refuses = ""
        self.renews = True
        self.revoked: list[str] = []
        self._codes: dict[str, Mapping[str, str]] = {}
        self._renewals: set[str] = set()

    def add_routes(self, router: web.UrlDispatcher) -> None:
        super().add_routes(router)
        router.add_get("/authorize", self._authorize)
        router.add_post("/token", self._redeem)
        router.add_post("/revoke", self._revoke)
        router.add_get("/end", self._end)

    def description(self) -> dict[str, Any]:
        names = {
            "authorization_endpoint": "authorize",
            "token_endpoint": "token",
            "revocation_endpoint": "revoke",
            "end_session_endpoint": "end",
        }
        return {**super().description(), **{name: f"{self.url}/{path}" for name, path in names.items()}}

    async def _authorize(self, request: web.Request) -> web.Response:
        asked = request.query
        assert asked["client_id"] == CLIENT_ID
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        answer = {"state": asked["state"]}
        if self.refuses:
            answer["error"] = self.refuses
        else:
            answer["code"] = secrets.token_urlsafe()
            self._codes[answer["code"]] = dict(asked)
        raise web.HTTPFound(f"{asked['redirect_uri']}?{urlencode(answer)}")

    async def _redeem(self, request: web.Request) -> web.Response:
        if self.away:
            raise web.HTTPServiceUnavailable
        if BasicAuth.decode(request.headers["Authorization"]) != (CLIENT_ID, CLIENT_SECRET, "latin1"):
            return _fail("invalid_client")
        given = await request.post()
        if given["grant_type"] == "refresh_token":
            return self._renew(str(given["refresh_token"]))
        asked = self._codes.pop(str(given["code"]), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(str(given["code_verifier"]).encode()).digest())
        if (
            asked is None
            or asked["redirect_uri"] != given["redirect_uri"]
            or asked["code_challenge"] != challenge.decode().rstrip("=")
        ):
            return _fail("invalid_grant")
        return web.json_response(self._tokens(asked["nonce"]))

    def _renew(self, token: str) -> web.Response:
        if token not in self._renewals:
            return _fail("invalid_grant")
        self._renewals.remove(token)
        return web.json_response(self._tokens(None))

    def _tokens(self, nonce: str | None) -> dict[str, Any]:
        identity = {"aud": CLIENT_ID, "nonce": nonce, "iat": 1, "tenant": None, "roles": None}
        found: dict[str, Any] = {
            "token_type": "Bearer",
            "access_token": self.sign(**{"aud": AUDIENCE, **self.access}),
            "id_token": self.sign(**{**identity, **self.identity}),
        }
        if self.renews:
            found["refresh_token"] = secrets.token_urlsafe()
            self._renewals.add(found["refresh_token"])
        return found

    async def _revoke(self, request: web.Request) -> web.Response:
        token = str((await request.post())["token"])
        self._renewals.discard(token)
        self.revoked.append(token)
        return web.Response()

    async def _end(self, request: web.Request) -> web.Response:
        raise web.HTTPFound(request.query["post_logout_redirect_uri"])


def _fail(error: str) -> web.Response:
    return web.json_response({"error": error, "error_description": f"it was refused: {error}"}, status=400)
