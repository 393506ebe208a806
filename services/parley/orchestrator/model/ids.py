"""Debate ids: `deb-YYYYMMDD-HHMMSS-` and 8 base-32 characters, so that they sort by age and can be read aloud."""

import secrets  # noqa: TID251 (of a debate that begins)
from datetime import UTC, datetime

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def new_debate_id(now: datetime) -> str:
    """Return a new id for a debate accepted now (UTC)."""
    letters = (_ALPHABET[each % len(_ALPHABET)] for each in secrets.token_bytes(8))
    return f"deb-{now:%Y%m%d-%H%M%S}-{''.join(letters)}"


def creation_time(debate_id: str) -> datetime:
    """Return when the debate of an id was accepted, to the second. Raises ValueError for what is no such id."""
    return datetime.strptime(debate_id[:19], "deb-%Y%m%d-%H%M%S").replace(tzinfo=UTC)
