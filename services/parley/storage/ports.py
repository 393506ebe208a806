"""The storage ports: the operations of a store, whichever store it is.

`Documents` holds small documents by key, `Log` holds append-only logs, `Vectors` finds what is near. They are small
on purpose: every adapter passes the same contract suite (`tests/contract/`), and nothing outside `storage/` knows
which one runs.
"""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from msgspec import Struct

Value = str | int | float | bool | None | Sequence["Value"] | Mapping[str, "Value"]
"""The values of a document's field. Integers fit in 64 bits, floats are finite, text is valid Unicode without NUL."""

Fields = Mapping[str, Value]
"""A document's content. Names of top-level fields match `[a-z][a-z0-9_]*`; what is nested is free."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


def _require_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{what} {name!r} must match [a-z][a-z0-9_]* and have at most 63 characters")


class StorageError(Exception):
    """An operation failed; its outcome is unknown unless a subclass says otherwise."""


class StoreUnavailableError(StorageError):
    """The store does not answer, or cannot work now. Repeating the same call is right."""


class StoreDamagedError(StorageError):
    """Stored data cannot be read, or is gone; repeating the call does not help. The message says what to do.

    Attributes:
        document: The document as it is stored, if only its private fields cannot be read.
    """

    document: "Document | None" = None


class KeyMissingError(StorageError):
    """Stored data is encrypted under a key that the settings do not have. The message names the key; repeating the call does not help."""


class VectorsLostError(StoreUnavailableError):
    """A vector collection was damaged and was deleted; prepare it again and store its points again."""


class DuplicateError(StorageError):
    """A document with this key, or with these values of a unique index, already exists. Nothing was written."""


class AppendConflictError(StorageError):
    """The log already has another record at this position. Nothing was written."""


class AppendGapError(StorageError):
    """The log ends before this position, as one that was deleted meanwhile does. Nothing was written."""


class Index(Struct, frozen=True):
    """Fields (top level, in order) that `find` may search and order by; each holds a scalar of one type or is absent.

    One of them may hold a list of texts instead, for `HasAll`; `find` cannot order by it.

    A unique index's fields hold text. Documents without one of them, or with None in it, are not compared.
    """

    fields: tuple[str, ...]
    unique: bool = False

    def __post_init__(self) -> None:
        if not self.fields:
            raise ValueError("an index needs at least one field")
        for field in self.fields:
            _require_name("field", field)


class Collection(Struct, frozen=True):
    """A named set of documents, and its indexes, which are created at the start.

    Attributes:
        private: Fields that hold what people or models wrote, or secrets. They are encrypted if the operator has set a key, so no index
            and no condition names them. What is deleted of them does not stay on the disk, as far as that is the store's own.
        key_parts: Documents whose keys agree in so many parts, at each `/`, share a data key: two of `tenant/debate/…` are those of a
            debate, and of its log. 0: all documents of the collection share one.
        key_days: If set, all documents written on a day (UTC) share a data key instead, which is deleted after so many days more: no
            document stays longer.
        owns_key: Whether deleting a document deletes the data key that it shares with others; they are deleted before. A condition of
            such a delete names plain values, and a document that meets it does so until it is deleted.
        superseded: Indexes that an earlier Parley created for it, which are dropped at the start.
    """

    name: str
    indexes: tuple[Index, ...] = ()
    private: tuple[str, ...] = ()
    key_parts: int = 2
    key_days: int | None = None
    owns_key: bool = False
    superseded: tuple[Index, ...] = ()

    def __post_init__(self) -> None:
        _require_name("collection", self.name)
        if set(self.superseded) & set(self.indexes):
            raise ValueError(f"{self.name} has an index that is superseded")
        if indexed := {name for index in self.indexes for name in index.fields} & set(self.private):
            raise ValueError(f"{self.name} has an index on private fields: {', '.join(sorted(indexed))}")


class Below(Struct, frozen=True):
    """A condition: the field is present, of the bound's type, and smaller than the bound."""

    bound: int | float | str


class Above(Struct, frozen=True):
    """A condition: the field is present, of the bound's type, and larger than the bound."""

    bound: int | float | str


