"""The folds of the debates that were read last: for the next reader, only the new part of a log is read and folded."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from parley.orchestrator.api.folding import DebateFold
from parley.orchestrator.api.store_trouble import map_store_errors
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.log.reading import read_events, read_events_after
from parley.runtime.errors import not_found
from parley.storage.ports import Log
from parley.v1.debate_pb2 import Debate, ImportedDebate

_CACHE_BYTES: Final = 32 * 1024 * 1024
_OVERHEAD_BYTES: Final = 8 * 1024
"""The size of a fold, without the bytes of its log."""


class FoldedDebates:
    """Folds debates, and keeps those read last as long as their logs come to 32 MiB.

    A kept fold is never used without a look at the log: only if its last event is still the same.
    """

    def __init__(self, log: Log, index: DebateIndex, kept_bytes: int = _CACHE_BYTES) -> None:
        """Keep no fold yet; a log larger than `kept_bytes` is folded anew each time."""
        self._log = log
        self._index = index
        self._free_bytes = kept_bytes
        self._folds: OrderedDict[tuple[str, str], DebateFold] = OrderedDict()

    async def get(self, tenant: str, debate: str) -> Debate:
        """Return a debate by its log as it is now; it must not be changed.

        Raise ParleyError: NOT_FOUND, or UNAVAILABLE as long as the store is.
        """
        found, _ = await self.get_with_size(tenant, debate)
        return found

    async def get_with_size(self, tenant: str, debate: str) -> tuple[Debate, int]:
        """Return a debate as `get` does, and the bytes of its log, by which work on all of it is large or not."""
        with map_store_errors():
            known = self._folds.get((tenant, debate))
            events = None if known is None else await read_events_after(self._log, tenant, known.last)
            if events is None:
                known, events = None, await read_events(self._log, tenant, debate)
            # Looked at after the log: a debate that is being deleted is out of the index before its log is.
            record = await self._index.get(tenant, debate) if known or events else None
        if record is None:
            self._drop((tenant, debate))
            raise not_found("debate", debate)
        imported = record.import_note()
        if known is not None and imported is not None and known.debate.imported != imported:
            self._drop((tenant, debate))  # it was deleted and imported again
            return await self.get_with_size(tenant, debate)
        return self._fold_and_keep((tenant, debate), known, events, imported)

    def _fold_and_keep(
        self,
        key: tuple[str, str],
        known: DebateFold | None,
        events: Sequence[Envelope],
        imported: ImportedDebate | None,
    ) -> tuple[Debate, int]:
        self._drop(key)  # before its size changes
        if known is None:
            known = DebateFold(events)
            if imported is not None:
                known.debate.imported.CopyFrom(imported)
        else:
            known.extend(events)
        self._keep(key, known)
        return known.debate, known.log_bytes

    def _keep(self, key: tuple[str, str], folded: DebateFold) -> None:
        self._folds[key] = folded
        self._free_bytes -= _size_of(folded)
        while self._free_bytes < 0:
            self._drop(next(iter(self._folds)))

    def _drop(self, key: tuple[str, str]) -> None:
        if (kept := self._folds.pop(key, None)) is not None:
            self._free_bytes += _size_of(kept)


def _size_of(folded: DebateFold) -> int:
    return _OVERHEAD_BYTES + folded.log_bytes
