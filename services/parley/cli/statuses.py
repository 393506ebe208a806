"""Statuses of debates, in the groups that commands tell apart."""

from typing import Final

from parley.client import DebateStatus
from parley.v1.debate_pb2 import (
    DEBATE_STATUS_CANCELLED,
    DEBATE_STATUS_COMPLETED,
    DEBATE_STATUS_FAILED,
    DEBATE_STATUS_PAUSED,
    DEBATE_STATUS_PENDING,
    DEBATE_STATUS_RUNNING,
    DEBATE_STATUS_WAITING,
)

__all__ = ["ACTIVE", "ENDED", "RESUMABLE"]

ACTIVE: Final[frozenset[DebateStatus.ValueType]] = frozenset(
    {DEBATE_STATUS_PENDING, DEBATE_STATUS_RUNNING, DEBATE_STATUS_WAITING}
)
"""Somebody runs the debate, or should."""
RESUMABLE: Final[frozenset[DebateStatus.ValueType]] = frozenset({DEBATE_STATUS_PAUSED, DEBATE_STATUS_FAILED})
"""The debate rests until a person resumes it."""
ENDED: Final[frozenset[DebateStatus.ValueType]] = frozenset(
    {DEBATE_STATUS_COMPLETED, DEBATE_STATUS_CANCELLED}
)
"""Nothing comes after it."""
