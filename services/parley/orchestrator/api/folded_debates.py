"""The states of the debates that were read last: for the next reader, only the new part of a log is read and folded."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from parley.orchestrator.api.folding import advance, fold
from parley.orchestrator.api.state import DebateState
from parley.orchestrator.api.store_trouble import map_store_errors
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.log.journal import read_events, read_events_after
from parley.runtime.errors import not_found
from parley.storage.ports import Log

__all__ = ["DebateStateCache"]

_CACHE_BYTES: Final = 32 * 1024 * 1024
_OVERHEAD_BYTES: Final = 8 * 1024
"""The size of a state, without the bytes of its log."""


@dataclass(frozen=True, slots=True)
class _CachedState:
    """A state, the event that it was folded up to, and how many bytes count for it."""

    state: DebateState
    last: Envelope
    size: int


class DebateStateCache:
    """Folds debates, and keeps those read last as long as their logs come to 32 MiB.

    A cached state is never returned without a look at the log: it is used only if its last event is still the same.
    """

    def __init__(self, log: Log, index: DebateIndex, kept_bytes: int = _CACHE_BYTES) -> None:
        """Create an empty cache; a log larger than `kept_bytes` is folded anew each time."""
        self._log = log
        self._index = index
        self._free_bytes = kept_bytes
        self._states: OrderedDict[tuple[str, str], _CachedState] = OrderedDict()

    async def get(self, tenant: str, debate: str) -> DebateState:
        """Return a debate's state by its log as it is now.

        Raises:
            ParleyError: NOT_FOUND, or UNAVAILABLE as long as the store is.
        """
        with map_store_errors():
            known = self._states.get((tenant, debate))
            events = None if known is None else await read_events_after(self._log, known.last)
            if events is None:
                known, events = None, await read_events(self._log, tenant, debate)
            # Looked at after the log: a debate that is being deleted is out of the index before its log is.
            is_there = (known or events) and await self._index.get(tenant, debate)
        if not is_there:
            self._drop((tenant, debate))
            raise not_found("debate", debate)
        return self._fold_and_keep((tenant, debate), known, events)

    def _fold_and_keep(
        self, key: tuple[str, str], known: _CachedState | None, events: Sequence[Envelope]
    ) -> DebateState:
        if known is None:
            folded = _CachedState(fold(events), events[-1], _OVERHEAD_BYTES + _bytes_of(events))
        elif events:
            folded = _CachedState(advance(known.state, events), events[-1], known.size + _bytes_of(events))
        else:
            folded = known
        self._keep(key, folded)
        return folded.state

    def _keep(self, key: tuple[str, str], folded: _CachedState) -> None:
        self._drop(key)
        self._states[key] = folded
        self._free_bytes -= folded.size
        while self._free_bytes < 0:
            self._drop(next(iter(self._states)))

    def _drop(self, key: tuple[str, str]) -> None:
        if (kept := self._states.pop(key, None)) is not None:
            self._free_bytes += kept.size


def _bytes_of(events: Sequence[Envelope]) -> int:
    return sum(len(each.entry) for each in events)
