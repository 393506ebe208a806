"""An event as the log stores it: an envelope around a payload, chained to the event before by its hash."""

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from parley.orchestrator.canonical import canonical_json
from parley.orchestrator.events import SCHEMA_VERSION, CorruptEventError, Payload, decode, encode, kind_of

__all__ = ["GENESIS", "Draft", "Envelope", "open_entry", "seal"]

GENESIS = "0" * 64
"""The hash before the first event."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that is to be recorded. `attempt` counts from 1 for steps and is 0 for everything else."""

    key: str
    payload: Payload
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Envelope:
    """A recorded event.

    Attributes:
        sequence: Dense, from 1.
        epoch: The claim it was written under; 0 before any.
        payload_text: The payload as canonical JSON, as stored.
        payload: The payload, or None where this version of Parley does not know its kind.
        hash: SHA-256 over the hash before and everything else here, 64 hex digits.
    """

    tenant: str
    debate: str
    sequence: int
    epoch: int
    key: str
    attempt: int
    kind: str
    schema: int
    time: datetime
    payload_text: str
    payload: Payload | None
    hash: str = ""


def seal(
    draft: Draft, *, tenant: str, debate: str, sequence: int, epoch: int, time: datetime, before: str
) -> tuple[Envelope, str]:
    """Return the envelope of a draft, hashed onto the event before, and the entry to store."""
    envelope = Envelope(
        tenant=tenant,
        debate=debate,
        sequence=sequence,
        epoch=epoch,
        key=draft.key,
        attempt=draft.attempt,
        kind=kind_of(draft.payload),
        schema=SCHEMA_VERSION,
        time=time,
        payload_text=encode(draft.payload),
        payload=draft.payload,
    )
    sealed = replace(envelope, hash=_chained(envelope, before))
    return sealed, canonical_json({**_header(sealed), "payload": sealed.payload_text, "hash": sealed.hash})


def open_entry(entry: str, before: str | None) -> Envelope:
    """Return the envelope that a stored entry holds; where `before` is None its place in the chain is not checked.

    Raises:
        CorruptEventError: the entry is damaged, or was not written after the event whose hash is `before`.
    """
    try:
        stored = json.loads(entry)
        envelope = Envelope(
            tenant=stored["tenant"],
            debate=stored["debate"],
            sequence=stored["sequence"],
            epoch=stored["epoch"],
            key=stored["key"],
            attempt=stored["attempt"],
            kind=stored["kind"],
            schema=stored["schema"],
            time=datetime.fromisoformat(stored["time"]),
            payload_text=stored["payload"],
            payload=decode(stored["kind"], stored["payload"]),
            hash=stored["hash"],
        )
    except (ValueError, KeyError, TypeError) as error:
        message = f"stored event is damaged: {error}"
        raise CorruptEventError(message) from error
    if before is not None and _chained(envelope, before) != envelope.hash:
        message = f"event {envelope.sequence} of {envelope.debate} does not follow from the event before it"
        raise CorruptEventError(message)
    return envelope


def _header(envelope: Envelope) -> dict[str, str | int]:
    return {
        "tenant": envelope.tenant,
        "debate": envelope.debate,
        "sequence": envelope.sequence,
        "epoch": envelope.epoch,
        "key": envelope.key,
        "attempt": envelope.attempt,
        "kind": envelope.kind,
        "schema": envelope.schema,
        "time": envelope.time.astimezone(UTC).isoformat(timespec="microseconds"),
    }


def _chained(envelope: Envelope, before: str) -> str:
    hashed = hashlib.sha256(before.encode())
    hashed.update(canonical_json(_header(envelope)).encode())
    hashed.update(envelope.payload_text.encode())
    return hashed.hexdigest()
