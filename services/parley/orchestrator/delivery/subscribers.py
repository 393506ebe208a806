"""The hooks of all tenants as a replica knows them, so that a tenant without hooks costs nothing."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from parley.orchestrator.delivery.hooks import HookStore, Subscriber
from parley.runtime.clock import Clock

_KNOWN_FOR_SECONDS: Final = 15.0


class Subscribers:
    """Remembers which hooks there are, for some seconds. What is sent depends on the store alone."""

    def __init__(self, store: HookStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._hooks: Mapping[str, Sequence[Subscriber]] = {}
        self._read_at = -_KNOWN_FOR_SECONDS
        self._turn = asyncio.Lock()

    def has_hooks(self, tenant: str) -> bool:
        """Return whether a tenant had hooks when they were last read."""
        return tenant in self._hooks

    def tenants(self) -> Iterator[tuple[str, str]]:
        """Yield each tenant with hooks, and when its first one was created."""
        return ((tenant, hooks[0].since) for tenant, hooks in self._hooks.items())

    def hook_ids(self) -> Iterator[str]:
        """Yield the ids of all hooks."""
        return (each.hook for hooks in self._hooks.values() for each in hooks)

    def forget(self) -> None:
        """Read the hooks anew at the next `refresh`: one was created or deleted here."""
        self._read_at = -_KNOWN_FOR_SECONDS

    async def refresh(self) -> None:
        """Read the hooks, unless they were read some seconds ago. May raise StorageError."""
        async with self._turn:
            now = self._clock.monotonic()
            if now < self._read_at + _KNOWN_FOR_SECONDS:
                return
            found: dict[str, list[Subscriber]] = {}
            async for each in self._store.list_subscribers():
                found.setdefault(each.tenant, []).append(each)
            self._hooks, self._read_at = found, now
