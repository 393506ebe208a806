"""Memory is ready while both of its stores answer."""

import asyncio
from pathlib import Path

import grpc
import pytest

from parley.memory.__main__ import build
from parley.memory.settings import MemorySettings
from parley.runtime.health import ReadyCheck
from parley.storage.ports import StoreUnavailableError
from tests.support.ports import free_ports


def _make_qdrant() -> grpc.aio.Server:
    """Return a server that has no collection. Only who runs the test loads its library, which takes seconds."""
    from qdrant_client import grpc as qdrant

    class Collections(qdrant.CollectionsServicer):
        async def CollectionExists(self, request: object, context: object) -> object:  # noqa: N802
            return qdrant.CollectionExistsResponse()

    server = grpc.aio.server()
    qdrant.add_CollectionsServicer_to_server(Collections(), server)  # type: ignore[no-untyped-call]
    return server


async def test_memory_is_not_ready_while_qdrant_is_away_and_ready_again_when_it_is_back(
    tmp_path: Path,
) -> None:
    port = next(free_ports())
    settings = MemorySettings(store=f"sqlite:///{tmp_path}", vectors=f"http://127.0.0.1:{port}")
    async with build(settings) as service:
        assert service.ready is not None
        with pytest.raises(StoreUnavailableError, match="Qdrant"):
            await service.ready()
        server = _make_qdrant()
        server.add_insecure_port(f"127.0.0.1:{port}")
        await server.start()
        try:
            await _wait_until_ready(service.ready)
        finally:
            await server.stop(None)


async def _wait_until_ready(ready: ReadyCheck) -> None:
    """Ask until it answers: gRPC tries a server anew only after a while."""
    async with asyncio.timeout(30):
        while True:
            try:
                await ready()
            except StoreUnavailableError:
                await asyncio.sleep(0.1)
            else:
                return
