"""The latest stands of agents. A process that is alone on its store keeps what it knows of them, and reads those of an agent once."""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Final

from msgspec import Struct

from parley.memory.stands import MAX_LATEST, POSITIONS, Stand, agent_key
from parley.storage.ports import Document, Documents, Order

_MAX_AGENTS: Final = 256
"""Whose stands a process keeps, up to 85 kilobytes each; those that were not asked for for longest go."""
# No two have one place; in the whole order of the index no document is read.
_LATEST_FIRST: Final = (Order("place", descending=True), Order("about", descending=True))


class LatestStand(Struct, frozen=True):
    """What is known of a stand before it is compared with others.

    Attributes:
        key: Of its document.
        place: In the order of time.
        about: What stands for what it is about; the key if an earlier version wrote it, which did not say that.
    """

    key: str
    place: str
    about: str


class LatestStands:
    """The latest stands of all agents."""

    def __init__(self, documents: Documents, *, alone: bool) -> None:
        self._documents = documents
        self._alone = alone
        self._kept: OrderedDict[tuple[str, str], Mapping[str, LatestStand]] = OrderedDict()
        """By agent: its latest stands by their keys, the latest first."""
        self._changes = 0

    def knows(self, stand: Stand) -> bool:
        """Return whether the latest stands of a stand's agent are known without a read."""
        return _agent(stand) in self._kept

    def has(self, stand: Stand) -> bool:
        """Return whether a stand is known to be stored."""
        return stand.key in self._kept.get(_agent(stand), ())

    async def load(self, stands: Sequence[Stand]) -> list[Collection[LatestStand]]:
        """Return the latest stands of the agent of each stand, the latest first. Raise StorageError."""
        found = {_agent(each): self._kept[_agent(each)] for each in stands if self.knows(each)}
        for agent in found:
            self._kept.move_to_end(agent)
        unknown = [each for each in stands if _agent(each) not in found]
        read = await asyncio.gather(*map(self._read, unknown))
        found.update(zip(map(_agent, unknown), read, strict=True))
        return [found[_agent(each)].values() for each in stands]

    async def _read(self, stand: Stand) -> Mapping[str, LatestStand]:
        changes, where = self._changes, {"tenant": stand.tenant, "agent_key": agent_key(stand.agent)}
        found = await self._documents.find(
            POSITIONS, where, order=_LATEST_FIRST, limit=MAX_LATEST, fields=("place", "about")
        )
        latest = {each.key: _from_document(each) for each in found}
        if self._alone and changes == self._changes:  # else they may lack what was written meanwhile
            self._keep(_agent(stand), latest)
        return latest

    def add(self, stand: Stand) -> None:
        """Note a stand that was just stored."""
        self._changes += 1
        if (kept := self._kept.get(_agent(stand))) is not None:
            later = takewhile(lambda each: each.place > stand.place, kept.values())
            added = LatestStand(stand.key, stand.place, stand.about)
            latest = {**{each.key: each for each in later}, stand.key: added, **kept}
            if len(latest) > MAX_LATEST:
                latest.popitem()
            self._keep(_agent(stand), latest)

    def clear(self) -> None:
        """Drop all that is known: stands were removed, as few are."""
        self._changes += 1
        self._kept.clear()

    def _keep(self, agent: tuple[str, str], latest: Mapping[str, LatestStand]) -> None:
        self._kept[agent] = latest
        self._kept.move_to_end(agent)
        if len(self._kept) > _MAX_AGENTS:
            self._kept.popitem(last=False)


def _agent(stand: Stand) -> tuple[str, str]:
    return stand.tenant, agent_key(stand.agent)


def _from_document(found: Document) -> LatestStand:
    return LatestStand(found.key, str(found.fields["place"]), str(found.fields["about"] or found.key))
