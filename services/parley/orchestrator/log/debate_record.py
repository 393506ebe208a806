"""The record of one debate, as the index stores it."""

import base64
from datetime import datetime

from msgspec import Struct

from parley.v1.debate_pb2 import ImportedDebate
from parley.v1.event_pb2 import DebateCreated

PENDING = "PENDING"
RUNNING = "RUNNING"
WAITING = "WAITING"
PAUSED = "PAUSED"
COMPLETED = "COMPLETED"
FAILED = "FAILED"
CANCELLED = "CANCELLED"
RESTING = (COMPLETED, CANCELLED, FAILED, PAUSED)
"""Statuses of debates to which nothing happens without a request, once no owner is needed."""


class DebateRecord(Struct, frozen=True):
    """The record of one debate.

    Attributes:
        request_digest: Digest of the request that created it.
        open: Whether it needs an owner.
        owner: The name of the replica that runs it, or None.
        epoch: The claim under which the record was last written.
        heartbeat: A number that the live owner increases.
        alive: When the owner last sent a heartbeat, by its own clock, as in `updated`. Only scans use it, to find owners that
            send none. None without an owner, or if the owner's version does not write it.
        created: Time of acceptance (ISO 8601, UTC, microseconds) and the debate's id: orders debates by age.
        question: As lists show it, see `to_listed_question`.
        opening: The payload of the first event (base64), until the log is known to contain that event.
        address: Where other replicas reach the owner, as `host:port`; empty if unknown.
        subject: Id of the debate that this one is about; None if it is about a question.
        labels: Labels for searches, each as `name=value`.
        cost_micros: Cost so far, in millionths of a US dollar, when its owner last wrote the record; None if a price is unknown, or if
            no version that writes it has run the debate.
        document_bytes: Bytes of its context documents, and of what research may find for it at most; 0 also if an older version has written the record.
        imported: The contract's `ImportedDebate` (base64), if it is of another system; else empty.
        due: If it waits for a person without an owner: when it needs an owner again at the latest, as in `updated`.
        news: When its status was last written, as in `updated`, and a random part: until hooks are told of what its log has since.
            None: they were, as far as `told`, the sequence of an event.
    """

    tenant: str
    debate: str
    request_id: str
    request_digest: str
    format: str
    status: str
    open: bool
    owner: str | None
    epoch: int
    heartbeat: int
    created: str
    updated: str
    question: str
    opening: str
    address: str = ""
    subject: str | None = None
    due: str | None = None
    alive: str | None = None
    labels: tuple[str, ...] = ()
    document_bytes: int = 0
    news: str | None = None
    told: int = 0
    cost_micros: int | None = None
    imported: str = ""

    @property
    def accepted_at(self) -> datetime:
        """When the debate was accepted."""
        return datetime.fromisoformat(self.created.partition("/")[0])

    @property
    def is_resting(self) -> bool:
        """Whether nothing happens to it without a request. A debate that waits for a person does not rest."""
        return not self.open and self.status in RESTING

    @property
    def key(self) -> str:
        """The record's key in its collection, and the name of the debate's log."""
        return record_key(self.tenant, self.debate)

    def opening_event(self) -> DebateCreated | None:
        """Return the payload of the first event, or None if the log is known to contain it."""
        return DebateCreated.FromString(base64.b64decode(self.opening)) if self.opening else None

    def import_note(self) -> ImportedDebate | None:
        """Return how the debate came here from another system, or None if it is of this one."""
        return ImportedDebate.FromString(base64.b64decode(self.imported)) if self.imported else None


def opening_text(created: DebateCreated) -> str:
    """Return the payload of a first event as text for a record."""
    return base64.b64encode(created.SerializeToString()).decode()


def record_key(tenant: str, debate: str) -> str:
    """Return the key of a debate's record."""
    return f"{tenant}/{debate}"
