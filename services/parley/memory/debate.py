"""A remembered debate and how it is stored."""

import base64
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid5

import numpy as np

from parley.memory.meaning import Meaning
from parley.storage.ports import Collection, Document, Fields, Index

__all__ = [
    "DEBATES",
    "FILLINGS",
    "KIND",
    "RememberedDebate",
    "from_document",
    "key_in_store",
    "key_of",
    "meaning_of",
    "point_id",
    "to_fields",
]

DEBATES: Final = Collection("debates", (Index(("key",)),))
FILLINGS: Final = Collection("fillings", ())
"""How far the making of an index has come, by the index's name."""
KIND: Final = "remembered debate"
"""What a debate is called that cannot be read."""
_FOUND_BY: Final = 8_000
_NAMESPACE: Final = UUID("6d5f4a3a-2f0e-4a52-9a53-0b1b2c9b7e11")


@dataclass(frozen=True, slots=True)
class RememberedDebate:
    """What a debate was asked and what it concluded."""

    debate_id: str
    question: str
    conclusion: str
    domain: str
    concluded_at: datetime

    @property
    def text(self) -> str:
        """What it is found by: the first 8,000 characters of the question and of the conclusion.

        Both, since either may be what a later question is like.
        """
        return f"{self.question[:_FOUND_BY]}\n{self.conclusion[:_FOUND_BY]}"


def key_of(tenant: str, debate_id: str) -> str:
    """Return the key of the debate's document. Debate ids hold no slash, so that no two pairs share a key."""
    return f"{tenant}/{debate_id}"


def key_in_store(document: Document) -> str:
    """Return the key that a document is stored under."""
    return document.key


def point_id(key: str) -> UUID:
    """Return the id of the debate's vector."""
    return uuid5(_NAMESPACE, key)


def to_fields(tenant: str, debate: RememberedDebate, meaning: Meaning) -> Fields:
    """Return the content of the debate's document, with its vector, so that the index can be made again from it."""
    return {
        "key": key_of(tenant, debate.debate_id),
        "tenant": tenant,
        "debate_id": debate.debate_id,
        "question": debate.question,
        "conclusion": debate.conclusion,
        "domain": debate.domain,
        "concluded_at": debate.concluded_at.isoformat(),
        "model": meaning.model,
        "vector": base64.b64encode(np.array(meaning.vector, dtype="<f4").tobytes()).decode(),
    }


def from_document(document: Document) -> RememberedDebate:
    """Read what `to_fields` wrote."""
    fields: Any = document.fields
    return RememberedDebate(
        debate_id=fields["debate_id"],
        question=fields["question"],
        conclusion=fields["conclusion"],
        domain=fields["domain"],
        concluded_at=datetime.fromisoformat(fields["concluded_at"]),
    )


def meaning_of(document: Document) -> Meaning:
    """Return the vector that was stored with the debate and the model that made it. Raises ValueError or KeyError for none."""
    fields: Any = document.fields
    vector = np.frombuffer(base64.b64decode(fields["vector"]), dtype="<f4")
    if not np.isfinite(vector).all():
        raise ValueError("its vector holds a number that is not finite")
    return Meaning(vector.tolist(), str(fields["model"]))
