"""API keys as the store keeps them: the hash of a key, never the key itself."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec import Struct

from parley.orchestrator.model.times import time_text
from parley.runtime.identity.identity import Role
from parley.runtime.identity.roles import role_name, roles_by_name
from parley.runtime.key_budgets import budget_fields
from parley.runtime.unreadable import find_readable, skip_unreadable
from parley.storage.ports import Above, Collection, Document, Documents, Fields, Index, Order, Where
from parley.storage.scan import scan
from parley.v1.key_pb2 import KeyBudget

KEYS = Collection("api_keys", (Index(("tenant", "made")), Index(("made",))))
_PREFIX: Final = "parley"
_ID_BYTES: Final = 6
_SECRET_BYTES: Final = 32
_KIND: Final = "API key"


class ApiKey(Struct, frozen=True):
    """An API key.

    Attributes:
        id: Its public part, as in `parley_ID_SECRET`: 12 hex digits.
        name: Its holder's name, for people.
        hash: SHA-256 of its secret part. That is 32 random bytes, which cannot be guessed, so a fast hash is safe.
        created: Time of creation (ISO 8601, UTC, microseconds) and its id. Orders keys by age.
        revoked: Time at which it was revoked; empty while it is valid.
        creator: Who created it; empty for a key that is older than this field.
        last_used: When it was last used, to a minute; empty: not yet.
        expires: From when it is refused; empty: it does not expire.
        budget: What its debates may use; None: what the tenant may.
    """

    id: str
    tenant: str
    name: str
    roles: frozenset[Role]
    hash: str
    created: str
    revoked: str = ""
    creator: str = ""
    last_used: str = ""
    expires: str = ""
    budget: KeyBudget | None = None

    def visible_fields(self) -> dict[str, str]:
        """Return the fields that people may see, by name."""
        return {
            "id": self.id,
            "tenant": self.tenant,
            "name": self.name,
            "roles": ",".join(sorted(map(role_name, self.roles))),
            "made": self.created.partition("/")[0],
            "creator": self.creator or "-",
            "expires": self.expires or "-",
            "last_used": self.last_used or "-",
            **budget_fields(self.budget),
            "revoked": self.revoked or "-",
        }


class KeyStore:
    """Stores all keys."""

    def __init__(self, documents: Documents, creator: str = "") -> None:
        """Use a store whose collection KEYS is prepared. `creator` creates the keys that are added without one."""
        self._documents = documents
        self._creator = creator

    async def add(
        self,
        tenant: str,
        name: str,
        roles: frozenset[Role],
        now: datetime,
        key_id: str = "",
        *,
        creator: str = "",
        expires: datetime | None = None,
        budget: KeyBudget | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key, by default with a random id. Return it with its text, which is not stored.

        Raise DuplicateError if a key with this id exists.
        """
        key_id, secret = key_id or secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
        key = ApiKey(
            key_id,
            tenant,
            name,
            roles,
            hash_of(secret),
            created=f"{time_text(now)}/{key_id}",
            creator=creator or self._creator,
            expires=time_text(expires) if expires else "",
            budget=budget,
        )
        await self._insert(key, _to_fields(key))
        return key, f"{_PREFIX}_{key_id}_{secret}"

    async def _insert(self, key: ApiKey, fields: Fields) -> None:
        """Store a new key. Raise DuplicateError if one with its id exists."""
        await self._documents.insert(KEYS, key.id, fields)

    async def get(self, key_id: str) -> ApiKey | None:
        """Return the key with this id, even if it is revoked; None if there is none."""
        found = await self._documents.get(KEYS, key_id)
        return _key(found) if found else None

    async def list_all(self, tenant: str | None = None) -> Sequence[ApiKey]:
        """Return the keys of a tenant, or of all tenants, oldest first. Includes revoked keys."""
        found = scan(self._documents, KEYS, "made", {"tenant": tenant} if tenant else {})
        return list(skip_unreadable([each async for each in found], _key, _KIND))

    async def list_page(self, tenant: str, after: str, limit: int) -> Sequence[ApiKey]:
        """Return up to `limit` keys of a tenant, oldest first, created after `after` (as `ApiKey.created`; empty: from the first)."""
        return await find_readable(partial(self._find, tenant, after), limit, _key, _KIND)

    async def is_full(self, tenant: str, most: int) -> bool:
        """Return whether a tenant has `most` keys. Counts revoked keys."""
        return len(await self._find(tenant, "", most)) == most

    async def _find(self, tenant: str, after: str, limit: int) -> Sequence[Document]:
        where: Where = {"made": Above(after), "tenant": tenant}
        return await self._documents.find(KEYS, where, order=(Order("made"),), limit=limit)

    async def revoke(self, key_id: str, now: datetime) -> bool:
        """Revoke a key. Return False if it does not exist or was revoked before."""
        return await self._documents.update(KEYS, key_id, {"revoked": time_text(now)}, {"revoked": ""})

    async def set_last_use(self, key_id: str, used: datetime) -> None:
        """Store when a key was last used."""
        await self._documents.update(KEYS, key_id, {"last_used": time_text(used)})


def hash_of(secret: str) -> str:
    """Return the hash that is stored for a secret part."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _budget(tokens: int, cost_micros: int) -> KeyBudget | None:
    if not (tokens or cost_micros):
        return None
    return KeyBudget(tokens_per_day=tokens, cost_micros_per_day=cost_micros)


def _to_fields(key: ApiKey) -> Fields:
    return {
        "tenant": key.tenant,
        "name": key.name,
        "roles": sorted(map(role_name, key.roles)),
        "hash": key.hash,
        "made": key.created,
        "revoked": key.revoked,
        "creator": key.creator,
        "last_used": key.last_used,
        "expires": key.expires,
        "tokens_per_day": key.budget.tokens_per_day if key.budget else 0,
        "cost_micros_per_day": key.budget.cost_micros_per_day if key.budget else 0,
    }


def _key(document: Document) -> ApiKey:
    fields: Any = document.fields
    datetime.fromisoformat(str(fields["made"]).partition("/")[0])  # raises ValueError
    return ApiKey(
        id=document.key,
        tenant=str(fields["tenant"]),
        name=str(fields["name"]),
        roles=roles_by_name(fields["roles"]),
        hash=str(fields["hash"]),
        created=str(fields["made"]),
        revoked=str(fields["revoked"]),
        creator=str(fields.get("creator", "")),
        last_used=str(fields.get("last_used", "")),
        expires=str(fields.get("expires", "")),
        budget=_budget(int(fields.get("tokens_per_day", 0)), int(fields.get("cost_micros_per_day", 0))),
    )
