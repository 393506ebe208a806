"""Entries of the ratings' logs: one by one, and the matches of a page."""

from collections.abc import Callable, Sequence
from typing import Final

from parley.ratings.match import MATCHES, Match
from parley.runtime.unreadable import report_unreadable
from parley.storage.ports import Log, Record

_PAGE: Final = 1000


async def find_entry(log: Log, name: str, sequence: int) -> bytes | None:
    """Return the entry of a log at a sequence, or None. Raise StorageError if the log cannot be read."""
    records = await log.read(name, sequence - 1, 1)
    if not records or not records[0].first <= sequence <= records[0].last:
        return None
    return records[0].entries[sequence - records[0].first]


async def read_matches(log: Log, name: str, first: int, until: int | None) -> list[Match]:
    """Return the matches from one sequence up to another, which is not included; None: to the end of the log.

    Raise StorageError if the log cannot be read.
    """
    matches: list[Match] = []

    def take(sequence: int, entry: bytes) -> None:
        if until is None or sequence < until:
            matches.append(MATCHES.validate_json(entry))

    after, most = first - 1, _PAGE if until is None else min(_PAGE, until - first)
    while records := await log.read(name, after, most):
        take_entries(name, records, after, take)
        after = records[-1].last
        if len(records) < most or (until is not None and after >= until - 1):
            break
    return matches


def take_entries(
    name: str, records: Sequence[Record], after: int, take: Callable[[int, bytes], None]
) -> None:
    """Pass the entries of records after a sequence to `take`, each with its own. One that it cannot read is skipped."""
    for record in records:
        for place, entry in enumerate(record.entries):
            if record.first + place > after:
                try:
                    take(record.first + place, entry)
                except Exception as error:  # noqa: BLE001 - one entry must not end all ratings
                    report_unreadable("ratings entry", f"{name} {record.first + place}", error)
