"""A lease: one replica at a time does a job. It is a document whose holder counts up; only its own clock tells a replica how long that stood still."""

import secrets
from typing import Any, Final

from parley.runtime.clock import Clock
from parley.storage.ports import Collection, Documents, DuplicateError

LEASES: Final = Collection("leases")


class Lease:
    """A replica's view of the lease for one job. Every method may raise StorageError."""

    def __init__(self, documents: Documents, job: str, seconds: float, clock: Clock) -> None:
        self._documents = documents
        self._job = job
        self._seconds = seconds
        self._clock = clock
        self._replica = secrets.token_hex(8)
        self._seen: tuple[str, int] | None = None
        self._seen_at = 0.0

    async def hold(self) -> bool:
        """Take or renew the lease; return whether this replica has it for the lease's length from now on.

        It is taken from a holder that did not renew it for that long.
        """
        found = await self._documents.get(LEASES, self._job)
        if found is None:
            return await self._create()
        fields: Any = found.fields
        seen = (str(fields["replica"]), int(fields["beat"]))
        if seen != self._seen:
            self._seen, self._seen_at = seen, self._clock.monotonic()
        is_free = self._clock.monotonic() - self._seen_at >= self._seconds
        if seen[0] != self._replica and not is_free:
            return False
        return await self._documents.update(
            LEASES,
            self._job,
            {"replica": self._replica, "beat": seen[1] + 1},
            {"replica": seen[0], "beat": seen[1]},
        )

    async def _create(self) -> bool:
        try:
            await self._documents.insert(LEASES, self._job, {"replica": self._replica, "beat": 1})
        except DuplicateError:
            return False
        return True
