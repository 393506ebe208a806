"""The ratings service as a process."""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from parley.ratings.matches import Matches
from parley.ratings.servicer import RatingsServicer
from parley.ratings.settings import RatingsSettings
from parley.ratings.weights import WeightRule
from parley.runtime import entry
from parley.runtime.clock import SystemClock
from parley.runtime.logs import configure_logging
from parley.runtime.server import Service, serve
from parley.runtime.telemetry import configure_telemetry
from parley.storage.opening import lock_store, open_store, refuse_unusable_store
from parley.v1.ratings_pb2_grpc import add_RatingsServiceServicer_to_server


@asynccontextmanager
async def build(settings: RatingsSettings, *, reading: bool = False) -> AsyncIterator[Service]:
    """Open the service with its store. `reading`: ratings are only looked at, by this process alone.

    Raise ConfigurationError: PARLEY_STORE names no store, or one that cannot be used.
    """
    async with AsyncExitStack() as stack:
        with refuse_unusable_store():
            store = await stack.enter_async_context(
                open_store(settings.store, "ratings", wrapping=settings.wrapping_keys(), reading=reading)
            )
        matches = Matches(store.log, store.documents, reading=reading)
        servicer = RatingsServicer(matches, SystemClock(), WeightRule(settings.weight_rule))
        yield Service(
            "parley.v1.RatingsService",
            lambda server: add_RatingsServiceServicer_to_server(servicer, server),
            ready=store.ping,
        )


async def main() -> None:
    """Serve until stopped."""
    settings = RatingsSettings.load()
    configure_logging(settings.log_level)
    stop_telemetry = configure_telemetry("parley-ratings")
    try:
        with lock_store(settings.require_store(), "ratings"):
            async with build(settings) as service:
                await serve([service], settings.server())
    finally:
        stop_telemetry()


if __name__ == "__main__":
    sys.exit(entry.run(main))
