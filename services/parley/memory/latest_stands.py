"""The latest stands of agents. A process that is alone on its store keeps what it knows of them, and reads those of an agent once."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from parley.memory.stands import MAX_LATEST, POSITIONS, Stand, agent_key
from parley.storage.ports import Document, Documents, Order

_MAX_AGENTS: Final = 256
"""Whose stands a process keeps, 60 kilobytes each; those that were not asked for for longest go."""
# No two have one place; in the whole order of the index no document is read.
_LATEST_FIRST: Final = (Order("place", descending=True), Order("about", descending=True))


class LatestStands:
    """The keys of the latest stands of all agents, each with its place and with what stands for what it is about."""

    def __init__(self, documents: Documents, *, alone: bool) -> None:
        self._documents = documents
        self._alone = alone
        self._kept: OrderedDict[tuple[str, str], dict[str, Document]] = OrderedDict()
        self._changes = 0

    def knows(self, stand: Stand) -> bool:
        """Return whether the latest stands of a stand's agent are known without a read."""
        return _agent(stand) in self._kept

    def has(self, stand: Stand) -> bool:
        """Return whether a stand is known to be stored."""
        return stand.key in self._kept.get(_agent(stand), ())

    async def find(self, stand: Stand) -> Sequence[Document]:
        """Return the latest stands of a stand's agent, the latest first. Raise StorageError."""
        agent, changes = _agent(stand), self._changes
        if (kept := self._kept.get(agent)) is None:
            where = {"tenant": stand.tenant, "agent_key": agent_key(stand.agent)}
            found = await self._documents.find(
                POSITIONS, where, order=_LATEST_FIRST, limit=MAX_LATEST, fields=("place", "about")
            )
            kept = {each.key: each for each in found}
            if self._alone and changes == self._changes:  # else they may lack what was written meanwhile
                self._keep(agent, kept)
        else:
            self._kept.move_to_end(agent)
        return list(kept.values())

    def add(self, stand: Stand) -> None:
        """Note a stand that was just stored."""
        self._changes += 1
        if (kept := self._kept.get(_agent(stand))) is not None:
            added = Document(stand.key, {"place": stand.place, "about": stand.about})
            latest = sorted({**kept, stand.key: added}.values(), key=_place, reverse=True)[:MAX_LATEST]
            self._keep(_agent(stand), {each.key: each for each in latest})

    def clear(self) -> None:
        """Drop all that is known: stands were removed, as few are."""
        self._changes += 1
        self._kept.clear()

    def _keep(self, agent: tuple[str, str], latest: dict[str, Document]) -> None:
        self._kept[agent] = latest
        self._kept.move_to_end(agent)
        if len(self._kept) > _MAX_AGENTS:
            self._kept.popitem(last=False)


def _agent(stand: Stand) -> tuple[str, str]:
    return stand.tenant, agent_key(stand.agent)


def _place(known: Document) -> str:
    return str(known.fields["place"])
