"""The store of hooks, with the secrets that sign their deliveries."""

import base64
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from parley.orchestrator.delivery.message import Receiver
from parley.orchestrator.model.times import time_text
from parley.runtime.unreadable import find_readable, read_or_raise
from parley.storage.ports import (
    Above,
    Collection,
    Document,
    Documents,
    Fields,
    Index,
    Order,
    StoreDamagedError,
    Where,
)
from parley.storage.scan import scan
from parley.v1.hook_pb2 import Hook

HOOKS: Final = Collection(
    "hooks", (Index(("tenant", "made")), Index(("made",))), private=("hook", "secrets"), key_parts=0
)
SECRET_OVERLAP: Final = timedelta(days=1)
"""How long a secret still signs after it was replaced."""
_MAX_SECRETS: Final = 4
"""Secrets that sign at a time: the new one, and those replaced within a day."""
_PAGE_SIZE: Final = 1000
_KIND: Final = "hook"
UNREADABLE: Final = "the hook's record in the store cannot be read; delete the hook and create it anew"


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret that signs webhooks until a time (ISO 8601, UTC, microseconds); empty: until it is replaced."""

    text: str = field(repr=False)
    until: str = ""


@dataclass(frozen=True, slots=True)
class StoredHook:
    """A hook with all that is kept of it.

    Attributes:
        hook: The hook, with the whole target.
        created: Time of creation (ISO 8601, UTC, microseconds) and its id. Orders hooks by age.
        secrets: The newest first.
        request_id: Id of the request that made the newest secret.
    """

    tenant: str
    hook: Hook = field(repr=False)
    created: str
    secrets: tuple[Secret, ...]
    request_id: str

    @property
    def since(self) -> str:
        """When it was created: what is recorded earlier is not for it."""
        return _time_of(self.created)

    def receiver(self, now: datetime) -> Receiver:
        """Return what a channel needs of it now."""
        present = time_text(now)
        valid = tuple(each.text for each in self.secrets if not each.until or each.until > present)
        return Receiver(self.tenant, self.hook, valid)

    def replace_secret(self, text: str, request_id: str, now: datetime) -> "StoredHook":
        """Return the hook with a new secret; the one before signs for a day more."""
        until, present = time_text(now + SECRET_OVERLAP), time_text(now)
        old = [replace(each, until=each.until or until) for each in self.secrets]
        kept = [each for each in old if each.until > present]
        return replace(self, secrets=(Secret(text), *kept)[:_MAX_SECRETS], request_id=request_id)


class Subscriber(Struct, frozen=True):
    """That there is a hook, and since when (ISO 8601, UTC, microseconds)."""

    hook: str
    tenant: str
    since: str


class HookStore:
    """Stores all hooks."""

    def __init__(self, documents: Documents) -> None:
        """Use a store whose collection HOOKS is prepared."""
        self._documents = documents

    async def add(self, stored: StoredHook) -> None:
        """Add a hook. Raise DuplicateError if there is one with its id."""
        fields: Fields = {
            "tenant": stored.tenant,
            "made": stored.created,
            "hook": base64.b64encode(stored.hook.SerializeToString()).decode(),
            "paused": stored.hook.paused,
            **_secret_fields(stored),
        }
        await self._documents.insert(HOOKS, stored.hook.id, fields)

    async def get(self, tenant: str, hook_id: str) -> StoredHook | None:
        """Return a hook of a tenant, or None. Raise UnreadableError if it cannot be read."""
        found = await self._find(tenant, hook_id)
        return read_or_raise(found, _hook, _KIND) if found else None

    async def has(self, tenant: str, hook_id: str) -> bool:
        """Return whether a tenant has a hook with this id, also one that cannot be read."""
        return await self._find(tenant, hook_id) is not None

    async def _find(self, tenant: str, hook_id: str) -> Document | None:
        try:
            found = await self._documents.get(HOOKS, hook_id)
        except StoreDamagedError as error:
            if error.document is None:
                raise
            found = error.document
        return found if found is not None and found.fields.get("tenant") == tenant else None

    async def list_page(self, tenant: str, after: str = "", limit: int = _PAGE_SIZE) -> Sequence[StoredHook]:
        """Return up to `limit` hooks of a tenant, oldest first, created after `after` (as `StoredHook.created`)."""
        where: Where = {"tenant": tenant, "made": Above(after)}

        async def find(count: int) -> Sequence[Document]:
            return await self._documents.find(HOOKS, where, order=(Order("made"),), limit=count)

        return await find_readable(find, limit, _hook, _KIND)

    async def list_subscribers(self) -> AsyncIterator[Subscriber]:
        """Yield the hooks of all tenants, oldest first; also one that cannot be read: its deliveries have to end."""
        async for each in scan(self._documents, HOOKS, "made"):
            yield Subscriber(each.key, str(each.fields.get("tenant")), _time_of(str(each.fields["made"])))

    async def replace_secret(self, before: StoredHook, after: StoredHook) -> bool:
        """Store the secrets of `after`. Return False if they are not those of `before` any more, or the hook is gone."""
        where = {"request_id": before.request_id}
        return await self._documents.update(HOOKS, before.hook.id, _secret_fields(after), where)

    async def set_paused(self, hook_id: str, reason: str) -> None:
        """Pause a hook for a reason, or let it go on if that is empty."""
        await self._documents.update(HOOKS, hook_id, {"paused": reason})

    async def delete(self, hook_id: str) -> None:
        """Delete a hook."""
        await self._documents.delete(HOOKS, hook_id)


def _time_of(created: str) -> str:
    return created.partition("/")[0]


def _secret_fields(stored: StoredHook) -> Fields:
    return {
        "secrets": [[each.text, each.until] for each in stored.secrets],
        "request_id": stored.request_id,
    }


def _hook(document: Document) -> StoredHook:
    fields: Any = document.fields
    hook = Hook.FromString(base64.b64decode(fields["hook"]))
    hook.paused = fields["paused"]
    secrets = tuple(Secret(str(text), str(until)) for text, until in fields["secrets"])
    return StoredHook(str(fields["tenant"]), hook, str(fields["made"]), secrets, str(fields["request_id"]))
