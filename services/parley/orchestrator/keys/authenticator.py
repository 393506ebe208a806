"""Identifies callers by their API key."""

import hmac
import re
from datetime import datetime
from typing import Final

from parley.orchestrator.keys.store import ApiKey, KeyStore, hash_of
from parley.orchestrator.keys.uses import KeyUses
from parley.runtime.clock import Clock
from parley.runtime.errors import unavailable
from parley.runtime.expiring_cache import ExpiringCache
from parley.runtime.identity.guard import (
    Credentials,
    RefusedCallerError,
    bad_credentials_error,
    expired_error,
)
from parley.runtime.identity.identity import Identity
from parley.storage.ports import StorageError

CACHE_SECONDS: Final = 10.0
"""How long a key is cached. A revoked key may work so much longer."""
_KEY: Final = re.compile(r"parley_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class ApiKeyAuthenticator:
    """Identifies callers by the API keys in the store."""

    def __init__(self, keys: KeyStore, clock: Clock, uses: KeyUses) -> None:
        """Load keys from `keys`, and note in `uses` when they are used."""
        self._uses = uses
        self._keys = keys
        self._clock = clock
        self._cache = ExpiringCache[str, ApiKey | None]()
        """By id. Unknown ids are cached too, so that guessing the same id again does not reach the store."""

    async def identify(self, shown: Credentials) -> Identity | None:
        """Return the identity of the key, or None if there is no such key. Raise ParleyError if it was revoked or has expired, or the store is unavailable."""
        found = _KEY.fullmatch(shown.bearer)
        if found is None:
            return None
        key = await self._load_key(found[1])
        if key is None or not hmac.compare_digest(hash_of(found[2]), key.hash):
            return None
        budget_key_id = key.id if key.budget else ""
        subject = f"{key.name} (key {key.id})"
        identity = Identity(key.tenant, subject, key.roles, budget=key.budget, budget_key_id=budget_key_id)
        if key.revoked:
            raise RefusedCallerError(bad_credentials_error(), identity, "the key was revoked")
        if key.expires and self._clock.now() >= datetime.fromisoformat(key.expires):
            raise RefusedCallerError(expired_error(), identity, "the key has expired")
        self._uses.note(key.id)
        return identity

    async def _load_key(self, key_id: str) -> ApiKey | None:
        now = self._clock.monotonic()
        if (known := self._cache.get(key_id, now)) is not None:
            return known[0]
        try:
            key = await self._keys.get(key_id)
        except StorageError as error:
            raise unavailable(
                "STORE_UNAVAILABLE", "the store is unavailable; try again", retry_after=1.0
            ) from error
        self._cache.put(key_id, key, now + CACHE_SECONDS)
        return key
