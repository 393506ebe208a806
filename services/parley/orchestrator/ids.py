"""Debate ids: `deb-YYYYMMDD-HHMMSS-` and 8 base-32 characters, so that they sort by age and can be read aloud."""

import re
import secrets
from datetime import datetime

__all__ = ["AGENT_ID", "CHECKPOINT_KEY", "DEBATE_ID", "REQUEST_ID", "new_debate_id"]

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"

DEBATE_ID = re.compile(r"deb-\d{8}-\d{6}-[a-z2-7]{8}")
AGENT_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
CHECKPOINT_KEY = re.compile(r"(?=.{1,256}\Z)[a-z0-9._-]+(/[a-z0-9._-]+)*")
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


def new_debate_id(now: datetime) -> str:
    """Return a new id for a debate accepted now (UTC)."""
    return f"deb-{now:%Y%m%d-%H%M%S}-{''.join(secrets.choice(_ALPHABET) for _ in range(8))}"
