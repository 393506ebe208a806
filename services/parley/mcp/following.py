"""Follow a debate until it ends or waits for a person, with progress all the way."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Final

from msgspec import Struct

from parley.client import Event, ParleyClient, event_kind, event_payload
from parley.mcp.results import cut_line
from parley.runtime.work_words import (
    TRYING_AGAIN,
    limit_text,
    phase_text,
    trickster_text,
    wait_text,
    work_text,
)
from parley.v1.event_pb2 import (
    CheckpointOpened,
    LimitReached,
    PhaseEntered,
    PhaseStarted,
    RoundsEnded,
    RoundStarted,
    StepFailed,
    StepStarted,
    StepSucceeded,
    TricksterChecked,
    WaitFinished,
    WaitStarted,
    Warned,
)

SILENT_SECONDS: Final = 10.0
"""Clients give a call up if nothing comes for long, often a minute; a model may take longer."""
_ENDS: Final = frozenset({"concluded", "debate_failed", "paused"})

Report = Callable[[float, str], Awaitable[None]]
"""Sends a progress notification: a number larger than the one before, and what happens."""


class Stop(Struct, frozen=True):
    """Why the following stopped: after which event, and the key of the checkpoint that it opened, if it did."""

    sequence: int
    checkpoint: str = ""


class Progress:
    """Progress of one call: each notification has a larger number than the one before, and none is far from the next."""

    def __init__(self, report: Report, silent_seconds: float = SILENT_SECONDS) -> None:
        self._report = report
        self._silent_seconds = silent_seconds
        self._sent = 0
        self._text = "the debate begins"
        self._news = asyncio.Event()

    async def send(self, text: str) -> None:
        """Send what happens."""
        self._text = text
        self._news.set()
        await self._send()

    @asynccontextmanager
    async def keep_alive(self) -> AsyncIterator[None]:
        """Send the last text again while nothing happens in the block."""
        task = asyncio.create_task(self._repeat())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _repeat(self) -> None:
        while True:
            self._news.clear()
            try:
                async with asyncio.timeout(self._silent_seconds):
                    await self._news.wait()
            except TimeoutError:
                await self._send()

    async def _send(self) -> None:
        self._sent += 1
        await self._report(self._sent, self._text)


async def follow_debate(parley: ParleyClient, debate_id: str, after: int, progress: Progress) -> Stop:
    """Follow the debate from the event after `after` until it ends, pauses or asks a person. Raise ParleyError."""
    last = after
    async with progress.keep_alive(), aclosing(parley.watch(debate_id, after)) as events:
        async for event in events:
            assert isinstance(event, Event)
            last = event.sequence
            text = describe_event(event)
            if text:
                await progress.send(text)
            if event_kind(event) == "checkpoint_opened":
                return Stop(last, event.key)
            if event_kind(event) in _ENDS:
                break
    return Stop(last)


def describe_event(event: Event) -> str:  # noqa: C901, PLR0911, PLR0912 (a case a kind)
    """Return what happens, in a line; empty if it is not worth one."""
    match event_payload(event):
        case RoundStarted(number=number, total=total):
            return f"round {number}/{total}"
        case PhaseStarted(activity=activity, title=title, round=number, expected=expected):
            return cut_line(f"{phase_text(title or activity, number)}: {expected} to come")
        case PhaseEntered(name=name):
            return cut_line(name)
        case StepStarted(work=work):
            return cut_line(work_text(work))
        case StepSucceeded(work=work):
            return cut_line(f"{work_text(work)}: done") if work.agent_id else ""
        case StepFailed(work=work, message=message):
            return cut_line(f"{work_text(work)}: failed: {message}")
        case RoundsEnded(explanation=explanation):
            return cut_line(f"rounds ended: {explanation}")
        case Warned(message=message):
            return cut_line(f"warning: {message}")
        case TricksterChecked(finding=finding):
            return cut_line(trickster_text(finding))
        case LimitReached() as reached:
            return cut_line(limit_text(reached))
        case WaitStarted() as started:
            return cut_line(wait_text(started))
        case WaitFinished():
            return TRYING_AGAIN
        case CheckpointOpened():
            return "waits for a person"
        case _:
            return event_kind(event).replace("_", " ") if event_kind(event) in _ENDS else ""
