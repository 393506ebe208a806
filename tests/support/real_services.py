"""Convergence, ratings and memory in this process over real gRPC, to be started and stopped one by one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from parley.convergence.agreement import Agreements
from parley.convergence.embeddings import open_embeddings
from parley.convergence.servicer import ConvergenceServicer
from parley.memory.__main__ import build as build_memory
from parley.memory.settings import MemorySettings
from parley.ratings.matches import Matches
from parley.ratings.servicer import RatingsServicer
from parley.runtime.clock import SystemClock
from parley.runtime.errors import unavailable
from parley.runtime.server import ServerSettings, Service, start_server
from parley.storage.opening import open_store
from parley.v1 import ratings_pb2
from parley.v1.convergence_pb2_grpc import add_ConvergenceServiceServicer_to_server
from parley.v1.ratings_pb2_grpc import add_RatingsServiceServicer_to_server
from tests.support.hash_embedder import HashEmbedder
from tests.support.ports import free_ports
from tests.support.word_agreement import WordAgreement

T = TypeVar("T")


def free_address() -> str:
    """An address of this machine where nothing listens now."""
    return f"127.0.0.1:{next(free_ports())}"


class ForgetfulRatings(RatingsServicer):
    """Ratings that record a match or a word and then do not say so, `lost` times; `hung` answers never come."""

    lost = 0
    hung = 0
    asked = 0

    async def RecordMatch(  # noqa: N802
        self, request: ratings_pb2.RecordMatchRequest, context: Any
    ) -> ratings_pb2.RecordMatchResponse:
        return await self._forgotten(super().RecordMatch(request, context))

    async def RecordFeedback(  # noqa: N802
        self, request: ratings_pb2.RecordFeedbackRequest, context: Any
    ) -> ratings_pb2.RecordFeedbackResponse:
        return await self._forgotten(super().RecordFeedback(request, context))

    async def _forgotten(self, answered: Awaitable[T]) -> T:
        self.asked += 1
        if self.hung:
            self.hung -= 1
            await asyncio.Event().wait()
        answer = await answered
        if self.lost:
            self.lost -= 1
            raise unavailable("STORE_UNAVAILABLE", "what became of it is not known")
        return answer


@asynccontextmanager
async def ratings_at(address: str, folder: Path) -> AsyncIterator[ForgetfulRatings]:
    """Ratings, on a store in `folder`."""
    async with open_store(f"sqlite:///{folder}", "ratings") as store:
        servicer = ForgetfulRatings(Matches(store.log), SystemClock())
        service = Service(
            "parley.v1.RatingsService", lambda server: add_RatingsServiceServicer_to_server(servicer, server)
        )
        async with _serve(service, address):
            yield servicer


@asynccontextmanager
async def memory_at(address: str, folder: Path, convergence: str) -> AsyncIterator[None]:
    """Memory, on stores in `folder`."""
    settings = MemorySettings(
        store=f"sqlite:///{folder}", vectors=f"edge:{folder / 'vectors'}", convergence=convergence
    )
    async with build_memory(settings) as service, _serve(service, address):
        yield


@asynccontextmanager
async def convergence_at(address: str) -> AsyncIterator[HashEmbedder]:
    """Convergence that embeds by words and tells agreement by the broker that is named."""
    embedder = HashEmbedder()
    async with open_embeddings(embedder) as shared:
        servicer = ConvergenceServicer(shared, shared, Agreements(WordAgreement(), cache=100))
        service = Service(
            "parley.v1.ConvergenceService",
            lambda server: add_ConvergenceServiceServicer_to_server(servicer, server),
        )
        async with _serve(service, address):
            yield embedder


@asynccontextmanager
async def _serve(service: Service, address: str) -> AsyncIterator[None]:
    settings = ServerSettings(port=int(address.rpartition(":")[2]), grace_seconds=0)
    async with start_server([service], settings):
        yield
