"""A group of commands whose help has the first sentence of each, however long it is."""

from collections.abc import Iterable
from typing import Final

import click

_WHOLE: Final = 1000
"""Characters of a first sentence at most: it is wrapped, and never cut."""


class CommandGroup(click.Group):
    """Lists its commands with the whole first sentence of each."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        self.write_commands(formatter, "Commands", self.list_commands(ctx))

    def write_commands(self, formatter: click.HelpFormatter, title: str, names: Iterable[str]) -> None:
        """Write a list of these commands below a title, in columns as wide as in every other list of the group."""
        width = max(map(len, self.commands))
        with formatter.section(title):
            formatter.write_dl(
                [(name.ljust(width), self.commands[name].get_short_help_str(_WHOLE)) for name in names]
            )
