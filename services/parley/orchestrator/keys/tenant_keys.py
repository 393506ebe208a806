"""Keys as a tenant's administrators make, list and revoke them over the wire, among those of their own tenant alone."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import grpc

from parley.orchestrator.keys.store import ApiKey, KeyStore
from parley.runtime.clock import Clock
from parley.runtime.errors import ParleyError, failed_precondition, not_found, resource_exhausted
from parley.runtime.identity.identity import Role
from parley.storage.ports import DuplicateError

__all__ = ["TenantKeys"]

_MAX_KEYS: Final = 10_000
"""Of one tenant, revoked ones too, since all are kept."""


@dataclass(frozen=True, slots=True)
class TenantKeys:
    """The keys of each tenant. `is_enabled` says whether this server lets anybody in by them."""

    store: KeyStore
    clock: Clock
    is_enabled: bool

    async def create(
        self, tenant: str, request_id: str, name: str, roles: frozenset[Role]
    ) -> tuple[ApiKey, str]:
        """Make a key; return it with its text, which cannot be had again, not even by the same request.

        Raises:
            ParleyError: the request has made one before, there are too many, or keys are not used.
        """
        self._check_enabled()
        if await self.store.is_full(tenant, _MAX_KEYS):
            message = f"{tenant} has {_MAX_KEYS} keys, revoked ones counted; no more are made"
            raise resource_exhausted("TOO_MANY_KEYS", message)
        key_id = hashlib.sha256(f"{tenant}/{request_id}".encode()).hexdigest()[:12]
        try:
            return await self.store.add(tenant, name, roles, self.clock.now(), key_id)
        except DuplicateError:
            message = (
                f"request id {request_id!r} made the key {key_id}, whose text was told then; "
                "if it is lost, revoke the key and ask with another request id"
            )
            code, resource = grpc.StatusCode.ALREADY_EXISTS, ("key", key_id)
            raise ParleyError(code, "KEY_EXISTS", message, resource=resource) from None

    async def list_page(self, tenant: str, after: str, limit: int) -> Sequence[ApiKey]:
        """Return a tenant's keys beyond the one made as `after` says, oldest first; also revoked ones."""
        self._check_enabled()
        return await self.store.list_page(tenant, after, limit)

    async def revoke(self, tenant: str, key_id: str) -> ApiKey:
        """Revoke a key and return it. Raises ParleyError where the tenant has no such key, or keys are not used."""
        self._check_enabled()
        key = await self.store.get(key_id)
        if key is None or key.tenant != tenant:
            raise not_found("key", key_id)
        await self.store.revoke(key_id, self.clock.now())
        return await self.store.get(key_id) or key

    def _check_enabled(self) -> None:
        if not self.is_enabled:
            message = "this server lets nobody in by API keys; PARLEY_AUTH=key has it do so"
            raise failed_precondition("KEYS_NOT_USED", message)
