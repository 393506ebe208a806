"""Memory is ready while both of its stores answer."""

import asyncio
from pathlib import Path

import grpc
import pytest
from qdrant_client.grpc import (
    CollectionExistsRequest,
    CollectionExistsResponse,
    CollectionsServicer,
    add_CollectionsServicer_to_server,
)

from parley.memory.__main__ import build
from parley.memory.settings import MemorySettings
from parley.runtime.health import ReadyCheck
from parley.storage.ports import StoreUnavailableError
from tests.support.ports import free_ports


class _Qdrant(CollectionsServicer):
    async def CollectionExists(  # noqa: N802
        self, request: CollectionExistsRequest, context: object
    ) -> CollectionExistsResponse:
        return CollectionExistsResponse()


async def test_memory_is_not_ready_while_qdrant_is_away_and_ready_again_when_it_is_back(
    tmp_path: Path,
) -> None:
    port = next(free_ports())
    settings = MemorySettings(store=f"sqlite:///{tmp_path}", vectors=f"http://127.0.0.1:{port}")
    async with build(settings) as service:
        assert service.ready is not None
        with pytest.raises(StoreUnavailableError, match="Qdrant"):
            await service.ready()
        server = grpc.aio.server()
        add_CollectionsServicer_to_server(_Qdrant(), server)  # type: ignore[no-untyped-call]
        server.add_insecure_port(f"127.0.0.1:{port}")
        await server.start()
        try:
            await _ready_again(service.ready)
        finally:
            await server.stop(None)


async def _ready_again(ready: ReadyCheck) -> None:
    """Ask until it answers: gRPC tries a server anew only after a while."""
    async with asyncio.timeout(30):
        while True:
            try:
                await ready()
            except StoreUnavailableError:
                await asyncio.sleep(0.1)
            else:
                return
