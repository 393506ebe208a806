"""The commands that keep and remove debates, and their options."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from parley.cli.execute import execute
from parley.cli.input.parameters import DebateId, debate_argument, server_option

__all__ = ["STORAGE_COMMANDS"]

_PATH: Final = click.Path(path_type=Path)
_server = server_option("orchestrator")


@click.command()
@debate_argument
@click.option("--ratings", is_flag=True, help="Also take its match away from the ratings of its agents.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask. Needed where nobody can be asked.")
@_server
def delete(debate_id: str, ratings: bool, yes: bool, server: str | None) -> None:  # noqa: FBT001
    """Delete a debate for good: its log, and what memory kept of it."""
    from parley.cli.commands.keep import delete_debate

    execute(delete_debate(server, debate_id, ratings=ratings, is_sure=yes))


@click.command()
@click.argument("file", type=_PATH)
@click.argument("debate_ids", metavar="[ID]...", type=DebateId(), nargs=-1)
@_server
def export(file: Path, debate_ids: Sequence[str], server: str | None) -> None:
    """Write all debates, or those named, into a ZIP file: events and reports."""
    from parley.cli.commands.keep import export_debates

    execute(export_debates(server, file, debate_ids))


@click.command()
@click.argument("folder", type=_PATH)
def backup(folder: Path) -> None:
    """Copy the data on this machine into a new folder, also while Parley runs."""
    from parley.cli.commands.keep import back_up_data

    execute(back_up_data(folder))


@click.command()
@click.argument("folder", type=_PATH)
def restore(folder: Path) -> None:
    """Put a backup back, where this machine holds no data."""
    from parley.cli.commands.keep import restore_data

    execute(restore_data(folder))


STORAGE_COMMANDS: Final = (delete, export, backup, restore)
