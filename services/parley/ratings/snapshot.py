"""A tenant's ratings as they were after some of its matches, so that a start counts only the matches that follow.

The logs are the truth. A snapshot is what counting a part of them came to, and is written after they are durable: one that is missing, of
another version, or of another log costs a start that counts from the first match, and nothing else. It holds no match: those are read
from the log when they are asked for, a page at a time.
"""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from parley.ratings.calibration import Bin, Record
from parley.ratings.profiles import AgentProfiles
from parley.ratings.table import Page, Rating, Table
from parley.storage.ports import Collection, Fields
from parley.v1.ratings_pb2 import Relationship, Strength

SNAPSHOTS: Final = Collection(
    "snapshots", private=("ratings", "strengths", "relationships", "debates", "pages"), key_parts=1
)
"""One document a tenant, by its name."""
VERSION: Final = 2
"""Of what is written here, and of the rules by which matches are counted: another one makes all ratings anew."""
MAX_MATCHES: Final = 250_000
"""A document takes the names of so many debates; what follows is counted at each start."""


class Snapshot(Struct, frozen=True):
    """A table, and how far the logs were read for it.

    Attributes:
        sequence: Of the last entry in the log of matches; `correction_sequence`: in that of corrections.
        mark: Stands for that entry, as `mark_of` makes it.
    """

    table: Table
    sequence: int
    correction_sequence: int
    mark: str


def mark_of(entry: bytes) -> str:
    """Return what stands for an entry of a log."""
    return hashlib.blake2b(entry, digest_size=16).hexdigest()


def snapshot_to_fields(snapshot: Snapshot) -> Fields:
    """Return a snapshot as a document. Feedback is not in it: its log is read from the start."""
    table = snapshot.table
    profiles = table.profiles
    return {
        "version": VERSION,
        "sequence": snapshot.sequence,
        "correction_sequence": snapshot.correction_sequence,
        "mark": snapshot.mark,
        "ratings": [_rating_to_row(each) for each in table.all_ratings()],
        "strengths": [
            [agent, each.domain, each.phase, each.debates, each.mean_score]
            for agent, each in profiles.all_strengths()
        ],
        "relationships": [
            [
                each.agent_id,
                each.other_agent_id,
                each.debates,
                each.wins,
                each.draws,
                each.losses,
                each.agreements,
                each.disagreements,
            ]
            for each in profiles.all_relationships()
        ],
        "debates": list(table.debates()),
        "pages": [[each.sequence, dict(each.elos)] for each in table.pages],
    }


def snapshot_from_fields(fields: Fields) -> Snapshot | None:
    """Return the snapshot that a document is; None if it is of another version."""
    found: Any = fields
    if found["version"] != VERSION:
        return None
    table = Table.restore(
        ratings=map(_rating_from_row, found["ratings"]),
        profiles=AgentProfiles.restore(
            (
                (agent, Strength(domain=domain, phase=phase, debates=debates, mean_score=mean))
                for agent, domain, phase, debates, mean in found["strengths"]
            ),
            map(_relationship_from_row, found["relationships"]),
        ),
        debates=found["debates"],
        pages=[Page(int(sequence), dict(elos)) for sequence, elos in found["pages"]],
    )
    return Snapshot(table, int(found["sequence"]), int(found["correction_sequence"]), found["mark"])


def _rating_to_row(rating: Rating) -> list[Any]:
    record = rating.record
    return [
        rating.agent_id,
        rating.domain,
        rating.elo,
        rating.matches,
        rating.wins,
        rating.draws,
        rating.losses,
        rating.last_match_at.isoformat() if rating.last_match_at else None,
        [record.right, record.wrong, record.brier_sum],
        [[each.answers, each.confidence, each.right] for each in record.bins],
    ]


def _rating_from_row(row: list[Any]) -> Rating:
    agent, domain, elo, matches, wins, draws, losses, last, (right, wrong, brier_sum), bins = row
    last_match_at = datetime.fromisoformat(last) if last else None
    record = Record(right, wrong, brier_sum, tuple(Bin(*each) for each in bins))
    return Rating(agent, domain, elo, matches, wins, draws, losses, last_match_at, record=record)


def _relationship_from_row(row: Iterable[Any]) -> Relationship:
    one, other, debates, wins, draws, losses, agreements, disagreements = row
    return Relationship(
        agent_id=one,
        other_agent_id=other,
        debates=debates,
        wins=wins,
        draws=draws,
        losses=losses,
        agreements=agreements,
        disagreements=disagreements,
    )
