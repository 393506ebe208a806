"""The checkpoint that a link is for, read from the debate's log, and the actions that it takes."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from parley.orchestrator.log.envelope import Envelope, open_entry
from parley.orchestrator.log.reading import log_name
from parley.storage.ports import Log
from parley.v1.debate_pb2 import Approve, Continue, EndRounds, Intervention
from parley.v1.event_pb2 import CheckpointClosed, CheckpointExpired, CheckpointOpened, DebateCreated
from parley.v1.link_pb2 import (
    LINK_ACTION_APPROVE,
    LINK_ACTION_CONTINUE,
    LINK_ACTION_END,
    LinkAction,
    LinkClaims,
)

_MAX_LATER: Final = 200
"""Records after the one that opened a checkpoint. While it is open, few are written: the debate waits."""
_ACTIONS: Final = {
    "questions": (LINK_ACTION_CONTINUE,),
    "direction": (LINK_ACTION_CONTINUE, LINK_ACTION_END),
    "approval": (LINK_ACTION_APPROVE,),
}


class OpenCheckpoint(Struct, frozen=True):
    """A checkpoint that waits for a person. `asked`: what it puts to them; `question`: the debate's."""

    question: str
    asked: str


def actions_of(opened: CheckpointOpened) -> Sequence[LinkAction.ValueType]:
    """Return what links can do at a checkpoint."""
    return _ACTIONS.get(opened.WhichOneof("request") or "", ())


def asked_text(opened: CheckpointOpened) -> str:
    """Return what a checkpoint puts to a person, as text."""
    kind = opened.WhichOneof("request")
    return str(getattr(opened, kind).text) if kind else ""


def intervention_of(claims: LinkClaims) -> Intervention:
    """Return what a link does."""
    if claims.action == LINK_ACTION_CONTINUE:
        return Intervention(checkpoint=claims.checkpoint, continue_debate=Continue())
    if claims.action == LINK_ACTION_END:
        return Intervention(checkpoint=claims.checkpoint, end=EndRounds())
    return Intervention(checkpoint=claims.checkpoint, approve=Approve(approved=True))


async def find_open_checkpoint(log: Log, claims: LinkClaims) -> OpenCheckpoint | None:
    """Return the checkpoint that a link is for; None if it is not open any more, or was opened again since.

    Raises:
        StorageError: the store is unavailable.
        CorruptEventError: an event is damaged.
    """
    name = log_name(claims.tenant, claims.debate_id)
    created = await _read_event(log, name, 1)
    event = await _read_event(log, name, claims.sequence)
    if created is None or event is None or event.key != claims.checkpoint:
        return None
    if not isinstance(created.payload, DebateCreated) or not isinstance(event.payload, CheckpointOpened):
        return None
    later = await log.read(name, claims.sequence, _MAX_LATER)
    entries = [
        entry for record in later for entry in record.entries[max(claims.sequence + 1 - record.first, 0) :]
    ]
    if len(later) == _MAX_LATER or any(
        _changes(open_entry(each, None), claims.checkpoint) for each in entries
    ):
        return None
    return OpenCheckpoint(created.payload.spec.question, asked_text(event.payload))


def _changes(event: Envelope, checkpoint: str) -> bool:
    kinds = CheckpointOpened | CheckpointClosed | CheckpointExpired
    return event.key == checkpoint and isinstance(event.payload, kinds)


async def _read_event(log: Log, name: str, sequence: int) -> Envelope | None:
    records = await log.read(name, sequence - 1, 1)
    if not records or not records[0].first <= sequence <= records[0].last:
        return None
    return open_entry(records[0].entries[sequence - records[0].first], None)
