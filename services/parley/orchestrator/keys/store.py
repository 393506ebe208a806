"""API keys, as the store has them: the hash of a key is kept, the key itself nowhere."""

import hashlib
import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from parley.runtime.identity.identity import Role
from parley.runtime.identity.roles import role_name, roles_by_name
from parley.runtime.unreadable import skip_unreadable
from parley.storage.opening import open_store, refuse_unusable_store
from parley.storage.ports import Above, Collection, Document, Documents, Index, Order, Where

__all__ = ["KEYS", "ApiKey", "KeyStore", "hash_of", "open_keys"]

KEYS = Collection("api_keys", (Index(("tenant", "made")), Index(("made",))))
_PREFIX: Final = "parley"
_ID_BYTES: Final = 6
_SECRET_BYTES: Final = 32
_PAGE_SIZE: Final = 1000


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is known of a key.

    Attributes:
        id: Names it in public, as in `parley_ID_SECRET`: 12 hex digits.
        name: What its holder is called, for people.
        hash: SHA-256 of its secret part, which is 32 random bytes: there is nothing to guess, and so nothing to slow down.
        created: Time it was made (ISO 8601, UTC, microseconds) and its id: orders keys by age.
        revoked: When it was revoked; empty while it holds.
    """

    id: str
    tenant: str
    name: str
    roles: frozenset[Role]
    hash: str
    created: str
    revoked: str = ""

    def visible_fields(self) -> dict[str, str]:
        """Return what people may see of it."""
        return {
            "id": self.id,
            "tenant": self.tenant,
            "name": self.name,
            "roles": ",".join(sorted(map(role_name, self.roles))),
            "made": self.created.partition("/")[0],
            "revoked": self.revoked or "-",
        }


class KeyStore:
    """All keys."""

    def __init__(self, documents: Documents) -> None:
        """Keep them in a store whose collection KEYS is prepared."""
        self._documents = documents

    async def add(
        self, tenant: str, name: str, roles: frozenset[Role], now: datetime, key_id: str = ""
    ) -> tuple[ApiKey, str]:
        """Make a key, by default of a random id; return it with its text, which cannot be had again.

        Raises:
            DuplicateError: there is a key of this id.
        """
        key_id, secret = key_id or secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
        made = f"{now.isoformat(timespec='microseconds')}/{key_id}"
        key = ApiKey(key_id, tenant, name, roles, hash_of(secret), made)
        fields = {
            "tenant": tenant,
            "name": name,
            "roles": sorted(map(role_name, roles)),
            "hash": key.hash,
            "made": made,
            "revoked": "",
        }
        await self._documents.insert(KEYS, key_id, fields)
        return key, f"{_PREFIX}_{key_id}_{secret}"

    async def get(self, key_id: str) -> ApiKey | None:
        """Return a key by its id, also one that was revoked."""
        found = await self._documents.get(KEYS, key_id)
        return _key(found) if found else None

    async def list_all(self, tenant: str | None = None) -> Sequence[ApiKey]:
        """Return a tenant's keys, or all, oldest first; also those that were revoked."""
        keys: list[ApiKey] = []
        after = ""
        while True:
            found = await self._find(tenant, after, _PAGE_SIZE)
            keys += _read_keys(found)
            if len(found) < _PAGE_SIZE:
                return keys
            after = str(found[-1].fields["made"])

    async def list_page(self, tenant: str, after: str, limit: int) -> Sequence[ApiKey]:
        """Return some of a tenant's keys, oldest first, beyond the one that was made as `after` says; empty: from the first."""
        keys: list[ApiKey] = []
        while len(keys) < limit:  # else one that cannot be read would end the list
            found = await self._find(tenant, after, limit)
            keys += _read_keys(found)
            if len(found) < limit:
                break
            after = str(found[-1].fields["made"])
        return keys[:limit]

    async def is_full(self, tenant: str, most: int) -> bool:
        """Return whether a tenant has so many keys, revoked ones too."""
        return len(await self._find(tenant, "", most)) == most

    async def _find(self, tenant: str | None, after: str, limit: int) -> Sequence[Document]:
        where: Where = {"made": Above(after), **({"tenant": tenant} if tenant else {})}
        return await self._documents.find(KEYS, where, order=(Order("made"),), limit=limit)

    async def revoke(self, key_id: str, now: datetime) -> bool:
        """Revoke a key; return whether there is one that held until now."""
        changes = {"revoked": now.isoformat(timespec="microseconds")}
        return await self._documents.update(KEYS, key_id, changes, {"revoked": ""})


def _read_keys(found: Sequence[Document]) -> list[ApiKey]:
    return list(skip_unreadable(found, _key, "API key", lambda document: document.key))


def hash_of(secret: str) -> str:
    """Return what is kept of a key's secret part."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _key(document: Document) -> ApiKey:
    fields: Any = document.fields
    return ApiKey(
        id=document.key,
        tenant=str(fields["tenant"]),
        name=str(fields["name"]),
        roles=roles_by_name(fields["roles"]),
        hash=str(fields["hash"]),
        created=str(fields["made"]),
        revoked=str(fields["revoked"]),
    )


@asynccontextmanager
async def open_keys(url: str) -> AsyncGenerator[KeyStore, None]:
    """Open the keys of the store that PARLEY_STORE names, beside an orchestrator that may run on it. Raises ConfigurationError."""
    async with AsyncExitStack() as stack:
        with refuse_unusable_store():
            store = await stack.enter_async_context(open_store(url, "orchestrator"))
            await store.documents.prepare(KEYS)
        yield KeyStore(store.documents)
