"""When each key was last used: collected in memory, and stored once a minute, so that no call waits for it."""

from datetime import datetime
from typing import Final

from parley.orchestrator.keys.store import KeyStore
from parley.runtime.clock import Clock
from parley.runtime.logs import get_logger
from parley.storage.ports import StorageError

_STORE_SECONDS: Final = 60.0

_logger = get_logger(__name__)


class KeyUses:
    """The last uses of `keys` at this replica. `run` stores them."""

    def __init__(self, keys: KeyStore, clock: Clock) -> None:
        self.keys = keys
        self._clock = clock
        self._uses: dict[str, datetime] = {}

    def note(self, key_id: str) -> None:
        """Note that a key is used now."""
        self._uses[key_id] = self._clock.now()

    async def run(self) -> None:
        """Store the last uses every minute, until cancelled."""
        while True:
            await self._clock.sleep(_STORE_SECONDS)
            try:
                await self.store()
            except StorageError as error:
                _logger.warning("store unavailable; the last uses of keys are stored later", error=str(error))

    async def store(self) -> None:
        """Store what was noted since the last time. What cannot be stored is kept. Raise StorageError."""
        while self._uses:
            key_id, used = next(iter(self._uses.items()))
            await self.keys.set_last_use(key_id, used)
            if self._uses.get(key_id) == used:
                del self._uses[key_id]
            else:  # used again meanwhile: for the next time
                return
