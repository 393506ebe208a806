"""Following a debate until it ends, and pausing it on Ctrl-C."""

import asyncio
from collections.abc import Callable
from typing import Final

import grpc

from parley.cli.commands.interrupts import Interrupts
from parley.cli.commands.put_questions import Questioner, can_be_asked
from parley.cli.progress_style import Style
from parley.cli.terminal.checkpoints import Checkpoint, answer_hint
from parley.cli.terminal.display import Display, Seen, display
from parley.cli.terminal.progress_lines import resumed_text
from parley.cli.terminal.say import say
from parley.cli.translate_errors import first_of
from parley.client import Event, ParleyClient, ParleyError, TextPiece, kind_of

__all__ = ["Follower", "LeftWaitingError", "PausedError"]

_PAUSE_SECONDS: Final = 10.0
_CLOSING_SECONDS: Final = 2.0


class PausedError(Exception):
    """Ctrl-C came; the debate is left as it is."""


class LeftWaitingError(Exception):
    """Ctrl-C came while a person was asked; the debate waits on at this checkpoint."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint.key)
        self.checkpoint = checkpoint


class Follower:
    """Shows one debate, over as many systems as it takes: what was seen on one is not seen again on the next."""

    def __init__(self, interrupts: Interrupts, server: str | None, style: Style) -> None:
        self._interrupts = interrupts
        self._server = server
        self._style = style
        self._seen = Seen()
        self._last = 0
        self._recorded = 0

    @property
    def begun(self) -> bool:
        """Whether any event was seen."""
        return self._last > 0

    def pass_over(self, sequence: int) -> None:
        """Pass over events up to this one: what they come to is said in one line."""
        self._recorded = sequence

    async def follow(self, parley: ParleyClient, debate_id: str) -> None:
        """Show what comes until the debate ends, and put its questions to the person at the terminal.

        On an interrupt, pause it and raise PausedError; or, where a person is asked, raise LeftWaitingError.
        """
        with display(self._seen, self._style) as shown:
            try:
                await self._follow(parley, debate_id, shown)
            finally:
                self._seen = shown.seen

    def _take(self, event: Event, debate_id: str, shown: Display) -> None:
        self._last = event.sequence
        opened = (
            Checkpoint(event.key, event.checkpoint_opened) if event.HasField("checkpoint_opened") else None
        )
        is_asked = opened is not None and _is_asked(opened)
        shown.show(event, quiet=is_asked or event.sequence <= self._recorded)
        if event.sequence == self._recorded:
            shown.say(resumed_text(shown.seen.progress))
        is_news = event.sequence == self._recorded or (
            event.sequence > self._recorded and kind_of(event) == "checkpoint_opened"
        )
        checkpoint = shown.seen.progress.checkpoint
        if is_news and checkpoint and not _is_asked(checkpoint):
            hint = answer_hint(debate_id, checkpoint, self._server)
            shown.say(f"Waiting for a person; answer with: {hint}")

    async def _watch(
        self,
        parley: ParleyClient,
        debate_id: str,
        shown: Display,
        questioner: Questioner,
        seen: Callable[[str], None],
    ) -> None:
        """Take in every event, tell its kind, and have questions put."""
        async with questioner:
            async for event in parley.watch(debate_id, self._last, text=shown.shows_text):
                if isinstance(event, TextPiece):
                    shown.show_text(event)
                    continue
                self._take(event, debate_id, shown)
                if event.sequence >= self._recorded and can_be_asked():
                    questioner.see(shown.seen.progress.checkpoint)
                seen(kind_of(event))

    async def _follow(self, parley: ParleyClient, debate_id: str, shown: Display) -> None:
        paused, concluded = asyncio.Event(), asyncio.Event()
        questioner = Questioner(parley, debate_id, shown.aside)

        def seen(kind: str) -> None:
            if kind == "concluded":
                concluded.set()
            if kind == "paused":
                paused.set()
            else:
                paused.clear()

        watching = asyncio.create_task(self._watch(parley, debate_id, shown, questioner, seen))
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
            if questioner.asks and shown.seen.progress.checkpoint is not None:
                raise LeftWaitingError(shown.seen.progress.checkpoint)
            if not watching.done():
                shown.say("Pausing; Ctrl-C again leaves at once.")
                await self._pause(parley, debate_id, watching, paused)
            await watching
        except ExceptionGroup as group:
            raise first_of(group) from None
        finally:
            for task in (watching, interrupted, answered):
                task.cancel()
            await asyncio.wait({watching, interrupted, answered})

    async def _pause(
        self, parley: ParleyClient, debate_id: str, watching: asyncio.Task[None], paused: asyncio.Event
    ) -> None:
        """Pause the debate and raise PausedError; return if it ended first."""
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


def _is_asked(checkpoint: Checkpoint) -> bool:
    """Return whether its questions are put to whoever sits here, rather than only told."""
    return checkpoint.opened.WhichOneof("request") == "questions" and can_be_asked()
