"""The slots of a replica: how many more debates it may own, and whether there is room for their documents."""

import asyncio
from collections.abc import Mapping

from parley.orchestrator.engine.document_limits import DocumentLimits
from parley.orchestrator.engine.owner import DebateOwner
from parley.orchestrator.log.debate_record import DebateRecord

_EXTRA_SHARE = 8
"""A replica has one extra slot for so many slots, for tenants that hold none."""
_MAX_IDLE = 1000
"""How many debates may wait without a slot. Each further one counts as running, since it costs heartbeats."""


class Slots:
    """What is free of the slots and of the room for documents."""

    def __init__(
        self,
        owned: Mapping[str, tuple[DebateOwner, asyncio.Task[None]]],
        most: int,
        documents: DocumentLimits,
    ) -> None:
        """Count what debates take that are `owned` now; `most` run at a time, and as many more are owned briefly."""
        self._owned = owned
        self._most = most
        self._documents = documents

    def count_free(self, tenant: str, *, brief: bool) -> int:
        """Return how many more debates of a tenant may be owned: brief ones, or ones that run."""
        alike = [debate_owner for debate_owner, _ in self._owned.values() if debate_owner.brief is brief]
        idle = 0 if brief else sum(not debate_owner.slot.is_held for debate_owner in alike)
        left = self._most - len(alike) + min(idle, _MAX_IDLE)
        if not brief and left <= 0 and self.runs_none(tenant):
            left += self._most // _EXTRA_SHARE
        return max(left, 0)

    def has_room(self, tenant: str, document_bytes: int, *, brief: bool = False) -> bool:
        """Return whether a debate of a tenant may bring documents of so many bytes."""
        owned = ((each.tenant, each.document_bytes) for each, _ in self._owned.values())
        return self._documents.has_room(owned, tenant, document_bytes, brief=brief)

    def may_own_briefly(self, record: DebateRecord) -> bool:
        """Return whether a debate may be owned for a moment."""
        has_slot = self.count_free(record.tenant, brief=True) > 0
        return has_slot and self.has_room(record.tenant, record.document_bytes, brief=True)

    def runs_none(self, tenant: str) -> bool:
        """Return whether no debate of a tenant runs here."""
        return not any(
            debate_owner.tenant == tenant and debate_owner.slot.is_held and not debate_owner.brief
            for debate_owner, _ in self._owned.values()
        )
