"""A wait for the answer of another replica, and for the end of its lease."""

import asyncio
from typing import Final

from parley.gateway.calls.key import CallKey
from parley.gateway.calls.store import CallStore, StoredCall
from parley.runtime.backoff import Backoff

__all__ = ["LeaseWait"]

_LOOKS: Final = Backoff(first=0.05, maximum=0.5, factor=1.25)
"""The pauses between two looks at a call that runs elsewhere."""


class LeaseWait:
    """A wait for another replica's answer, and for the end of its lease by this one's own clock."""

    def __init__(self, store: CallStore, lease_seconds: float) -> None:
        self._store = store
        self._lease = lease_seconds
        self._pauses = _LOOKS.pauses()
        self._heartbeats = -1
        self._since = self._look_at = 0.0
        self.run = ""
        """The run that is waited for."""

    async def lease_ended(self, key: CallKey, seen: StoredCall) -> bool:
        """Wait a moment, and tell whether the replica that runs the call has been silent for a whole lease."""
        now = asyncio.get_running_loop().time()
        if seen.run != self.run:
            self.run, self._heartbeats, self._look_at = seen.run, -1, now
        if now >= self._look_at:
            await self._store.want(key, seen.run)
            heartbeats = await self._store.heartbeats_of(seen.replica)
            if heartbeats != self._heartbeats:
                self._heartbeats, self._since = heartbeats, now
            elif now - self._since >= self._lease:
                return True
            self._look_at = now + self._lease / 5
        await asyncio.sleep(min(next(self._pauses), self._lease / 5))
        return False
