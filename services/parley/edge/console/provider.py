"""An OpenID provider at which people sign in: OpenID Connect's code flow, with PKCE, state and nonce."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

import httpx2
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry
from msgspec import Struct

from parley.runtime.errors import ParleyError, unauthenticated, unavailable
from parley.runtime.logs import get_logger
from parley.runtime.unpacking import ACCEPT_GZIP, truncate, unpack

_ALGORITHMS: Final = (
    "RS256",
    "ES256",
    "PS256",
    "RS384",
    "ES384",
    "PS384",
    "RS512",
    "ES512",
    "PS512",
    "EdDSA",
)
"""Never one with a secret, and never `none`, whatever the provider offers."""
_SECONDS: Final = 10.0
_MAX_BYTES: Final = 256 * 1024
"""Of an answer, unpacked. What is cut off after them cannot be read."""
_FRESH_SECONDS: Final = 3600.0
"""How long the provider's description of itself counts."""
_LEEWAY_SECONDS: Final = 30
_REQUIRED: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")

_logger = get_logger(__name__)


class ProviderSettings(Struct, frozen=True):
    """How the edge is known to its provider.

    Attributes:
        client_secret: Empty for a client without one: PKCE then proves alone who began.
        scopes: Separated by spaces; `openid` is among them.
        token: Which of the provider's tokens the orchestrator accepts.
    """

    issuer: str
    client_id: str
    client_secret: str
    scopes: str
    token: Literal["access", "id"]


class Begun(Struct, frozen=True):
    """A sign-in that has begun: where the browser goes, and what proves afterwards that it came back from there."""

    url: str
    state: str
    nonce: str
    verifier: str


class Tokens(Struct, frozen=True):
    """What a sign-in comes to.

    Attributes:
        bearer: The token for the orchestrator.
        refresh: The token that gets a new one; empty if there is none.
        subject: Who signed in, by the provider's name.
    """

    bearer: str
    refresh: str
    subject: str


