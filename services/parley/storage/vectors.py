"""The third storage port: vectors with a few fields, searched by nearness among those whose fields are equal.

A vector store is an index. What it points to is kept as a document elsewhere, from which it can be made again.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

__all__ = ["Near", "Point", "VectorCollection", "Vectors", "open_vectors"]

_HELP = "PARLEY_VECTORS must be edge:FOLDER or http://HOST:PORT (Qdrant's gRPC port, 6334 by default)"


@dataclass(frozen=True, slots=True)
class VectorCollection:
    """A named set of vectors of one size.

    Attributes:
        name: Letters, digits, `-`, `_` and `.`.
        size: Numbers in a vector.
        fields: Names of the fields that searches and counts are narrowed by.
    """

    name: str
    size: int
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    """A vector with its fields."""

    id: UUID
    vector: Sequence[float]
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Near:
    """A point that was found; `score` is the cosine, -1 to 1."""

    id: UUID
    score: float
    fields: Mapping[str, str]


class Vectors(Protocol):
    """Vectors by id. A search sees every write that was acknowledged before it began.

    Every method raises StoreUnavailableError where the store does not answer.
    """

    async def prepare(self, collection: VectorCollection) -> None:
        """Make the collection where it is missing. Safe to call again, and from many processes.

        Raises:
            StorageError: it exists with vectors of another size.
        """

    async def upsert(self, collection: VectorCollection, points: Sequence[Point]) -> None:
        """Store points, each in place of one with its id."""

    async def search(
        self,
        collection: VectorCollection,
        vector: Sequence[float],
        *,
        where: Mapping[str, str] | None = None,
        without: Sequence[UUID] = (),
        limit: int = 10,
        floor: float | None = None,
    ) -> Sequence[Near]:
        """Return the points nearest to `vector`, nearest first.

        Only those whose fields equal `where`, whose id is not in `without` and whose score is at least `floor`, where one is given.
        """

    async def delete(self, collection: VectorCollection, ids: Sequence[UUID]) -> None:
        """Remove points; ids that are not there are passed over."""

    async def count(self, collection: VectorCollection, where: Mapping[str, str] | None = None) -> int:
        """Count the points whose fields equal `where`."""


@asynccontextmanager
async def open_vectors(url: str) -> AsyncGenerator[Vectors, None]:
    """Open a vector store.

    Args:
        url: `edge:FOLDER` (embedded, for one process at a time; relative to the working directory, `~` is home) or
            `http://HOST:PORT` or `https://HOST:PORT`, a Qdrant server's gRPC port.

    Raises:
        ValueError: the URL is neither; the message names PARLEY_VECTORS.
        StorageError: the folder cannot be used as it is.
    """
    if url.startswith("edge:"):
        folder = url.removeprefix("edge:")
        if not folder or "\0" in folder:
            raise ValueError(f"PARLEY_VECTORS names no folder in {url!r}; write edge:FOLDER")
        from parley.storage.vectors_edge import open_edge

        async with open_edge(folder) as edge:
            yield edge
    elif url.startswith(("http://", "https://")):
        from parley.storage.vectors_server import open_server

        async with open_server(url) as server:
            yield server
    else:
        raise ValueError(f"{_HELP}, not {url!r}")
