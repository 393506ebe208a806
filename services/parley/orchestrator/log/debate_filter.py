"""A filter for lists of debates."""

from msgspec import Struct

from parley.storage.ports import Above, Below


class DebateFilter(Struct, frozen=True):
    """Selects and orders the debates of a tenant in a list.

    Attributes:
        statuses: Status is one of these; empty: any.
        formats: Format with version is one of these; empty: any.
        since: Accepted at this time (as `DebateRecord.updated`) or later; empty: any time.
        before: Accepted before this time; empty: any time.
        labels: Has all of these labels, as `label_texts` returns them; empty: any.
        oldest_first: Order; by default the newest comes first.
    """

    statuses: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    since: str = ""
    before: str = ""
    labels: tuple[str, ...] = ()
    oldest_first: bool = False

    def start_condition(self, after: str) -> Above | Below:
        """Return the condition on `created` for a page after `after`. A search takes one bound; the caller checks the other one."""
        if self.oldest_first:
            return Above(max(self.since, after))
        before = min(filter(None, (self.before, after)), default="")
        return Below(before) if before else Above("")
