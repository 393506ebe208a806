"""The signing keys of a token issuer: fetched, cached, and fetched again if they are old or one is missing.

Whatever the issuer answers, a fetch takes a bounded time, and its result a bounded room.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import aiohttp
from jwt import PyJWK

from parley.runtime.clock import Clock
from parley.runtime.errors import unavailable
from parley.runtime.logs import get_logger

_FRESH_SECONDS: Final = 300.0
_MAX_AGE_SECONDS: Final = 24 * 3600.0
"""How long keys are used while the issuer does not answer."""
_RETRY_SECONDS: Final = 10.0
"""The shortest time between two requests, however many tokens name an unknown key."""
_FETCH_SECONDS: Final = 5.0
_WAIT_SECONDS: Final = 2.0
"""How long a caller waits for a fetch. The fetch goes on for later callers."""
_MAX_BYTES: Final = 256 * 1024
_MAX_KEYS: Final = 100

_logger = get_logger(__name__)

Fetch = Callable[[], Awaitable[Mapping[str, PyJWK]]]
"""Returns the issuer's keys by id. Raises OSError, aiohttp.ClientError or ValueError."""


class SigningKeys:
    """The keys of one issuer."""

    def __init__(self, fetch: Fetch, clock: Clock) -> None:
        """Fetch the keys when they are needed."""
        self._fetch = fetch
        self._clock = clock
        self._keys: Mapping[str, PyJWK] = {}
        self._fetched_at: float | None = None
        self._asked_at: float | None = None
        self._fetching: asyncio.Task[None] | None = None

    async def find_key(self, key_id: str) -> PyJWK | None:
        """Return a key, or None if the issuer has none with this id.

        Raise ParleyError if the issuer does not answer in time, and the key is unknown or the cached keys are too old.
        """
        known = self._keys.get(key_id)
        if known is None or not self._is_younger(self._fetched_at, _FRESH_SECONDS):
            if self._fetching is None and not self._is_younger(self._asked_at, _RETRY_SECONDS):
                self._asked_at = self._clock.monotonic()
                self._fetching = asyncio.create_task(self._fetch_keys())
            elif known is not None:
                return known  # a request is running; with a known key there is no need to wait for it
            if self._fetching is not None:
                await asyncio.wait({self._fetching}, timeout=_WAIT_SECONDS)
            known = self._keys.get(key_id)
            if (known is None and self._fetching is not None) or not self._is_younger(
                self._fetched_at, _MAX_AGE_SECONDS
            ):
                message = "the token issuer does not answer; try again"
                raise unavailable("ISSUER_UNAVAILABLE", message, retry_after=_RETRY_SECONDS)
        return known

    async def _fetch_keys(self) -> None:
        try:
            async with asyncio.timeout(_FETCH_SECONDS):
                self._keys = await self._fetch()
        except TimeoutError:
            _logger.warning(
                "the token issuer's keys cannot be fetched", error=f"no answer in {_FETCH_SECONDS} s"
            )
        except (OSError, ValueError, aiohttp.ClientError) as error:
            _logger.warning("the token issuer's keys cannot be fetched", error=str(error))
        else:
            self._fetched_at = self._clock.monotonic()
        finally:
            self._fetching = None

    def _is_younger(self, moment: float | None, seconds: float) -> bool:
        return moment is not None and self._clock.monotonic() - moment < seconds


def key_fetcher(issuer: str, keys_url: str | None) -> Fetch:
    """Return a function that fetches an issuer's keys from `keys_url`, or from the address in its OpenID configuration."""

    async def fetch() -> Mapping[str, PyJWK]:
        # Proxies come from the environment. Nothing is unpacked.
        async with aiohttp.ClientSession(trust_env=True, auto_decompress=False) as session:
            return _read_keys(await _download(session, keys_url or await _discover_keys_url(session, issuer)))

    return fetch


async def _discover_keys_url(session: aiohttp.ClientSession, issuer: str) -> str:
    """Return the keys' address from an OpenID provider's configuration. The settings allow only its own address, over https."""
    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    found = (await _download(session, url)).get("jwks_uri")
    if not isinstance(found, str) or not found.startswith(
        ("https://", issuer.split("://", maxsplit=1)[0] + "://")
    ):
        raise ValueError(f"{url} names no usable jwks_uri")
    return found


async def _download(session: aiohttp.ClientSession, url: str) -> Mapping[str, Any]:
    """Return the JSON object at an address. A redirect is not followed: it may lead to where nobody should be asked."""
    async with session.get(url, allow_redirects=False, headers={"Accept-Encoding": "identity"}) as answer:
        if answer.status != 200:
            raise ValueError(f"{url} answers with status {answer.status}; 200 was expected")
        content = bytearray()
        async for chunk in answer.content.iter_any():
            content += chunk
            if len(content) > _MAX_BYTES:
                raise ValueError(f"{url} answers with more than {_MAX_BYTES:,} bytes")
    try:
        found = json.loads(content)
    except RecursionError:
        raise ValueError(f"{url} answers with JSON that is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError(f"{url} answers with JSON that is no object")  # noqa: TRY004 (not our caller's mistake)
    return found


def _read_keys(found: Mapping[str, Any]) -> Mapping[str, PyJWK]:
    """Return the keys that sign, by id. Others are skipped: an issuer may have keys of kinds that are not known here."""
    entries = found.get("keys")
    if not isinstance(entries, list) or len(entries) > _MAX_KEYS:
        raise ValueError(f"the issuer's answer has no list of at most {_MAX_KEYS} keys")
    keys = {}
    for entry in entries:
        try:
            # A private key proves nothing once it is published, and reading one may take minutes.
            if "d" in entry:
                continue
            key = PyJWK(entry)
        except Exception:  # noqa: BLE001, S112 (whatever it is, it is no key)
            continue
        if key.key_id and key.public_key_use in {None, "sig"}:
            keys[str(key.key_id)] = key
    if not keys:
        raise ValueError("the issuer's answer has no usable key")
    return keys
