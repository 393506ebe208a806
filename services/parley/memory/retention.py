"""How long the operator keeps each kind of what debates leave in memory."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

from parley.memory.effects import Effect
from parley.v1.memory_pb2 import PastDebate, RecordDebateRequest

DAY: Final = 86400.0
_PAGE: Final = 100

Debates = Sequence[tuple[str, str]]
"""Tenant and debate id of each."""


class Retention(Struct, frozen=True):
    """How long one kind is kept.

    Attributes:
        days: Days since its debate concluded; 0: as long as the debate is remembered.
        list_old: Lists debates that have something of the kind and concluded before a time in seconds of Unix time, at most so many.
        end: Deletes what a debate has of the kind, by tenant and debate id.
    """

    days: float
    list_old: Callable[[float, int], Awaitable[Debates]]
    end: Callable[[str, str], Awaitable[object]]

    async def end_old(self, now: float, may_go_on: Callable[[], Awaitable[bool]]) -> None:
        """End all that is older, in pages, for as long as `may_go_on`. Raise StorageError if the store failed."""
        if not self.days:
            return
        seen: Debates = ()
        while (page := await self.list_old(now - self.days * DAY, _PAGE)) and page != seen:
            if not await may_go_on():
                return
            for tenant, debate in page:
                await self.end(tenant, debate)
            seen = page


def end_effect(effect: Effect) -> Callable[[str, str], Awaitable[None]]:
    """Return what ends a kind that is an effect of records."""

    async def end(tenant: str, debate: str) -> None:
        await effect.remove(tenant, RecordDebateRequest(debate=PastDebate(debate_id=debate)))

    return end
