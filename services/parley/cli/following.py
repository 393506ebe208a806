"""Showing a debate until it ends, and pausing it on Ctrl-C."""

import asyncio
import os
import signal
from typing import Final, Self

import grpc

from parley.cli.display import Display, display, say
from parley.cli.failures import INTERRUPTED
from parley.cli.halts import answer_hint
from parley.cli.progress import Progress, resumed_text
from parley.client import DebateEvent, ParleyClient, ParleyError

__all__ = ["Following", "Interrupts", "PausedError"]

_PAUSE_SECONDS: Final = 10.0
_CLOSING_SECONDS: Final = 2.0


class Interrupts:
    """Ctrl-C: the first is noted, a second leaves at once."""

    def __init__(self) -> None:
        self.first = asyncio.Event()

    def __enter__(self) -> Self:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    def _interrupt(self) -> None:
        if self.first.is_set():
            os._exit(INTERRUPTED)  # what was recorded is durable; nothing waits to be written
        self.first.set()


class PausedError(Exception):
    """Ctrl-C came; the debate is left as it is."""


class Following:
    """Shows one debate, over as many systems as it takes: what was seen on one is not seen again on the next."""

    def __init__(self, interrupts: Interrupts, server: str | None) -> None:
        self._interrupts = interrupts
        self._server = server
        self._progress = Progress()
        self._last = 0
        self._recorded = 0

    @property
    def begun(self) -> bool:
        """Whether any event was seen."""
        return self._last > 0

    def pass_over(self, sequence: int) -> None:
        """Events up to this one are no news: what they come to is said in one line."""
        self._recorded = sequence

    async def follow(self, parley: ParleyClient, debate_id: str) -> None:
        """Shows what comes until the debate ends; an interrupt pauses it and raises PausedError."""
        with display(self._progress) as shown:
            try:
                await self._follow(parley, debate_id, shown)
            finally:
                self._progress = shown.progress

    def _take(self, event: DebateEvent, debate_id: str, shown: Display) -> None:
        self._last = event.sequence
        shown.show(event, quiet=event.sequence <= self._recorded)
        if event.sequence == self._recorded:
            shown.say(resumed_text(shown.progress))
        is_news = event.sequence == self._recorded or (
            event.sequence > self._recorded and event.kind == "checkpoint_opened"
        )
        if is_news and shown.progress.checkpoint:
            hint = answer_hint(debate_id, shown.progress.checkpoint, self._server)
            shown.say(f"Waiting for a person; answer with: {hint}")

    async def _follow(self, parley: ParleyClient, debate_id: str, shown: Display) -> None:
        paused, concluded = asyncio.Event(), asyncio.Event()

        async def watch() -> None:
            async for event in parley.watch(debate_id, self._last):
                if isinstance(event, DebateEvent):
                    self._take(event, debate_id, shown)
                    if event.kind == "concluded":
                        concluded.set()
                    if event.kind == "paused":
                        paused.set()
                    else:
                        paused.clear()

        watching = asyncio.create_task(watch())
        interrupted = asyncio.create_task(self._interrupts.first.wait())
        answered = asyncio.create_task(concluded.wait())
        try:
            await asyncio.wait({watching, interrupted, answered}, return_when=asyncio.FIRST_COMPLETED)
            if answered.done():
                # What follows an answer may wait for services that are away; the answer does not wait with it.
                await asyncio.wait(
                    {watching, interrupted}, timeout=_CLOSING_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                return
            if not watching.done():
                shown.say("Pausing; Ctrl-C again leaves at once.")
                await self._pause(parley, debate_id, watching, paused)
            await watching
        finally:
            for task in (watching, interrupted, answered):
                task.cancel()
            await asyncio.wait({watching, interrupted, answered})

    async def _pause(
        self, parley: ParleyClient, debate_id: str, watching: asyncio.Task[None], paused: asyncio.Event
    ) -> None:
        """Returns if the debate ended first."""
        at_rest = asyncio.create_task(paused.wait())
        try:
            async with asyncio.timeout(_PAUSE_SECONDS):
                await parley.pause(debate_id, stop_calls=True)
                await asyncio.wait({watching, at_rest}, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            say("The pause was not recorded in time.")
        except ParleyError as error:
            if error.code == grpc.StatusCode.FAILED_PRECONDITION:  # it ended first
                return
            raise
        finally:
            at_rest.cancel()
        if not watching.done():
            raise PausedError
