"""An event as the log stores it: the serialized message of the contract, chained to the previous event by its hash."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from google.protobuf.message import DecodeError, Message
from msgspec import Struct

from parley.orchestrator.log.events import CorruptEventError, Payload, is_ignorable, kind_of
from parley.orchestrator.model.times import check_time, duration, seconds_of, time_of, timestamp
from parley.receipts import chain
from parley.v1 import event_pb2

GENESIS: Final = chain.GENESIS
"""The hash before the first event."""
_MAX_BYTES: Final = 10_000_000
"""Bytes of events that are recorded together. With the rest of their record, less than any store refuses."""


class UnrecordableError(Exception):
    """An event cannot be recorded: it cannot be encoded, or is larger than a log takes."""


class Envelope(Struct, frozen=True):
    """A recorded event with its stored bytes.

    Attributes:
        entry: The stored bytes; empty if they are not kept.
        message: The contract's `Event`, parsed from them.
        kind: Such as `step_succeeded`; empty if this version of Parley does not know it.
        payload: The message of that kind, or None.
    """

    entry: bytes
    message: event_pb2.Event
    kind: str
    payload: Payload | None

    @property
    def tenant(self) -> str:
        """The tenant."""
        return self.message.tenant

    @property
    def debate(self) -> str:
        """The debate."""
        return self.message.debate_id

    @property
    def sequence(self) -> int:
        """Dense, from 1."""
        return self.message.sequence

    @property
    def epoch(self) -> int:
        """The claim that it was written under; 0 before the first claim."""
        return self.message.epoch

    @property
    def time(self) -> datetime:
        """When it was recorded (UTC)."""
        return time_of(self.message.time)

    @property
    def owner_seconds(self) -> float:
        """When it was recorded, by its owner's clock, from an arbitrary start: only times of one epoch can be compared."""
        if self.message.HasField("owner_time"):
            return seconds_of(self.message.owner_time)
        return self.time.timestamp()

    @property
    def key(self) -> str:
        """Its key."""
        return self.message.key

    @property
    def attempt(self) -> int:
        """The attempt at a step, or the debate's; 0 for neither."""
        return self.message.attempt

    @property
    def hash(self) -> bytes:
        """SHA-256 over the previous hash and the stored bytes before this field, 32 bytes."""
        return self.message.hash


def create_event(key: str, payload: Payload, attempt: int = 0) -> event_pb2.Event:
    """Return an event to record. It has no place in a log before `seal`. `attempt` is as in the contract's `Event`.

    Raises:
        UnrecordableError: the payload is of no kind, or it cannot be encoded.
    """
    try:
        event = event_pb2.Event(key=key, attempt=attempt, ignorable=is_ignorable(payload))
        copy: Message = getattr(event, kind_of(payload))
        copy.CopyFrom(payload)
        copy.SetInParent()  # a payload without fields would be left out otherwise
    except Exception as error:
        raise UnrecordableError(f"{key} cannot be encoded: {error}") from error
    return event


def check_recordable(sealed: Sequence[Envelope]) -> None:
    """Raise UnrecordableError unless these events can be recorded together."""
    size = sum(len(each.entry) for each in sealed)
    if size > _MAX_BYTES:
        raise UnrecordableError(f"{sealed[0].key} has {size} bytes, more than {_MAX_BYTES}")


def seal(
    event: event_pb2.Event,
    *,
    tenant: str,
    debate: str,
    sequence: int,
    epoch: int,
    time: datetime,
    before: bytes,
    owner_seconds: float | None = None,
) -> Envelope:
    """Give an event of `create_event` its place in a log, hashed onto the event before, and return its envelope.

    `owner_seconds` is how long its owner has held the claim; None before a claim.
    """
    event.tenant, event.debate_id = tenant, debate
    event.sequence, event.epoch = sequence, epoch
    event.time.CopyFrom(timestamp(time))
    if owner_seconds is not None:
        event.owner_time.CopyFrom(duration(owner_seconds))
    event.ClearField("hash")  # it has one if an earlier record of it could not be written
    body = event.SerializeToString()
    event.hash = chain.chain_hash(before, body)
    return _wrap(body + chain.HASH_FIELD + event.hash, event)


def open_entry(entry: bytes, before: bytes | None) -> Envelope:
    """Return the envelope of stored bytes; if `before` is None, its place in the chain is not checked.

    Raises:
        CorruptEventError: the bytes are damaged, or do not follow the event with the hash `before`.
    """
    try:
        event = event_pb2.Event.FromString(entry)
        check_time(event.time)
    except (DecodeError, ValueError) as error:  # ValueError: an invalid time
        raise CorruptEventError(f"stored event is damaged: {error}") from error
    sealed = entry[-chain.HASH_BYTES :] == chain.HASH_FIELD + event.hash
    if not sealed or (before is not None and not chain.follows(entry, before)):
        message = f"event {event.sequence} of {event.debate_id} does not follow from the event before it"
        raise CorruptEventError(message)
    return _wrap(entry, event)


def _wrap(entry: bytes, event: event_pb2.Event) -> Envelope:
    kind = event.WhichOneof("payload") or ""
    return Envelope(entry, event, kind, getattr(event, kind) if kind else None)
