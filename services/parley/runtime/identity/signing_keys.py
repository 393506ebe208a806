"""The signing keys of a token issuer: fetched, cached, and fetched again if they are old or one is missing."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.request import urlopen

from jwt import PyJWK, PyJWKClient, PyJWKClientError, PyJWKSetError

from parley.runtime.clock import Clock
from parley.runtime.errors import unavailable
from parley.runtime.logs import get_logger

_FRESH_SECONDS: Final = 300.0
_MAX_AGE_SECONDS: Final = 24 * 3600.0
"""How long keys are used while the issuer does not answer."""
_RETRY_SECONDS: Final = 10.0
"""The shortest time between two requests, however many tokens name an unknown key."""
_TIMEOUT_SECONDS: Final = 5.0

_logger = get_logger(__name__)

Fetch = Callable[[], Mapping[str, PyJWK]]
"""Returns the issuer's keys by id. It may block, and runs in a thread. Raises OSError or PyJWKClientError."""


class SigningKeys:
    """The keys of one issuer."""

    def __init__(self, fetch: Fetch, clock: Clock) -> None:
        """Fetch the keys when they are needed."""
        self._fetch = fetch
        self._clock = clock
        self._keys: Mapping[str, PyJWK] = {}
        self._fetched_at: float | None = None
        self._asked_at: float | None = None
        self._lock = asyncio.Lock()

    async def key(self, key_id: str) -> PyJWK | None:
        """Return a key, or None if the issuer has none with this id.

        Raises:
            ParleyError: the issuer does not answer, and the cached keys are too old.
        """
        known = self._keys.get(key_id)
        if known is None or not self._is_younger(self._fetched_at, _FRESH_SECONDS):
            if known is not None and self._lock.locked():
                return known  # a request is running; with a known key there is no need to wait for it
            async with self._lock:
                if not self._is_younger(self._asked_at, _RETRY_SECONDS):
                    await self._fetch_keys()
        if not self._is_younger(self._fetched_at, _MAX_AGE_SECONDS):
            message = "the token issuer does not answer; try again"
            raise unavailable("ISSUER_UNAVAILABLE", message, retry_after=_RETRY_SECONDS)
        return self._keys.get(key_id)

    async def _fetch_keys(self) -> None:
        self._asked_at = self._clock.monotonic()
        try:
            self._keys = await asyncio.to_thread(self._fetch)
        except (OSError, ValueError, PyJWKClientError, PyJWKSetError) as error:
            _logger.warning("the token issuer's keys cannot be fetched", error=str(error))
        else:
            self._fetched_at = self._clock.monotonic()

    def _is_younger(self, moment: float | None, seconds: float) -> bool:
        return moment is not None and self._clock.monotonic() - moment < seconds


def key_fetcher(issuer: str, keys_url: str | None) -> Fetch:
    """Return a function that fetches an issuer's keys from `keys_url`, or from the address in its OpenID configuration."""

    def fetch() -> Mapping[str, PyJWK]:
        client = PyJWKClient(
            keys_url or _discover_keys_url(issuer), cache_jwk_set=False, timeout=int(_TIMEOUT_SECONDS)
        )
        return {str(each.key_id): each for each in client.get_signing_keys()}

    return fetch


def _discover_keys_url(issuer: str) -> str:
    """Return the keys' address from an OpenID provider's configuration. The settings allow only its own address, over https."""
    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    with urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 (the settings allow http and https alone)
        description: Any = json.load(answer)
    found = description.get("jwks_uri") if isinstance(description, dict) else None
    if not isinstance(found, str) or not found.startswith(
        ("https://", issuer.split("://", maxsplit=1)[0] + "://")
    ):
        raise ValueError(f"{url} names no usable jwks_uri")
    return found
