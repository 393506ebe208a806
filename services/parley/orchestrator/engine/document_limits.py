"""How many bytes of documents the debates of a replica may have at a time. Debates that find no room wait."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

_EXTRA_SHARE = 8
"""One part more in so many for tenants that hold none, so that no tenant keeps out all others."""
_BRIEF_SHARE = 4
"""The same for debates that are owned for a moment: they have ended, or only their interventions are handled."""


class DocumentLimits(Struct, frozen=True):
    """Bytes of the documents of all debates that a replica owns, and of those of one tenant; 0: no limit."""

    total: int = 0
    per_tenant: int = 0

    def has_room(self, owned: Iterable[tuple[str, int]], tenant: str, size: int, *, brief: bool) -> bool:
        """Return whether a tenant's debate with so many bytes may be owned too. `owned` are tenant and bytes of those that are.

        A debate without documents always has room, and a debate of any size if no other one has documents.
        """
        held: Counter[str] = Counter()
        for name, bytes_ in owned:
            held[name] += bytes_
        in_all, own = held.total(), held[tenant]
        if not size or not in_all:
            return True
        total = self.total
        if brief:
            total += self.total // _BRIEF_SHARE
        elif not own:
            total += self.total // _EXTRA_SHARE
        elif self.per_tenant and own + size > self.per_tenant:
            return False
        return not self.total or in_all + size <= total
