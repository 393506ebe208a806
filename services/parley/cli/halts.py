"""What holds a debate up or ends it early, in words."""

from datetime import UTC
from typing import Final

from parley.cli.naming import command
from parley.client import DebateEvent
from parley.client.events import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    LimitReached,
    WaitFinished,
    WaitStarted,
)

__all__ = ["answer_hint", "ending_text", "halt_text"]

_ENDINGS: Final = {
    "total_timeout": "ended early by its time limit",
    "token_budget": "ended early by its budget of tokens",
    "cost_budget": "ended early by its budget of money",
}


def ending_text(ended_by: str) -> str:
    """`ended early by its time limit`."""
    return _ENDINGS.get(ended_by, f"ended early: {ended_by}")


def answer_hint(debate_id: str, checkpoint: str, server: str | None) -> str:
    """`parley continue ID --checkpoint KEY (or …)`: the command that ends a checkpoint, and others that do."""
    at = f" --server {server}" if server is not None else ""
    return f"{command()} continue {debate_id} --checkpoint {checkpoint}{at} (or answer, approve, guide, end)"


def halt_text(event: DebateEvent) -> str | None:  # noqa: PLR0911 (a case a kind)
    """One line on a limit, a wait or a checkpoint; None for any other event."""
    match event.payload:
        case LimitReached(limit="round_timeout", round=number, used=used):
            return (
                f"round {number}: its limit has passed after {used:.0f} s; it goes on without whoever is late"
            )
        case LimitReached(limit=limit):
            return f"{ending_text(limit)}; only the answer is still asked for"
        case WaitStarted(reason=reason, message=message, agent=agent, phase=phase, until=until):
            return f"waiting for {agent} in {phase} until {until.astimezone(UTC):%H:%M:%S} UTC: {reason}: {message}"
        case WaitFinished():
            return "trying again"
        case CheckpointOpened(text=text, until=until):
            return (
                f"waiting for a person until {until.astimezone(UTC):%H:%M:%S} UTC: {' '.join(text.split())}"
            )
        case CheckpointClosed(wish=wish, text=text):
            return f"a person said {wish}: {' '.join(text.split())}" if text else f"a person said {wish}"
        case CheckpointExpired():
            return "nobody came in time"
        case _:
            return None