class OneOf(Struct, frozen=True):
    """A condition: the field equals one of these."""

    values: tuple[str | int | bool | None, ...]


class HasAll(Struct, frozen=True):
    """A condition: the field is a list that contains all of these texts, at least one.

    A store may look at the documents one by one that meet the other conditions.
    """

    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.texts:
            raise ValueError("HasAll needs at least one text")


Where = Mapping[str, str | int | float | bool | Below | Above | OneOf | HasAll | None]
"""Conditions on top-level fields, all of which must hold. A plain value means equality; None also matches absence.

The name `key` stands for the document's key, in all of a search: it needs no index.
"""


class Order(Struct, frozen=True):
    """An indexed field to order by. Absent comes before any value; text is ordered by code points.

    Ties are broken by key, in the same direction as the last field.
    """

    field: str
    descending: bool = False


class Document(Struct, frozen=True):
    """One stored document."""

    key: str
    fields: Fields


class Insert(Struct, frozen=True):
    """A document to store, as by `Documents.insert`."""

    collection: Collection
    key: str
    fields: Fields


class Update(Struct, frozen=True):
    """Fields of a document to set, as by `Documents.update`."""

    collection: Collection
    key: str
    changes: Fields
    where: Where = {}


class Documents(Protocol):
    """Documents by key. A read sees every write that was acknowledged before it began.

    Keys are text that is not empty. A document has at most 15 million bytes as JSON. Every method may raise
    StoreUnavailableError, and ValueError if an argument breaks the rules of this module. A caller that is
    cancelled, or gets StoreUnavailableError, cannot know whether its write happened.
    """

    async def prepare(self, *collections: Collection) -> None:
        """Create the collections and their indexes if they are missing, and drop superseded ones. Safe to call again, and from many processes."""

    async def get(self, collection: Collection, key: str) -> Document | None:
        """Return the document, or None."""

    async def insert(self, collection: Collection, key: str, fields: Fields) -> None:
        """Store a new document; it is durable when this returns.

        Raises:
            DuplicateError: the key or a unique index's values exist already.
        """

    async def put(
        self, collection: Collection, documents: Mapping[str, Fields], if_new: Fields | None = None
    ) -> None:
        """Insert documents by their keys, or set these fields, at least one, of those that are there. All are durable when this returns; if it fails, some may be.

        `if_new`: other fields that a new document has too, and that one that is there keeps as they are. ValueError if the collection has a unique index.
        """

    async def find(
        self,
        collection: Collection,
        where: Where,
        *,
        order: Sequence[Order] = (),
        limit: int = 1000,
        fields: Sequence[str] = (),
    ) -> Sequence[Document]:
        """Return at most `limit` documents that satisfy `where`, in `order`, or by key if no order is given.

        Both name `key` and fields of the collection's indexes only; another field is a ValueError. With `fields`, documents come with these alone,
        None for each that a document does not have.
        """

    async def count(self, collection: Collection, where: Where) -> int:
        """Return how many documents satisfy `where`, which is as in `find`. None of them is read."""

    async def update(
        self, collection: Collection, key: str, changes: Fields, where: Where | None = None
    ) -> bool:
        """Set top-level fields (at least one) in one atomic step if the document exists and `where` still holds.

        Here `where` may name any top-level field. Return whether the document was updated. Raise DuplicateError if a unique
        index would be violated.
        """

    async def delete(self, collection: Collection, key: str, where: Where | None = None) -> bool:
        """Delete the document if it exists and `where` still holds; return whether it was deleted."""


class Record(Struct, frozen=True):
    """One append to a log: a batch of entries with dense sequences.

    Attributes:
        first: Sequence of the first entry, from 1. It must be one more than the log's last sequence.
        append_id: Names this append, so that one whose outcome is unknown can be sent again unchanged.
        entries: The bytes of each entry, at least one; all together at most 15 million bytes.
    """

    first: int
    append_id: str
    entries: tuple[bytes, ...]

    def __post_init__(self) -> None:
        if self.first < 1 or not self.entries:
            raise ValueError("a record begins at 1 or later and holds at least one entry")

    @property
    def last(self) -> int:
        """Sequence of the last entry."""
        return self.first + len(self.entries) - 1


