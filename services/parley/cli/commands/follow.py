"""Follow a debate until it ends, and pause it on Ctrl-C."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

import grpc

from parley.cli.command_name import suggest
from parley.cli.commands.checkpoint_prompts import CheckpointPrompter, is_known_kind
from parley.cli.commands.interrupts import (
    CheckpointExpiredError,
    Interrupts,
    PausedError,
    StillWaitingError,
)
from parley.cli.person import can_ask
from parley.cli.printing import Style, say
from parley.cli.terminal.checkpoints import Checkpoint, answer_hint
from parley.cli.terminal.display import Display, DisplayState, open_display
from parley.cli.terminal.event_lines import analysis_text, resumed_text
from parley.cli.terminal.progress import advance
from parley.cli.translate_errors import first_error
from parley.client import Event, ParleyClient, ParleyError, TextPiece, event_kind, event_payload
from parley.v1.event_pb2 import AnswerAnalysed, Warned

_PAUSE_SECONDS: Final = 10.0
_SILENT_SECONDS: Final = 2.0
_CLOSING_SECONDS: Final = 120.0
"""A call may take 90 seconds."""


class Follower:
    """Shows one debate, also if one system after the other runs it: no event is shown twice.

    Attributes:
        approved: The text that the user approved at a checkpoint; empty if there is none.
    """

    def __init__(self, interrupts: Interrupts, server: str | None, style: Style) -> None:
        self._interrupts = interrupts
        self._server = server
        self._style = style
        self._seen = DisplayState()
        self._last = 0
        self._recorded = 0
        self._analysed = False
        self.approved = ""

    @property
    def has_started(self) -> bool:
        """Whether any event was shown."""
        return self._last > 0

    def skip_to(self, sequence: int) -> None:
        """Do not show events up to this one; print their state in one line instead."""
        self._recorded = sequence

    async def follow(self, parley: ParleyClient, debate_id: str) -> None:
        """Show the debate until it ends, and ask the user what its checkpoints ask.

        On an interrupt, pause it and raise PausedError, or raise StillWaitingError if the user is being asked. Raise
        CheckpointExpiredError if a checkpoint expired.
        """
        with open_display(self._seen, self._style) as shown:
            try:
                await self._watch_until_end(parley, debate_id, shown)
            finally:
                self._seen = shown.state

    async def wait_until_closed(self, parley: ParleyClient, debate_id: str) -> None:
        """Wait until what follows the answer is done, two minutes at most, and print what comes of it. An interrupt ends the wait."""
        watching = asyncio.create_task(self._print_what_follows(parley, debate_id))
        interrupted = asyncio.create_task(self._interrupts.first.wait())
        tasks = {watching, interrupted}
        try:
            done, _ = await asyncio.wait(tasks, timeout=_SILENT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                doing = "Remembering the debate" if self._analysed else "Finding out what the answer rests on"
                say(f"{doing}; Ctrl-C leaves at once, and the next debate here goes on with it.")
                await asyncio.wait(tasks, timeout=_CLOSING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _print_what_follows(self, parley: ParleyClient, debate_id: str) -> None:
        async for event in parley.watch(debate_id, self._last):
            match event_payload(event) if isinstance(event, Event) else None:
                case Warned(message=message):
                    say(self._seen.debaters.names.put_in(f"warning: {message}"))
                case AnswerAnalysed(analysis=analysis):
                    self._analysed = True
                    if not analysis.missing:
                        say(f"{analysis_text(analysis)}; {suggest(f'analysis {debate_id}', self._server)}")

    def _show_event(self, event: Event, debate_id: str, shown: Display) -> None:
        self._last = event.sequence
        opened = (
            Checkpoint(event.key, event.checkpoint_opened) if event.HasField("checkpoint_opened") else None
        )
        is_asked = opened is not None and _can_ask_here(opened)
        shown.show(event, quiet=is_asked or event.sequence <= self._recorded)
        if event.sequence == self._recorded:
            shown.say(resumed_text(shown.state.progress))
        is_news = event.sequence == self._recorded or (
            event.sequence > self._recorded and event_kind(event) == "checkpoint_opened"
        )
        checkpoint = shown.state.progress.checkpoint
        if is_news and checkpoint and not _can_ask_here(checkpoint):
            hint = answer_hint(debate_id, checkpoint, self._server)
            shown.say(f"Waiting for a person; answer with: {hint}")

    async def _show_events(
        self,
        parley: ParleyClient,
        debate_id: str,
        shown: Display,
        asker: CheckpointPrompter,
        seen: Callable[[Event], None],
    ) -> None:
        """Show every event up to the answer, and ask what checkpoints ask."""
        watched = parley.watch(debate_id, self._last, text=shown.shows_text)
        async with asker, aclosing(watched):
            async for event in watched:
                if isinstance(event, TextPiece):
                    shown.show_text(event)
                    continue
                await asker.before_event(event, advance(shown.state.progress, event).checkpoint)
                self._show_event(event, debate_id, shown)
                if event.sequence >= self._recorded and can_ask():
                    asker.ask_if_open(shown.state.progress.checkpoint)
                seen(event)
                if event_kind(event) == "concluded":
                    return  # what follows the answer is printed below it, by `wait_until_closed`

    async def _watch_until_end(self, parley: ParleyClient, debate_id: str, shown: Display) -> None:
        course = _RunState(self._recorded)
        asker = CheckpointPrompter(parley, debate_id, shown.release_terminal)
        watching = asyncio.create_task(self._show_events(parley, debate_id, shown, asker, course.update))
        interrupted = asyncio.create_task(self._interrupts.first.wait())
        others = [
            asyncio.create_task(each.wait())
            for each in (course.concluded, course.checkpoint_expired, asker.left)
        ]
        try:
            await asyncio.wait({watching, interrupted, *others}, return_when=asyncio.FIRST_COMPLETED)
            if course.concluded.is_set():
                return  # the answer waits for nothing that follows it
            if asker.active_checkpoint is not None:
                raise StillWaitingError(asker.active_checkpoint)
            if course.checkpoint_expired.is_set():
                raise CheckpointExpiredError
            if not watching.done():
                shown.say("Pausing; Ctrl-C again leaves at once.")
                await self._pause(parley, debate_id, watching, course.paused)
            await watching
        except ExceptionGroup as group:
            raise first_error(group) from None
        finally:
            self.approved = asker.approved or self.approved
            for task in (watching, interrupted, *others):
                task.cancel()
            await asyncio.wait({watching, interrupted, *others})

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


class _RunState:
    """States of a debate that a task can wait for.

    Attributes:
        paused: It is paused.
        concluded: It has ended; work that follows it may still run.
        checkpoint_expired: It was paused because a checkpoint expired.
    """

    def __init__(self, recorded: int) -> None:
        """Ignore expired checkpoints up to the event `recorded`, which is older than this run."""
        self.paused, self.concluded, self.checkpoint_expired = (
            asyncio.Event(),
            asyncio.Event(),
            asyncio.Event(),
        )
        self._recorded = recorded
        self._before = ""

    def update(self, event: Event) -> None:
        """Apply an event."""
        kind = event_kind(event)
        if kind == "concluded":
            self.concluded.set()
        if kind == "paused":
            self.paused.set()
            if self._before == "checkpoint_expired" and event.sequence > self._recorded:
                self.checkpoint_expired.set()
        else:
            self.paused.clear()
        self._before = kind


def _can_ask_here(checkpoint: Checkpoint) -> bool:
    """Return whether the user here can be asked what the checkpoint asks."""
    return is_known_kind(checkpoint) and can_ask()