class Provider:
    """One provider, known by its address alone. It may be away for a while."""

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._found: Mapping[str, Any] = {}
        self._found_at = -_FRESH_SECONDS

    async def begin(self, redirect_uri: str) -> Begun:
        """Return where the browser goes to sign in. Raise ParleyError if the provider does not answer."""
        description = await self._describe()
        nonce, verifier = generate_token(32), generate_token(48)
        async with self._open_client(redirect_uri=redirect_uri, code_challenge_method="S256") as client:
            url, state = client.create_authorization_url(
                description["authorization_endpoint"], code_verifier=verifier, nonce=nonce
            )
        return Begun(url, state, nonce, verifier)

    async def finish(self, redirect_uri: str, code: str, nonce: str, verifier: str) -> Tokens:
        """Return the tokens for a code that the browser brought back. Raise ParleyError if it is not valid."""
        description = await self._describe()
        async with self._open_client(redirect_uri=redirect_uri) as client:
            answer = await client.fetch_token(
                description["token_endpoint"], code=code, code_verifier=verifier
            )
        if "id_token" not in answer:
            raise _refuse("its answer has no ID token: is openid among PARLEY_EDGE_OIDC_SCOPES?")
        subject = await self._check_id_token(description, answer, nonce)
        return self._select(answer, answer.get("refresh_token", ""), subject)

    async def renew(self, refresh_token: str, subject: str) -> Tokens:
        """Return new tokens of the same person. Raise ParleyError if people have to sign in again, or if the provider does not answer."""
        description = await self._describe()
        async with self._open_client() as client:
            answer = await client.fetch_token(
                description["token_endpoint"], grant_type="refresh_token", refresh_token=refresh_token
            )
        if "id_token" in answer and await self._check_id_token(description, answer, nonce="") != subject:
            raise _refuse("its renewed ID token is somebody else's")  # OpenID Connect Core, 12.2
        return self._select(answer, answer.get("refresh_token", refresh_token), subject)

    async def sign_out(self, refresh_token: str, return_to: str) -> str:
        """Let the provider forget the token; return where the browser goes to sign out there too, empty if nowhere."""
        description = await self._describe()
        revocation = str(description.get("revocation_endpoint", ""))
        if refresh_token and self._is_usable(revocation):
            async with self._open_client() as client:
                await client.revoke_token(revocation, token=refresh_token)
        end = str(description.get("end_session_endpoint", ""))
        asked = {"client_id": self._settings.client_id, "post_logout_redirect_uri": return_to}
        return str(httpx2.URL(end).copy_merge_params(asked)) if self._is_usable(end) else ""

    def _select(self, answer: Mapping[str, Any], refresh_token: str, subject: str) -> Tokens:
        name = f"{self._settings.token}_token"
        if not answer.get(name):
            raise _refuse(f"its answer has no {name}, which PARLEY_EDGE_OIDC_TOKEN asks for")
        return Tokens(str(answer[name]), refresh_token, subject)

    async def _check_id_token(
        self, description: Mapping[str, Any], answer: Mapping[str, Any], nonce: str
    ) -> str:
        """Return its subject. Raise ParleyError unless the provider signed it, for us, now and (with a nonce) for this sign-in."""
        registry = JWSRegistry(algorithms=list(_ALGORITHMS), strict_check_header=False)
        async with self._open_client() as client:
            found = await client.request("GET", description["jwks_uri"], withhold_token=True)
            found.raise_for_status()
        try:
            # A private key proves nothing once it is published, and reading one may take minutes.
            keys = [each for each in found.json()["keys"] if "d" not in each]
            token = jwt.decode(answer["id_token"], KeySet.import_key_set({"keys": keys}), registry=registry)
            claims = CodeIDToken(
                token.claims,
                token.header,
                {"iss": {"value": self._settings.issuer}, "aud": {"value": self._settings.client_id}},
                {
                    "nonce": nonce,
                    "client_id": self._settings.client_id,
                    "access_token": answer.get("access_token"),
                },
            )
            claims.validate(leeway=_LEEWAY_SECONDS)
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise _refuse(f"its ID token is not valid: {error}") from None
        return str(claims["sub"])

    async def _describe(self) -> Mapping[str, Any]:
        """Return the provider's description of itself (OpenID Connect Discovery). Raise ParleyError if there is none."""
        if time.monotonic() - self._found_at < _FRESH_SECONDS:
            return self._found
        url = f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        async with self._open_client() as client:
            answer = await client.request("GET", url, withhold_token=True)
            answer.raise_for_status()
            found = answer.json()
        if not isinstance(found, dict) or found.get("issuer") != self._settings.issuer:
            raise _refuse(f"{url} is not the description of {self._settings.issuer}")
        for name in _REQUIRED:
            if not self._is_usable(str(found.get(name, ""))):
                raise _refuse(f"{url} names no usable {name}")
        self._found, self._found_at = found, time.monotonic()
        return found

    def _is_usable(self, address: str) -> bool:
        """Return whether an address is as safe on the way as the issuer's own."""
        return address.startswith(("https://", f"{self._settings.issuer.partition('://')[0]}://"))

    @asynccontextmanager
    async def _open_client(self, **arguments: Any) -> AsyncIterator[AsyncOAuth2Client]:
        """Open a client for one request. What goes wrong with the provider in the block becomes a ParleyError."""
        chosen = self._settings
        client = AsyncOAuth2Client(
            chosen.client_id,
            chosen.client_secret or None,
            scope=chosen.scopes,
            timeout=_SECONDS,
            headers=ACCEPT_GZIP,
            event_hooks={"response": [_bound]},
            **arguments,
        )
        try:
            async with asyncio.timeout(_SECONDS), client:
                yield client
        except OAuthError as error:
            raise _refuse(f"{error.error}: {error.description or 'no reason given'}") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError) as error:
            _logger.warning("the sign-in provider does not answer", error=str(error) or type(error).__name__)
            raise unavailable(
                "PROVIDER_UNAVAILABLE", "the sign-in provider does not answer; try again", retry_after=5.0
            ) from None


async def _bound(answer: httpx2.Response) -> None:
    await unpack(answer)
    truncate(answer, _MAX_BYTES)


def _refuse(why: str) -> ParleyError:
    _logger.info("a sign-in is refused", why=why)
    return unauthenticated("SIGN_IN_REFUSED", f"the sign-in provider and Parley do not agree: {why}")
