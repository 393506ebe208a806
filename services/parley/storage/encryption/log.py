"""The Log port, with entries sealed. Hashes and signatures are over the plain entries, so they are the same either way."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from parley.storage.checks import check_append
from parley.storage.encryption.data_keys import DataKeys
from parley.storage.encryption.documents import EncryptedDocuments
from parley.storage.encryption.sealed import is_sealed, read_key_id
from parley.storage.ports import Insert, Log, Record, StoreDamagedError, Update


class EncryptedLog:
    """Logs whose entries are sealed, each log by a data key of its own that is deleted with it. Plain entries of before are read as they are."""

    def __init__(self, log: Log, documents: EncryptedDocuments, keys: DataKeys) -> None:
        """Seal what is appended to `log`, and what comes with it for the documents of the same store."""
        self._log = log
        self._documents = documents
        self._keys = keys

    async def append(
        self, log: str, record: Record, *, insert: Insert | None = None, update: Update | None = None
    ) -> None:
        """See `Log.append`."""
        check_append(log, record)
        if self._keys.is_on:
            # Who appends later has read the log before, and knows its key.
            key = await self._keys.for_scope(log, is_new=record.first == 1)
            entries = tuple(
                key.seal(each, _place(log, place))
                for place, each in enumerate(record.entries, start=record.first)
            )
            record = Record(record.first, record.append_id, entries)
        await self._log.append(
            log,
            record,
            insert=None if insert is None else await self._documents.seal_insert(insert),
            update=None if update is None else await self._documents.seal_update(update),
        )

    async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        """See `Log.read`."""
        records = await self._log.read(log, after, limit)
        try:
            return [await self._open(log, record) for record in records]
        except StoreDamagedError:
            if await self._is_deleted(log):
                return []
            raise

    async def follow(self, log: str, after: int = 0) -> AsyncGenerator[Record, None]:
        """See `Log.follow`."""
        async with aclosing(self._log.follow(log, after)) as records:
            async for record in records:
                try:
                    opened = await self._open(log, record)
                except StoreDamagedError:
                    if await self._is_deleted(log):
                        continue
                    raise
                yield opened

    async def delete(self, log: str) -> None:
        """See `Log.delete`."""
        await self._log.delete(log)
        if self._keys.is_on:
            await self._keys.delete(log)

    async def _is_deleted(self, log: str) -> bool:
        """Return whether a log is gone, and its data key with it, since it was read."""
        return not await self._log.read(log, limit=1)

    async def _open(self, log: str, record: Record) -> Record:
        ids = {read_key_id(each) for each in record.entries if is_sealed(each)}
        if not ids:
            return record
        keys = await self._keys.find(ids)
        entries = []
        for sequence, each in enumerate(record.entries, start=record.first):
            if not is_sealed(each):
                entries.append(each)
                continue
            place, id_ = _place(log, sequence), read_key_id(each)
            if id_ not in keys:
                raise StoreDamagedError(
                    f"{place}: its data key {id_.hex()} is gone or damaged; restore it from a backup"
                )
            entries.append(keys[id_].open(each, place))
        self._keys.note(log, read_key_id(record.entries[-1]))
        return Record(record.first, record.append_id, tuple(entries))


def _place(log: str, sequence: int) -> str:
    return f"entry {sequence} of log {log}"
