"""The command that lists ratings."""

from typing import Final, Literal

from parley.cli.commands.connection import connect
from parley.cli.printing import print_text, say
from parley.cli.terminal.message_json import json_value, to_json
from parley.cli.terminal.table import print_table
from parley.cli.terminal.words import local_time_text
from parley.client import RatingsClient
from parley.v1.ratings_pb2 import Rating

__all__ = ["list_ratings"]

_PATIENCE: Final = 5.0


async def list_ratings(server: str | None, domain: str, *, as_json: bool) -> None:
    """Print how agents have done, best first."""
    async with (
        connect(server, purpose="ratings", what="ratings service") as link,
        RatingsClient(link.ratings or link.orchestrator, patience=_PATIENCE) as listed,
    ):
        found = [each async for each in listed.list(domain)]
    if as_json:
        print_text(to_json([json_value(each) for each in found]))
        return
    print_table(
        [
            (
                "AGENT",
                "RATING",
                "MATCHES",
                "WON",
                "DRAWN",
                "LOST",
                "JUDGED",
                "RIGHT",
                "BRIER",
                "ECE",
                "UP",
                "DOWN",
                "LAST MATCH",
            ),
            *map(_row, found),
        ]
    )
    if not found:
        say(f"No match is recorded {f'in the domain {domain}' if domain else 'yet'}.")


def _row(rating: Rating) -> tuple[str, ...]:
    matches = (rating.matches, rating.wins, rating.draws, rating.losses)
    return (
        rating.agent_id,
        f"{rating.elo:.0f}",
        *map(str, matches),
        str(rating.judged_answers),
        str(rating.right_answers),
        _share(rating, "brier_score"),
        _share(rating, "expected_calibration_error"),
        str(rating.approvals),
        str(rating.disapprovals),
        local_time_text(rating.last_match_at),
    )


def _share(rating: Rating, name: Literal["brier_score", "expected_calibration_error"]) -> str:
    return f"{getattr(rating, name):.2f}" if rating.HasField(name) else "-"
