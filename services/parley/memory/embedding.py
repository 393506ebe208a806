"""Embeddings of texts, from the convergence service."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from types import MappingProxyType
from typing import Final

import grpc
from msgspec import Struct

from parley.memory.stored_vectors import Matrix, import_numpy, is_whole, to_vector
from parley.runtime.errors import from_rpc_error, is_transport, unavailable
from parley.v1 import convergence_pb2 as pb
from parley.v1.convergence_pb2_grpc import ConvergenceServiceStub


class Embedding(Struct, frozen=True):
    """A vector of length 1 and its model; vectors of two models cannot be compared."""

    vector: Matrix
    model: str


_HELD: Final[ContextVar[Mapping[str, Embedding]]] = ContextVar("_HELD", default=MappingProxyType({}))


@contextmanager
def hold_embeddings(texts: Sequence[str], embeddings: Sequence[Embedding]) -> Iterator[None]:
    """Let what the block runs have these embeddings of texts without asking for them again."""
    token = _HELD.set(dict(zip(texts, embeddings, strict=True)))
    try:
        yield
    finally:
        _HELD.reset(token)


def find_held(text: str) -> Embedding | None:
    """Return the embedding of a text that a block around holds; None: there is none."""
    return _HELD.get().get(text)


@contextmanager
def map_convergence_errors() -> Iterator[None]:
    """Raise ParleyError for a call of the convergence service that failed.

    UNAVAILABLE `CONVERGENCE_UNAVAILABLE`, or what the service answered.
    """
    try:
        yield
    except grpc.aio.AioRpcError as error:
        if is_transport(error):
            raise unavailable(
                "CONVERGENCE_UNAVAILABLE",
                f"the convergence service does not answer: {error.details()}",
                retry_after=1.0,
            ) from error
        raise from_rpc_error(error) from error


class EmbeddingClient:
    """A client for embeddings of the convergence service."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = ConvergenceServiceStub(channel)

    @cached_property
    def _expected(self) -> asyncio.Event:
        return asyncio.Event()

    def expect_text(self) -> None:
        """Say that a text will be embedded soon, such as the record of a debate that begins."""
        self._expected.set()

    async def wait_until_expected(self) -> None:
        """Wait until a text will be embedded soon."""
        await self._expected.wait()

    async def embed(self, *texts: str) -> list[Embedding]:
        """Return the embeddings of texts, in their order.

        Raise ParleyError: UNAVAILABLE `CONVERGENCE_UNAVAILABLE`, or what the convergence service answered.
        """
        held = _HELD.get()
        if held.keys() >= set(texts):
            return [held[each] for each in texts]

        async def requests() -> AsyncIterator[pb.EmbedRequest]:
            for text in texts:
                yield pb.EmbedRequest(text=text, model=pb.EMBEDDING_MODEL_FINE)

        await import_numpy()  # whoever has an embedding computes with it next
        with map_convergence_errors():
            meanings = [
                Embedding(to_vector(each.vector), each.model) async for each in self._stub.Embed(requests())
            ]
        if len(meanings) != len(texts) or not all(is_whole(each.vector) for each in meanings):
            message = "the convergence service's answer lacks vectors, or has numbers that are not finite"
            raise unavailable("CONVERGENCE_UNAVAILABLE", message)
        return meanings
