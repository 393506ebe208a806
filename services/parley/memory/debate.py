"""A remembered debate and how it is stored."""

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID, uuid5

from google.protobuf.json_format import MessageToDict, ParseDict

from parley.memory.embedding import Embedding
from parley.memory.stored_vectors import decode_vector, encode_vector
from parley.storage.ports import Collection, Document, Fields, Index
from parley.v1.memory_pb2 import PastDebate, RecordDebateRequest

DEBATES: Final = Collection(
    "debates",
    (Index(("unfinished",)),),
    private=("record", "vector"),
    owns_key=True,
    superseded=(Index(("key",)), Index(("unfinished", "key"))),
)
RECORDING: Final = "recording"
"""The mark `unfinished` of a record whose effects are outstanding; without a mark they are all applied."""
FORGETTING: Final = "forgetting"
"""The mark of a record that is forgotten: it is not recalled any more, and soon deleted."""
FILL_PROGRESS: Final = Collection("fillings", ())
"""The progress of building an index, by the index's name."""
KIND: Final = "remembered debate"
"""The kind of an unreadable debate in logs and metrics."""
_SEARCH_CHARACTERS: Final = 8_000
_NAMESPACE: Final = UUID("6d5f4a3a-2f0e-4a52-9a53-0b1b2c9b7e11")


def search_text(debate: PastDebate) -> str:
    """Return the text that searches compare: the first 8,000 characters of the question and of the conclusion.

    Both, since a later question may be like either.
    """
    return f"{debate.question[:_SEARCH_CHARACTERS]}\n{debate.conclusion[:_SEARCH_CHARACTERS]}"


def storage_key(tenant: str, debate_id: str) -> str:
    """Return the key of the debate's document. Debate ids contain no slash, so that no two pairs share a key."""
    return f"{tenant}/{debate_id}"


def debate_of(document: Document) -> tuple[str, str]:
    """Return tenant and debate id of a document, even of one that cannot be read."""
    return _split_key(document.key)


def list_debates(found: Iterable[Document], field: str) -> list[tuple[str, str]]:
    """Return tenant and debate id of the debates whose keys documents have in a field: each once, in the order of the documents."""
    return [_split_key(key) for key in dict.fromkeys(str(each.fields[field]) for each in found)]


def _split_key(key: str) -> tuple[str, str]:
    tenant, _, debate_id = key.rpartition("/")
    return tenant, debate_id


def is_forgetting(document: Document) -> bool:
    """Return whether a document is only there until its effects are removed."""
    return document.fields.get("unfinished") == FORGETTING


def point_id(key: str) -> UUID:
    """Return the id of the debate's vector."""
    return uuid5(_NAMESPACE, key)


def to_fields(tenant: str, record: RecordDebateRequest, meaning: Embedding) -> Fields:
    """Return the content of the debate's document, with its vector, from which the index can be built again."""
    return {
        "key": storage_key(tenant, record.debate.debate_id),
        "tenant": tenant,
        "domain": record.debate.domain,
        "record": MessageToDict(record, preserving_proto_field_name=True),
        "model": meaning.model,
        "vector": encode_vector(meaning.vector),
    }


def from_document(document: Document) -> RecordDebateRequest:
    """Return the record that `to_fields` wrote."""
    fields: Any = document.fields
    return ParseDict(fields["record"], RecordDebateRequest())


def read_debate(document: Document) -> PastDebate:
    """Return what a debate was asked and decided, of the record that `to_fields` wrote; the rest is most of the record."""
    fields: Any = document.fields
    return ParseDict(fields["record"].get("debate", {}), PastDebate())


def stored_embedding(document: Document) -> Embedding:
    """Return the stored vector and its model. Raise ValueError or KeyError if they are missing or bad."""
    fields: Any = document.fields
    return Embedding(decode_vector(fields["vector"]), str(fields["model"]))
