"""How long debates are kept that rest."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Self

from msgspec import Struct, field

from parley.runtime.comma_lists import split_list


class Retention(Struct, frozen=True):
    """Days that a debate is kept after its last change; 0: for ever.

    Attributes:
        days: For tenants that are not named.
        days_of: For tenants by name.
    """

    days: float = 0.0
    days_of: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def parse(cls, days: float, tenants: str) -> Self:
        """Parse `TENANT=DAYS,…`, with a default. Raises ValueError if the text has another form."""
        found: dict[str, float] = {}
        for part in split_list(tenants):
            tenant, _, kept = part.partition("=")
            if not tenant or not kept.replace(".", "", 1).isdecimal():
                raise ValueError(f"{part!r} is not TENANT=DAYS, such as acme=30")
            if tenant in found:
                raise ValueError(f"{tenant!r} is named twice")
            found[tenant] = float(kept)
        return cls(days, found)

    def for_tenant(self, tenant: str) -> timedelta | None:
        """Return how long a tenant's debates are kept; None for ever."""
        days = self.days_of.get(tenant, self.days)
        return timedelta(days=days) if days else None
