"""Which debates are listed."""

from dataclasses import dataclass

from parley.storage.ports import Above, Below

__all__ = ["DebateFilter"]


@dataclass(frozen=True, slots=True)
class DebateFilter:
    """Which of a tenant's debates are listed, and in which order.

    Attributes:
        statuses: They are in one of these states; empty: in any.
        formats: They are held in one of these formats, with version; empty: in any.
        since: Accepted at this time (as `DebateRecord.updated`) or later; empty: at any.
        before: Accepted before this time; empty: at any.
        labels: They have all of these, as `label_texts` makes them; empty: any.
        oldest_first: Else the newest is first.
    """

    statuses: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    since: str = ""
    before: str = ""
    labels: tuple[str, ...] = ()
    oldest_first: bool = False

    def start_condition(self, after: str) -> Above | Below:
        """Return where the search begins. A field has one condition, so that the other bound is looked at afterwards."""
        if self.oldest_first:
            return Above(max(self.since, after))
        before = min(filter(None, (self.before, after)), default="")
        return Below(before) if before else Above("")