class Log(Protocol):
    """Append-only logs by name. A record is stored completely or not at all, and never changes.

    Every method may raise StoreUnavailableError. A caller that is cancelled, or gets it, cannot know whether
    its write happened: sending the same record again is right.
    """

    async def append(
        self, log: str, record: Record, *, insert: Insert | None = None, update: Update | None = None
    ) -> None:
        """Append the record at its position; it is durable when this returns.

        With it come writes to documents of the same store: the insert before the record, the update after it. If one fails, those
        after it are not made, and those before it are undone in SQLite; in MongoDB they stay. An update whose condition does not hold
        does not fail.

        The same record (same first and append_id) again is a success and changes nothing. The caller has read the
        log up to `record.first - 1`. A writer only appends after what it read, so of two writers at one position
        one gets an error.

        Raises:
            AppendConflictError: another record already covers this position.
            AppendGapError: the log ends before `first - 1`, and the record would leave a gap.
            DuplicateError: the insert or the update failed so. An insert may have been made by an earlier call whose outcome was unknown.
        """

    async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        """Return, in order, at most `limit` records that hold an entry with a sequence larger than `after`.

        The first may also hold entries at or before `after`.
        """

    def follow(self, log: str, after: int = 0) -> AsyncGenerator[Record, None]:
        """Yield records as `read` would, then those that are appended later, forever.

        It polls, and wakes early if the store reports appends. Close it to stop
        (`contextlib.aclosing`). The follower of a deleted log keeps waiting.
        """

    async def delete(self, log: str) -> None:
        """Delete the log and all its records. Do nothing if there is none.

        If the outcome is unknown, call it again. A reader may meanwhile see a part of the log.
        """


class VectorCollection(Struct, frozen=True):
    """A named set of vectors of one size.

    Attributes:
        name: Letters, digits, `-`, `_` and `.`.
        size: Numbers in a vector.
        fields: Names of the fields by which searches and counts filter.
    """

    name: str
    size: int
    fields: tuple[str, ...] = ()


class Point(Struct, frozen=True):
    """A vector with its fields."""

    id: UUID
    vector: Sequence[float]
    fields: Mapping[str, str]


class Neighbor(Struct, frozen=True):
    """A point that a search found; `score` is the cosine, -1 to 1.

    Attributes:
        vector: Its vector with length 1, if the search asked for it.
    """

    id: UUID
    score: float
    fields: Mapping[str, str]
    vector: Sequence[float] = ()


class Vectors(Protocol):
    """Vectors by id, with a few fields; a search returns the nearest ones among those whose fields are equal.

    A vector store is an index: the documents are stored elsewhere, and the index can be built again from them.
    A search sees every write that was acknowledged before it began.

    Every method raises StoreUnavailableError if the store does not answer, and VectorsLostError if the
    collection is damaged.
    """

    async def prepare(self, collection: VectorCollection) -> None:
        """Create the collection if it is missing or cannot be read. Safe to call again, and from many processes.

        Raises:
            StorageError: it exists with vectors of another size.
        """

    async def upsert(self, collection: VectorCollection, points: Sequence[Point]) -> None:
        """Store points; a point replaces one with the same id."""

    async def search(
        self,
        collection: VectorCollection,
        vector: Sequence[float],
        *,
        where: Mapping[str, str] | None = None,
        without: Sequence[UUID] = (),
        limit: int = 10,
        floor: float | None = None,
        with_vectors: bool = False,
    ) -> Sequence[Neighbor]:
        """Return the points nearest to `vector`, nearest first.

        Only those whose fields equal `where`, whose id is not in `without`, and whose score is at least `floor`, if given.
        """

    async def delete(self, collection: VectorCollection, ids: Sequence[UUID]) -> None:
        """Delete points; unknown ids are ignored."""

    async def count(self, collection: VectorCollection, where: Mapping[str, str] | None = None) -> int:
        """Count the points whose fields equal `where`."""

    async def ping(self) -> None:
        """Return if the store answers, else raise StoreUnavailableError."""
