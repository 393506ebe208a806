"""The inbox of interventions: anyone may put one in, the debate's owner takes it up once and says so."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parley.orchestrator.model.digest import digest
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import (
    Above,
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
from parley.v1.event_pb2 import Intervened

__all__ = ["INBOX", "Inbox", "InboxEntry"]

INBOX = Collection("inbox", (Index(("state", "made")), Index(("debate", "state", "made"))))
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


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """An intervention on its way to a debate.

    Attributes:
        debate: Key of the debate's record.
        created: Time it was put in (ISO 8601, UTC, microseconds) and its key: orders entries by age.
        state: `list_waiting`, `mark_recorded`, `mark_ended` where the debate ended first, or `mark_refused` where the debate's state forbids it.
        sequence: Of the event that records it; 0 until then.
        epoch: The latest claim whose owner decides whether it is refused; 0 until one does.
        refusal: Why it is refused: `CHECKPOINT_CLOSED`, `NO_CHECKPOINT`, `UNKNOWN_QUESTION`, `UNKNOWN_AGENT` or `LAST_AGENT`.
        known_ids: Where it is refused for an id, those it could have named: of the questions that are asked, or of the agents.
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
        """What is done, by its name in the contract: `cancel`, `pause`, …; empty for what only a newer version knows."""
        return self.intervened.intervention.WhichOneof("act") or ""

    @property
    def question_ids(self) -> frozenset[str]:
        """Ids of the single questions that it answers."""
        return frozenset(each.question_id for each in self.intervened.intervention.answer.answers)

    @property
    def agent(self) -> str:
        """Id of the agent that it mutes or unmutes."""
        intervention = self.intervened.intervention
        return (intervention.unmute if self.act == "unmute" else intervention.mute).agent_id

    @property
    def checkpoint(self) -> str:
        """Key of the one checkpoint that it is for; empty for whichever is open."""
        return self.intervened.intervention.checkpoint


class Inbox:
    """All interventions that were put in."""

    def __init__(self, documents: Documents) -> None:
        """Keep them in a store whose collection INBOX is prepared."""
        self._documents = documents

    async def put(self, entry: InboxEntry) -> bool:
        """Put an intervention in; the same one again changes nothing. False: another one has this request id."""
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
            there = await self._documents.get(INBOX, entry.key)
            return there is not None and there.fields["digest"] == stored["digest"]
        return True

    async def get(self, key: str) -> InboxEntry | None:
        """Return an entry by its key."""
        found = await self._documents.get(INBOX, key)
        return _entry(found) if found else None

    async def list_waiting(self) -> Sequence[InboxEntry]:
        """Return the interventions that nobody has taken up, oldest first; those of a newer version are left to it."""
        entries: list[InboxEntry] = []
        after = ""
        while True:
            where: Where = {"state": WAITING, "made": Above(after)}
            found = await self._documents.find(INBOX, where, order=(Order("made"),), limit=_PAGE_SIZE)
            entries += _entries(found)
            if len(found) < _PAGE_SIZE:
                return [each for each in entries if each.act]
            after = str(found[-1].fields["made"])

    async def list_waiting_for(self, debate: str) -> Sequence[InboxEntry]:
        """Return those of one debate, by the key of its record; the oldest if they are many. Others are left as above."""
        where: Where = {"debate": debate, "state": WAITING}
        found = await self._documents.find(INBOX, where, order=(Order("made"),), limit=_PAGE_SIZE)
        return [entry for entry in _entries(found) if entry.act]

    async def mark_recorded(self, key: str, sequence: int) -> None:
        """Note that the log holds an intervention."""
        changes: Fields = {"state": RECORDED, "sequence": sequence}
        await self._documents.update(INBOX, key, changes, {"state": WAITING})

    async def claim(self, key: str, epoch: int) -> bool:
        """Let the owner of an epoch alone decide on an entry; false where it is decided, or a later owner decides.

        Without this an owner that has lost its claim, and does not know, could refuse what the next one records.
        """
        return await self._documents.update(
            INBOX, key, {"epoch": epoch}, {"state": WAITING, "epoch": Below(epoch + 1)}
        )

    async def mark_refused(self, key: str, epoch: int, refusal: str, asked: Sequence[str] = ()) -> None:
        """Note why an entry is refused, unless a later owner decides; `known_ids` is what it could have named."""
        changes: Fields = {"state": REFUSED, "refusal": refusal, "asked": list(asked)}
        await self._documents.update(INBOX, key, changes, {"state": WAITING, "epoch": epoch})

    async def mark_ended(self, key: str) -> None:
        """Note that the debate ended before the intervention was taken up."""
        await self._documents.update(INBOX, key, {"state": ENDED}, {"state": WAITING})

    async def delete_for_debate(self, debate: str) -> None:
        """Remove all that was put in for a debate, by the key of its record."""
        while found := await self._documents.find(INBOX, {"debate": debate}, limit=_PAGE_SIZE):
            for each in found:
                await self._documents.delete(INBOX, each.key)

    async def delete_decided(self, before: str) -> None:
        """Remove what was decided, and put in before a time."""
        for state in (RECORDED, ENDED, REFUSED):
            where: Where = {"state": state, "made": Below(before)}
            while found := await self._documents.find(INBOX, where, order=(Order("made"),), limit=_PAGE_SIZE):
                for each in found:
                    await self._documents.delete(INBOX, each.key)


def _entries(documents: Sequence[Document]) -> list[InboxEntry]:
    return list(skip_unreadable(documents, _entry, "intervention", lambda document: document.key))


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
