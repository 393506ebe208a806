"""API keys for whoever opens the store itself: what they change is in the audit log as what callers do is."""

import getpass
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime

from parley.orchestrator.audit.parts import AUDIT_LOGS, AuditLogs
from parley.orchestrator.audit.writer import AuditWriter, WaitingEntry
from parley.orchestrator.keys.store import KEYS, ApiKey, KeyStore
from parley.runtime.clock import SystemClock
from parley.runtime.tasks import background_task
from parley.storage.encryption.wrapping import WrappingKeys
from parley.storage.opening import open_store, refuse_unusable_store
from parley.storage.ports import Documents, Fields
from parley.v1.audit_pb2 import (
    AUDIT_ACT_CREATE_KEY,
    AUDIT_ACT_REVOKE_KEY,
    AUDIT_OUTCOME_DONE,
    AUDIT_OUTCOME_STARTED,
    AuditAct,
    AuditEntry,
)


class RecordedKeyStore(KeyStore):
    """Stores all keys. What is changed is recorded before it is done, and then that it is done."""

    def __init__(self, documents: Documents, writer: AuditWriter) -> None:
        self._user = _local_user()
        super().__init__(documents, self._user)
        self._writer = writer

    async def _insert(self, key: ApiKey, fields: Fields) -> None:
        started = await self._start(key.tenant, AUDIT_ACT_CREATE_KEY, "keys add", key.id)
        await super()._insert(key, fields)
        await self._finish(started)

    async def revoke(self, key_id: str, now: datetime) -> bool:
        """See `KeyStore.revoke`."""
        key = await self.get(key_id)
        if key is None:
            return False
        started = await self._start(key.tenant, AUDIT_ACT_REVOKE_KEY, "keys revoke", key_id)
        revoked = await super().revoke(key_id, now)
        await self._finish(started)
        return revoked

    async def _start(self, tenant: str, act: AuditAct.ValueType, method: str, key_id: str) -> WaitingEntry:
        entry = AuditEntry(
            tenant=tenant,
            subject=self._user,
            act=act,
            outcome=AUDIT_OUTCOME_STARTED,
            method=method,
            target=f"key {key_id}",
        )
        started = WaitingEntry(entry)
        await self._writer.write(started)
        return started

    async def _finish(self, started: WaitingEntry) -> None:
        entry = AuditEntry()
        entry.CopyFrom(started.entry)
        entry.outcome = AUDIT_OUTCOME_DONE
        await self._writer.write(WaitingEntry(entry, started))


def _local_user() -> str:
    """Return the user of this machine, as who did it: whoever opens the store itself shows no credentials."""
    try:
        return f"{getpass.getuser()} at the store"
    except (ImportError, KeyError, OSError):  # a user without a name, as in a container
        return f"user {os.geteuid()} at the store"


@asynccontextmanager
async def open_keys(url: str, wrapping: WrappingKeys) -> AsyncGenerator[KeyStore, None]:
    """Open the API keys of the store at `url`, also while an orchestrator uses it: the first key is created before a caller has one.

    Raise ConfigurationError if the store cannot be used.
    """
    async with AsyncExitStack() as stack:
        with refuse_unusable_store():
            store = await stack.enter_async_context(open_store(url, "orchestrator", wrapping=wrapping))
            await store.documents.prepare(KEYS, AUDIT_LOGS)
        writer = AuditWriter(AuditLogs(store.log, store.documents), SystemClock())
        await stack.enter_async_context(background_task("recording acts", writer.run()))
        yield RecordedKeyStore(store.documents, writer)
