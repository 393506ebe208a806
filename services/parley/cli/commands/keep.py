"""The commands that delete, export, back up and restore debates, and wrap the keys of encrypted ones."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from parley.cli.commands.confirmation import confirm
from parley.cli.commands.connection import connect_orchestrator, find_debate_id
from parley.cli.printing import print_line
from parley.cli.terminal.files import check_output_path
from parley.cli.terminal.words import SHORT_WIDTH, to_line
from parley.client import export


async def delete_debate(server: str | None, debate_id: str, *, ratings: bool, is_sure: bool) -> None:
    """Delete a debate after the user has confirmed it. Raise CommandError."""
    async with connect_orchestrator(server, "deleting") as (_, parley):
        found = await find_debate_id(parley, debate_id)
        if not is_sure:
            question = to_line((await parley.get(found)).spec.question, SHORT_WIDTH)
            await confirm(
                f"Delete {found} for good? {question}", "Type yes to delete it.", "nothing was deleted"
            )
        finished = await parley.delete(found, ratings=ratings)
    rest = "" if finished else " Memory or ratings are away; they forget it when they are back."
    print_line(f"Deleted {found}.{rest}")


async def export_debates(server: str | None, output: Path | None, debate_ids: Sequence[str]) -> None:
    """Write debates into a ZIP file. Raise CommandError."""
    if output is not None:
        check_output_path("--output", output)
    async with connect_orchestrator(server) as (_, parley):
        named = [await find_debate_id(parley, each) for each in debate_ids]
        file = output or Path(f"{named[0]}.zip" if len(named) == 1 else "debates.zip")
        count = await export(parley, file, named)
    print_line(f"Wrote {count} debate{'' if count == 1 else 's'} to {file}.")


async def back_up_data(folder: Path) -> None:
    """Copy the data of this machine into a new folder. Raise ConfigurationError."""
    from parley.local import back_up

    names = await asyncio.to_thread(back_up, folder)
    print_line(f"Wrote {', '.join(names)} to {folder}.")


async def restore_data(folder: Path) -> None:
    """Restore a backup if this machine has no data. Raise ConfigurationError."""
    from parley.local import restore

    names = await restore(folder)
    print_line(f"Restored {', '.join(names)} from {folder}.")


async def rewrap_data_keys() -> None:
    """Wrap the data keys of this machine by the newest key. Raise ConfigurationError, and PartFailedError if some are damaged."""
    from parley.local import rewrap

    for line in await rewrap():
        print_line(line)
