"""Finds debates whose owners send no heartbeats any more, and looks for them only when there can be one."""

from collections.abc import Collection
from datetime import datetime, timedelta

from msgspec import Struct

from parley.orchestrator.log.debate_record import DebateRecord
from parley.orchestrator.log.index import DebateIndex, LivenessWindow
from parley.runtime.clock import Clock


class _Observation(Struct, frozen=True):
    owner: str | None
    heartbeat: int
    at: float


class SilentOwners:
    """The debates of owners that may be gone, as one replica sees them.

    A live owner sends a heartbeat every third of a lease, and writes the time with it. One whose time is more than half a lease
    away, since clocks may differ, is observed: it is gone if its heartbeat then stays the same.
    """

    def __init__(self, index: DebateIndex, clock: Clock, lease_seconds: float) -> None:
        """Observe nothing yet."""
        self._index = index
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._observations: dict[str, _Observation] = {}
        self._next_look = clock.monotonic()

    async def list(self) -> list[DebateRecord]:
        """Return the debates to observe. The store is not asked before there can be one again, by the heartbeats that it had.

        Raises:
            StorageError: the store is unavailable.
        """
        began = self._clock.monotonic()
        if began < self._next_look:
            return []
        now = self._clock.now()
        found = await self._index.list_owned(self._window(now))
        self._next_look = began if found else began + await self._seconds_until_silent(now)
        return found

    def is_gone(self, record: DebateRecord) -> bool:
        """Observe the owner of a debate. Return whether it has sent no heartbeat for a lease."""
        now = self._clock.monotonic()
        seen = self._observations.get(record.key)
        if seen is None or (seen.owner, seen.heartbeat) != (record.owner, record.heartbeat):
            # It was found since it sent no heartbeat for half a lease, by the clocks; the other half is observed here. If a
            # heartbeat was seen, `alive` proves nothing: a clock is behind, or the owner's version writes no time.
            since = self._window(self._clock.now()).since
            is_silent = seen is None and record.alive is not None and record.alive < since
            at = now - self._lease_seconds / 2 if is_silent else now
            self._observations[record.key] = _Observation(record.owner, record.heartbeat, at)
            return False
        return now - seen.at >= self._lease_seconds

    def forget_others(self, keys: Collection[str]) -> None:
        """Observe only the debates with these keys any more."""
        for key in self._observations.keys() - keys:
            del self._observations[key]

    async def _seconds_until_silent(self, now: datetime) -> float:
        """Return when the first owner can be silent for half a lease: no later than one that claims a debate now."""
        half = self._lease_seconds / 2
        oldest = await self._index.find_oldest_heartbeat()
        if oldest is None:
            return half
        return min(max(half - (now - datetime.fromisoformat(oldest)).total_seconds(), 0.0), half)

    def _window(self, now: datetime) -> LivenessWindow:
        """Return the times between which a live owner last sent a heartbeat."""
        around = timedelta(seconds=self._lease_seconds / 2)
        since, until = (each.isoformat(timespec="microseconds") for each in (now - around, now + around))
        return LivenessWindow(since, until)
