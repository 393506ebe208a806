"""The keys that an issuer of tokens signs with: fetched from it, kept, and fetched again when they grow old or one is missing."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.request import urlopen

from jwt import PyJWK, PyJWKClient, PyJWKClientError, PyJWKSetError

from parley.runtime.clock import Clock
from parley.runtime.errors import unavailable
from parley.runtime.logs import get_logger

__all__ = ["SigningKeys", "key_fetcher"]

_FRESH_SECONDS: Final = 300.0
_MAX_AGE_SECONDS: Final = 24 * 3600.0
"""How long keys are believed while the issuer does not answer."""
_RETRY_SECONDS: Final = 10.0
"""Between two questions, however many tokens name a key that nobody has."""
_TIMEOUT_SECONDS: Final = 5.0

_logger = get_logger(__name__)

Fetch = Callable[[], Mapping[str, PyJWK]]
"""Returns the issuer's keys by their ids. It may take its time, and runs in a thread. Raises OSError or PyJWKClientError."""


class SigningKeys:
    """The keys of one issuer."""

    def __init__(self, fetch: Fetch, clock: Clock) -> None:
        """Fetch the keys as they are needed."""
        self._fetch = fetch
        self._clock = clock
        self._keys: Mapping[str, PyJWK] = {}
        self._fetched_at: float | None = None
        self._asked_at: float | None = None
        self._lock = asyncio.Lock()

    async def key(self, key_id: str) -> PyJWK | None:
        """Return a key; None where the issuer has none with this id.

        Raises:
            ParleyError: the issuer does not answer, and what it said before is too old.
        """
        known = self._keys.get(key_id)
        if known is None or not self._is_younger(self._fetched_at, _FRESH_SECONDS):
            if known is not None and self._lock.locked():
                return known  # somebody asks already; who has a key need not wait for that
            async with self._lock:
                if not self._is_younger(self._asked_at, _RETRY_SECONDS):
                    await self._fetch_keys()
        if not self._is_younger(self._fetched_at, _MAX_AGE_SECONDS):
            message = "the issuer of tokens does not answer; try again"
            raise unavailable("ISSUER_UNAVAILABLE", message, retry_after=_RETRY_SECONDS)
        return self._keys.get(key_id)

    async def _fetch_keys(self) -> None:
        self._asked_at = self._clock.monotonic()
        try:
            self._keys = await asyncio.to_thread(self._fetch)
        except (OSError, ValueError, PyJWKClientError, PyJWKSetError) as error:
            _logger.warning("the issuer of tokens does not tell its keys", error=str(error))
        else:
            self._fetched_at = self._clock.monotonic()

    def _is_younger(self, moment: float | None, seconds: float) -> bool:
        return moment is not None and self._clock.monotonic() - moment < seconds


def key_fetcher(issuer: str, keys_url: str | None) -> Fetch:
    """Return what asks an issuer for its keys, at `keys_url` or where its own description says they are."""

    def fetch() -> Mapping[str, PyJWK]:
        client = PyJWKClient(
            keys_url or _discover_keys_url(issuer), cache_jwk_set=False, timeout=int(_TIMEOUT_SECONDS)
        )
        return {str(each.key_id): each for each in client.get_signing_keys()}

    return fetch


def _discover_keys_url(issuer: str) -> str:
    """Return where an OpenID provider says that its keys are. The settings allow no address but its own, over https."""
    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    with urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 (the settings allow http and https alone)
        description: Any = json.load(answer)
    found = description.get("jwks_uri") if isinstance(description, dict) else None
    if not isinstance(found, str) or not found.startswith(
        ("https://", issuer.split("://", maxsplit=1)[0] + "://")
    ):
        raise ValueError(f"{url} names no jwks_uri that can be asked")
    return found
