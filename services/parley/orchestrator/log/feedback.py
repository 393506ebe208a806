"""Feedback of people on completed debates. It is not part of the log, whose last event was recorded when the debate ended.

Each feedback is a document and stays; the latest one of a debate counts.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from parley.storage.ports import Collection, Document, Documents, DuplicateError, Index, Order, Where
from parley.storage.scan import scan

FEEDBACK = Collection(
    "feedback",
    (Index(("debate", "place"), unique=True), Index(("is_reported", "given_at"))),
    private=("message",),
)
_PAGE_SIZE: Final = 1000


class FeedbackReusedError(Exception):
    """The request id was already used for a different feedback."""


class Feedback(Struct, frozen=True):
    """Feedback of a person on a debate.

    Attributes:
        value: 1 or -1.
        given_at: Time (ISO 8601, UTC, microseconds) and the key. Orders feedback by age.
        agents: Ids of the agents whose ratings it changes.
        number: Its number among the feedback on its debate, from 1; 0 until it is recorded.
        is_reported: Whether ratings and memory have answered it, so that it is not sent again.
        is_rated: Whether the ratings accepted it.
    """

    tenant: str
    debate: str
    request_id: str
    value: int
    message: str
    given_at: str
    agents: tuple[str, ...]
    domain: str
    number: int = 0
    is_reported: bool = False
    is_rated: bool = False

    @property
    def key(self) -> str:
        """The key in its collection."""
        return f"{self.tenant}/{self.debate}/{self.request_id}"

    def has_same_content(self, other: "Feedback") -> bool:
        """Return whether both have the same content, whatever their time."""
        return (self.key, self.value, self.message) == (other.key, other.value, other.message)


class FeedbackStore:
    """Stores the feedback on all debates."""

    def __init__(self, documents: Documents) -> None:
        """Use a store whose collection FEEDBACK is prepared."""
        self._documents = documents

    async def put(self, feedback: Feedback) -> tuple[Feedback, bool]:
        """Record feedback. Return it with its number, and whether it was recorded before.

        Raises:
            FeedbackReusedError: its request id was already used for a different feedback.
        """
        while True:
            existing = await self.get(feedback.key)
            if existing is not None:
                if not existing.has_same_content(feedback):
                    raise FeedbackReusedError(feedback.request_id)
                return existing, True
            latest = await self.get_latest(feedback.tenant, feedback.debate)
            numbered = replace(feedback, number=latest.number + 1 if latest else 1)
            try:
                await self._documents.insert(FEEDBACK, numbered.key, _fields(numbered))
            except DuplicateError:
                continue  # the same request, or another feedback, was faster
            return numbered, False

    async def get(self, key: str) -> Feedback | None:
        """Return the feedback with this key, or None."""
        found = await self._documents.get(FEEDBACK, key)
        return _feedback(found) if found else None

    async def get_latest(self, tenant: str, debate: str) -> Feedback | None:
        """Return the latest feedback on a debate, which is the one that counts."""
        where: Where = {"debate": f"{tenant}/{debate}"}
        found = await self._documents.find(FEEDBACK, where, order=(Order("place", descending=True),), limit=1)
        return _feedback(found[0]) if found else None

    async def delete_for_debate(self, tenant: str, debate: str) -> None:
        """Remove all feedback on a debate."""
        where: Where = {"debate": f"{tenant}/{debate}"}
        while found := await self._documents.find(FEEDBACK, where, limit=_PAGE_SIZE):
            for each in found:
                await self._documents.delete(FEEDBACK, each.key)

    async def list_unreported(self) -> Sequence[Feedback]:
        """Return the feedback that is not reported yet, oldest first."""
        found = scan(self._documents, FEEDBACK, "given_at", {"is_reported": False})
        return [_feedback(each) async for each in found]

    async def mark_rated(self, feedback: Feedback) -> Feedback:
        """Mark feedback as accepted by the ratings. Return it changed."""
        await self._documents.update(FEEDBACK, feedback.key, {"is_rated": True})
        return replace(feedback, is_rated=True)

    async def mark_reported(self, feedback: Feedback) -> Feedback:
        """Mark feedback as reported. Return it changed."""
        await self._documents.update(FEEDBACK, feedback.key, {"is_reported": True})
        return replace(feedback, is_reported=True)


def _fields(feedback: Feedback) -> Mapping[str, Any]:
    return {
        "debate": f"{feedback.tenant}/{feedback.debate}",
        "place": f"{feedback.number:09}",  # a unique index holds text
        "request_id": feedback.request_id,
        "value": feedback.value,
        "message": feedback.message,
        "given_at": feedback.given_at,
        "agents": json.dumps(feedback.agents),
        "domain": feedback.domain,
        "is_reported": feedback.is_reported,
        "is_rated": feedback.is_rated,
    }


def _feedback(document: Document) -> Feedback:
    fields: Mapping[str, Any] = document.fields
    tenant, _, debate = fields["debate"].partition("/")
    return Feedback(
        tenant=tenant,
        debate=debate,
        request_id=fields["request_id"],
        value=fields["value"],
        message=fields["message"],
        given_at=fields["given_at"],
        agents=tuple(json.loads(fields["agents"])),
        domain=fields["domain"],
        number=int(fields["place"]),
        is_reported=fields["is_reported"],
        is_rated=fields["is_rated"],
    )
