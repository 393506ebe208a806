"""The keys of an orchestrator's store, for who has the store itself: the first key is made before anybody can be let in."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from parley.orchestrator.keys.store import KEYS, KeyStore
from parley.storage.opening import open_store, refuse_unusable_store

__all__ = ["open_keys"]


@asynccontextmanager
async def open_keys(url: str) -> AsyncGenerator[KeyStore, None]:
    """Open the keys of the store that PARLEY_STORE names, beside an orchestrator that may run on it. Raises ConfigurationError."""
    async with AsyncExitStack() as stack:
        with refuse_unusable_store():
            store = await stack.enter_async_context(open_store(url, "orchestrator"))
            await store.documents.prepare(KEYS)
        yield KeyStore(store.documents)
