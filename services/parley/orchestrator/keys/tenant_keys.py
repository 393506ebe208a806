"""The keys of a tenant, which its administrators create, list and revoke by RPC."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import grpc
from msgspec import Struct

from parley.orchestrator.keys.store import ApiKey, KeyStore
from parley.runtime.clock import Clock
from parley.runtime.errors import ParleyError, failed_precondition, not_found, resource_exhausted
from parley.runtime.identity.identity import Role
from parley.storage.ports import DuplicateError
from parley.v1.key_pb2 import KeyBudget

_MAX_KEYS: Final = 10_000
"""Keys of one tenant. Counts revoked keys, since they stay in the store."""


class TenantKeys(Struct, frozen=True):
    """The keys of each tenant. `is_enabled`: whether this server accepts API keys."""

    store: KeyStore
    clock: Clock
    is_enabled: bool

    async def create(
        self,
        tenant: str,
        request_id: str,
        name: str,
        roles: frozenset[Role],
        *,
        creator: str,
        expires: datetime | None = None,
        budget: KeyBudget | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key. Return it with its text, which cannot be read again, not even with the same request id.

        Raise ParleyError if the request id was already used, the tenant has too many keys, or API keys are not
        enabled.
        """
        self._check_enabled()
        if await self.store.is_full(tenant, _MAX_KEYS):
            message = f"tenant {tenant} has {_MAX_KEYS} keys, revoked ones included, which is the limit"
            raise resource_exhausted("TOO_MANY_KEYS", message)
        key_id = hashlib.sha256(f"{tenant}/{request_id}".encode()).hexdigest()[:12]
        try:
            return await self.store.add(
                tenant, name, roles, self.clock.now(), key_id, creator=creator, expires=expires, budget=budget
            )
        except DuplicateError:
            message = (
                f"request id {request_id!r} already created the key {key_id}, whose text is sent once; "
                "if it is lost, revoke the key and create another one with a new request id"
            )
            code, resource = grpc.StatusCode.ALREADY_EXISTS, ("key", key_id)
            raise ParleyError(code, "KEY_EXISTS", message, resource=resource) from None

    async def list_page(self, tenant: str, after: str, limit: int) -> Sequence[ApiKey]:
        """Return keys of a tenant created after `after`, oldest first. Includes revoked keys."""
        self._check_enabled()
        return await self.store.list_page(tenant, after, limit)

    async def revoke(self, tenant: str, key_id: str) -> ApiKey:
        """Revoke a key and return it. Raise ParleyError if the tenant has no such key, or API keys are not enabled."""
        self._check_enabled()
        key = await self.store.get(key_id)
        if key is None or key.tenant != tenant:
            raise not_found("key", key_id)
        await self.store.revoke(key_id, self.clock.now())
        return await self.store.get(key_id) or key

    def _check_enabled(self) -> None:
        if not self.is_enabled:
            message = "this server does not accept API keys; set PARLEY_AUTH=key to enable them"
            raise failed_precondition("KEYS_NOT_USED", message)
