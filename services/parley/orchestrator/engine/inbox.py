"""The inbox of interventions: any replica may add one; the debate's owner handles it once and writes the result there."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from parley.orchestrator.model.digest import digest
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import (
    Below,
    Collection,
    Document,
    Documents,
    DuplicateError,
    Fields,
    Index,
    Order,
    Where,
)
from parley.storage.scan import scan
from parley.v1.event_pb2 import Intervened

INBOX = Collection(
    "inbox", (Index(("state", "made")), Index(("debate", "state", "made"))), private=("intervened", "digest")
)
_PAGE_SIZE = 1000

WAITING = "waiting"
RECORDED = "recorded"
ENDED = "ended"
REFUSED = "refused"

CHECKPOINT_CLOSED = "CHECKPOINT_CLOSED"
NO_CHECKPOINT = "NO_CHECKPOINT"
UNKNOWN_QUESTION = "UNKNOWN_QUESTION"
UNKNOWN_AGENT = "UNKNOWN_AGENT"
LAST_AGENT = "LAST_AGENT"
GUIDANCE_FULL = "GUIDANCE_FULL"


class InboxEntry(Struct, frozen=True):
    """An intervention on its way to a debate.

    Attributes:
        debate: Key of the debate's record.
        created: Time at which it was added (ISO 8601, UTC, microseconds) and its key. Orders entries by age.
        state: `waiting`, `recorded`, `ended` if the debate ended first, or `refused` if the debate's state forbids it.
        sequence: Sequence of the event that records it; 0 until then.
        epoch: The latest claim whose owner decides on it; 0 until an owner does.
        refusal: Why it is refused: `CHECKPOINT_CLOSED`, `NO_CHECKPOINT`, `UNKNOWN_QUESTION`, `UNKNOWN_AGENT`, `LAST_AGENT` or
            `GUIDANCE_FULL`.
        known_ids: If it is refused for an unknown id: the ids of the questions of the checkpoint, or of the agents.
    """

    debate: str
    created: str
    intervened: Intervened
    state: str = WAITING
    sequence: int = 0
    epoch: int = 0
    refusal: str = ""
    known_ids: Sequence[str] = ()

    @property
    def key(self) -> str:
        """Key in the inbox."""
        return f"{self.debate}/{self.intervened.request_id}"

    @property
    def act(self) -> str:
        """What is done, by its name in the contract: `cancel`, `pause`, …; empty if only a newer version knows it."""
        return self.intervened.intervention.WhichOneof("act") or ""

    @property
    def question_ids(self) -> frozenset[str]:
        """Ids of the questions that it answers."""
        return frozenset(each.question_id for each in self.intervened.intervention.answer.answers)

    @property
    def agent(self) -> str:
        """Id of the agent that it mutes or unmutes."""
        intervention = self.intervened.intervention
        return (intervention.unmute if self.act == "unmute" else intervention.mute).agent_id

    @property
    def checkpoint(self) -> str:
        """Key of the checkpoint that it is for; empty for any open one."""
        return self.intervened.intervention.checkpoint


class Inbox:
    """Stores all interventions until they are decided, and some time longer."""

    def __init__(self, documents: Documents) -> None:
        """Use a store whose collection INBOX is prepared."""
        self._documents = documents

    async def put(self, entry: InboxEntry) -> bool:
        """Add an intervention; the same one again changes nothing. Return False if a different one has this request id."""
        stored: Fields = {
            "debate": entry.debate,
            "made": entry.created,
            "intervened": base64.b64encode(entry.intervened.SerializeToString()).decode(),
            "state": entry.state,
            "sequence": entry.sequence,
            "epoch": entry.epoch,
            "refusal": entry.refusal,
            "asked": list(entry.known_ids),
            "digest": digest(entry.intervened),
        }
        try:
            await self._documents.insert(INBOX, entry.key, stored)
        except DuplicateError:
            existing = await self._documents.get(INBOX, entry.key)
            return existing is not None and existing.fields["digest"] == stored["digest"]
        return True

    async def get(self, key: str) -> InboxEntry | None:
        """Return the entry with this key, or None."""
        found = await self._documents.get(INBOX, key)
        return _entry(found) if found else None

    async def list_waiting(self) -> Sequence[InboxEntry]:
        """Return the interventions without a decision, oldest first, except those that only a newer version knows."""
        found = scan(self._documents, INBOX, "made", {"state": WAITING}, page=_PAGE_SIZE)
        return [each for each in _entries([each async for each in found]) if each.act]

    async def list_waiting_for(self, debate: str) -> Sequence[InboxEntry]:
        """Return up to 1,000 of one debate, by the key of its record, as `list_waiting` does."""
        where: Where = {"debate": debate, "state": WAITING}
        found = await self._documents.find(INBOX, where, order=(Order("made"),), limit=_PAGE_SIZE)
        return [entry for entry in _entries(found) if entry.act]

    async def mark_recorded(self, key: str, sequence: int) -> None:
        """Mark an intervention as recorded in the log."""
        changes: Fields = {"state": RECORDED, "sequence": sequence}
        await self._documents.update(INBOX, key, changes, {"state": WAITING})

    async def claim(self, key: str, epoch: int) -> bool:
        """Reserve the decision on an entry for the owner of an epoch. Return False if it is decided, or a later owner has it.

        Without this, an owner that lost its claim without knowing could refuse what the next owner records.
        """
        return await self._documents.update(
            INBOX, key, {"epoch": epoch}, {"state": WAITING, "epoch": Below(epoch + 1)}
        )

    async def mark_refused(self, key: str, epoch: int, refusal: str, known_ids: Sequence[str] = ()) -> None:
        """Mark an entry as refused, with the reason, unless a later owner decides. `known_ids`: the ids it could have named."""
        changes: Fields = {"state": REFUSED, "refusal": refusal, "asked": list(known_ids)}
        await self._documents.update(INBOX, key, changes, {"state": WAITING, "epoch": epoch})

    async def mark_ended(self, key: str) -> None:
        """Mark an intervention as too late: the debate ended first."""
        await self._documents.update(INBOX, key, {"state": ENDED}, {"state": WAITING})

    async def delete_for_debate(self, debate: str) -> None:
        """Remove all entries of a debate, by the key of its record."""
        while found := await self._documents.find(INBOX, {"debate": debate}, limit=_PAGE_SIZE):
            for each in found:
                await self._documents.delete(INBOX, each.key)

    async def delete_decided(self, before: str) -> None:
        """Remove decided entries that were added before a time."""
        for state in (RECORDED, ENDED, REFUSED):
            where: Where = {"state": state, "made": Below(before)}
            while found := await self._documents.find(INBOX, where, order=(Order("made"),), limit=_PAGE_SIZE):
                for each in found:
                    await self._documents.delete(INBOX, each.key)


def _entries(documents: Sequence[Document]) -> list[InboxEntry]:
    return list(skip_unreadable(documents, _entry, "intervention"))


def _entry(document: Document) -> InboxEntry:
    fields: Mapping[str, Any] = document.fields
    return InboxEntry(
        debate=fields["debate"],
        created=fields["made"],
        intervened=Intervened.FromString(base64.b64decode(fields["intervened"])),
        state=fields["state"],
        sequence=fields["sequence"],
        epoch=fields["epoch"],
        refusal=fields["refusal"],
        known_ids=tuple(fields["asked"]),
    )
