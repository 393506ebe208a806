"""Stores that stop whoever writes to them, before or after the nth write."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from parley.storage.ports import Collection, Document, Documents, Vectors

T = TypeVar("T")


class StoppedError(BaseException):
    """The process would have ended here; nothing that it runs catches this."""


@dataclass
class Writes:
    """The writes to several stores, in order. The one past the limit stops its caller, before it or right after; no other one begins then.

    Attributes:
        limit: How many writes there may be; none: any number.
        lost: Whether the write past the limit is not done.
        has_stopped: Whether the write past the limit was reached; one that began at the same time may not be among those `made`.
    """

    limit: int | None = None
    lost: bool = True
    made: list[str] = field(default_factory=list)
    has_stopped: bool = False
    _begun: int = 0

    async def make(self, name: str, write: Callable[..., Awaitable[T]], *args: Any, **kwargs: Any) -> T:
        if self.limit is not None and self._begun > self.limit:
            raise StoppedError(name)
        self._begun += 1
        stops = self.limit is not None and self._begun > self.limit
        self.has_stopped = self.has_stopped or stops
        if stops and self.lost:
            raise StoppedError(name)
        done = await write(*args, **kwargs)
        self.made.append(name)
        if stops:
            raise StoppedError(name)
        return done


class StoppingDocuments:
    """Documents whose writes are counted, and stop."""

    def __init__(self, documents: Documents, writes: Writes) -> None:
        self.prepare, self.get, self.count = documents.prepare, documents.get, documents.count
        self.writes = writes
        self._documents = documents

    async def find(self, *args: Any, **kwargs: Any) -> Sequence[Document]:
        return await self._documents.find(*args, **kwargs)

    async def insert(self, *args: Any, **kwargs: Any) -> None:
        await self.writes.make(_name("insert", *args), self._documents.insert, *args, **kwargs)

    async def put(self, *args: Any) -> None:
        await self.writes.make(_name("put", *args), self._documents.put, *args)

    async def update(self, *args: Any) -> bool:
        return await self.writes.make(_name("update", *args), self._documents.update, *args)

    async def delete(self, *args: Any) -> bool:
        return await self.writes.make(_name("delete", *args), self._documents.delete, *args)


def _name(write: str, collection: Collection, *_: Any) -> str:
    return write if collection.name == "debates" else f"{write} {collection.name.removesuffix('s')}"


class StoppingVectors:
    """Vectors whose writes are counted, and stop."""

    def __init__(self, vectors: Vectors, writes: Writes) -> None:
        self.prepare, self.search, self.count, self.ping = (
            vectors.prepare,
            vectors.search,
            vectors.count,
            vectors.ping,
        )
        self._vectors, self._writes = vectors, writes

    async def upsert(self, *args: Any) -> None:
        await self._writes.make("upsert", self._vectors.upsert, *args)

    async def delete(self, *args: Any) -> None:
        await self._writes.make("delete vector", self._vectors.delete, *args)
