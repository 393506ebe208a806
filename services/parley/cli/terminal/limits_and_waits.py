"""Limits, waits and checkpoints in words: what holds a debate up or ends it early."""

from typing import Final

from google.protobuf.message import Message

from parley.cli.terminal.checkpoints import closed_text, opened_text
from parley.cli.terminal.words import utc_time_text
from parley.v1.event_pb2 import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    LimitReached,
    WaitFinished,
    WaitStarted,
)

__all__ = ["ending_text", "limit_or_wait_text"]

_ENDINGS: Final = {
    "total_timeout": "ended early by its time limit",
    "token_budget": "ended early by its budget of tokens",
    "cost_budget": "ended early by its budget of money",
}


def ending_text(ended_by: str) -> str:
    """Return `ended early by its time limit`."""
    return _ENDINGS.get(ended_by, f"ended early: {ended_by}")


def limit_or_wait_text(payload: Message | None) -> str | None:  # noqa: PLR0911 (a case a kind)
    """Return one line on a limit, a wait or a checkpoint; None for any other event."""
    match payload:
        case LimitReached(limit="round_timeout", round=number, used=used):
            return (
                f"round {number}: its limit has passed after {used:.0f} s; it goes on without whoever is late"
            )
        case LimitReached(limit=limit):
            return f"{ending_text(limit)}; only the answer is still asked for"
        case WaitStarted(reason=reason, message=message, agent_id=agent, phase=phase, until=until):
            return f"waiting for {agent} in {phase} until {utc_time_text(until)}: {reason}: {message}"
        case WaitFinished():
            return "trying again"
        case CheckpointOpened() as opened:
            return opened_text(opened)
        case CheckpointClosed() as closed:
            return closed_text(closed)
        case CheckpointExpired():
            return "nobody came in time"
        case _:
            return None
