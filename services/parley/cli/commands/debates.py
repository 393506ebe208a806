"""The commands about stored debates: list them, show or watch one, print its report, give feedback."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Self

import grpc

from parley.cli.command_name import suggest
from parley.cli.commands.checkpoint_prompts import CheckpointPrompter
from parley.cli.commands.connection import connect, connect_orchestrator, find_debate_id, open_client
from parley.cli.commands.pages import take_first
from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.cli.person import can_ask
from parley.cli.printing import print_field, print_line, print_text, say
from parley.cli.terminal.checkpoints import Checkpoint, answer_hint
from parley.cli.terminal.debate_overview import feedback_text, overview_lines
from parley.cli.terminal.event_lines import contribution_text, event_lines
from parley.cli.terminal.files import check_output_path, write_file
from parley.cli.terminal.markdown import print_indented, print_markdown
from parley.cli.terminal.message_json import json_value, message_to_json, message_to_json_line, to_json
from parley.cli.terminal.progress import DebateProgress, advance
from parley.cli.terminal.tables import debate_rows, is_narrow, print_table
from parley.client import Debate, Event, ParleyClient, ParleyError, event_kind
from parley.runtime.printable import printable


async def list_debates(
    server: str | None,
    limit: int,
    *,
    as_json: bool,
    format_name: str | None = None,
    labels: Sequence[tuple[str, str]] = (),
) -> None:
    """Print debates, newest first; only those of `format_name` and with all `labels`, if these are given."""
    async with connect_orchestrator(server) as (link, parley):
        listed = parley.list(page_size=min(limit, 200), format_name=format_name or "", labels=dict(labels))
        found = await take_first(listed, limit)
    if as_json:
        print_text(to_json([json_value(each) for each in found]))
        return
    print_table(debate_rows(found, interrupted=link.alone, narrow=is_narrow()))
    if not found:
        say("No such debate is kept." if format_name or labels else "No debate is kept yet.")


async def show(server: str | None, debate_id: str, *, as_json: bool) -> None:
    """Print the state of a debate and its answer."""
    async with connect_orchestrator(server) as (link, parley):
        debate = await parley.get(await find_debate_id(parley, debate_id))
    if as_json:
        print_text(message_to_json(debate))
    else:
        checkpoint = Checkpoint(debate.waiting.checkpoint, debate.waiting)
        waits = bool(checkpoint.key) and not link.alone
        hint = answer_hint(debate.id, checkpoint, server) if waits else ""
        for line in overview_lines(debate, hint, alone=link.alone, server=server):
            print_field(line)
        if debate.answer:
            print_markdown("\n" + debate.answer.rstrip("\n") + "\n")


async def watch(server: str | None, debate_id: str, after: int, *, quiet: bool, as_json: bool) -> None:
    """Print events, and unless `quiet` each contribution as a whole, until the debate ends.

    Ask the user what its checkpoints ask.
    """
    async with connect(server, purpose="records") as link, open_client(link) as parley:
        debate = await parley.get_summary(await find_debate_id(parley, debate_id))
        # No system runs the debates of a store that this process alone has open: nothing comes after the recorded events.
        end = debate.last_sequence if link.alone else None
        if end is not None and after >= end:
            return
        asks = not (as_json or link.alone) and can_ask() and sys.stdout.isatty()
        async with _WatchPrompter(parley, debate, after, asks=asks) as asking:
            async for each in parley.watch(debate.id, after):
                assert isinstance(each, Event)  # no text was asked for
                await asking.before_event(each)
                if as_json:
                    print_text(message_to_json_line(each))
                else:
                    _print_event(each, debate.id, server, quiet=quiet)
                sys.stdout.flush()
                asking.after_event(each)
                if each.sequence == end:
                    if event_kind(each) not in {"closed", "debate_failed"}:
                        resume = suggest(f"debate --resume {debate.id}", server)
                        say(f"Nothing runs this debate now; go on with: {resume}")
                    break


class _WatchPrompter:
    """Asks the user what checkpoints ask, once all recorded events were shown."""

    def __init__(self, parley: ParleyClient, debate: Debate, after: int, *, asks: bool) -> None:
        waits = Checkpoint(debate.waiting.checkpoint, debate.waiting) if debate.waiting.checkpoint else None
        self._asker = CheckpointPrompter(parley, debate.id, nullcontext)
        self._recorded = debate.last_sequence
        self._progress = DebateProgress(checkpoint=waits if after >= self._recorded else None)
        self._asks = asks

    async def __aenter__(self) -> Self:
        await self._asker.__aenter__()
        if self._asks:
            self._asker.ask_if_open(self._progress.checkpoint)
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self._asker.__aexit__(*raised)

    async def before_event(self, event: Event) -> None:
        self._progress = advance(self._progress, event)
        await self._asker.before_event(event, self._progress.checkpoint)

    def after_event(self, event: Event) -> None:
        if self._asks and event.sequence >= self._recorded:
            self._asker.ask_if_open(self._progress.checkpoint)


def _print_event(event: Event, debate_id: str, server: str | None, *, quiet: bool) -> None:
    for line in event_lines(event, debate_id, server):
        print_line(line)
    text = "" if quiet else contribution_text(event)
    if text:
        print_indented(text)


async def report(server: str | None, debate_id: str, output: Path | None, *, as_html: bool) -> None:
    """Print a debate's report as Markdown or HTML, or write it to the file."""
    if output is not None:
        check_output_path("--output", output)
    async with connect_orchestrator(server) as (_, parley):
        text = await parley.get_report(await find_debate_id(parley, debate_id))
    if as_html:
        from parley.runtime.html_page import render_page  # heavy: no other command needs it

        text = render_page(text)
    if output is None:
        print_text(text if text.endswith("\n") else f"{text}\n")
    else:
        write_file(output, printable(text))
        say(f"Report: {output}")


async def show_analysis(server: str | None, debate_id: str, *, as_json: bool) -> None:
    """Print what the answer of a debate rests on, where its agents disagree, and what changed minds."""
    async with connect_orchestrator(server) as (_, parley):
        found = await parley.get_analysis(await find_debate_id(parley, debate_id))
    if as_json:
        print_text(message_to_json(found))
    else:
        print_markdown(f"{found.markdown}\n")


async def submit_feedback(
    server: str | None, debate_id: str, value: int, message: str, *, as_json: bool
) -> None:
    """Record feedback on a debate and print it. Raise CommandError."""
    async with connect_orchestrator(server, "ratings") as (_, parley):
        found = await find_debate_id(parley, debate_id)
        try:
            feedback = await parley.submit_feedback(found, value, message)
        except ParleyError as error:
            if error.code == grpc.StatusCode.INVALID_ARGUMENT and error.violations:
                bad = (f"--{each.field}: {each.description}" for each in error.violations)
                raise CommandError("; ".join(bad), INVALID_ARGUMENTS) from None
            raise
    if as_json:
        print_text(to_json({"debate_id": found, **json_value(feedback)}))
    else:
        print_line(f"Recorded for {found}: {feedback_text(feedback)}")
