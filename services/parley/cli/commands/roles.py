"""The command that lists roles."""

from pathlib import Path
from typing import Final

from parley.cli.input.config_file import find_config
from parley.cli.printing import print_text
from parley.cli.terminal.message_json import to_json
from parley.cli.terminal.table import print_table

__all__ = ["list_roles"]

_BUILT_IN: Final = "built-in"


def list_roles(config_path: Path | None, *, as_json: bool) -> None:
    """Print the roles of the configuration file and of the folder beside it, then those that Parley ships."""
    from parley.local import list_roles  # heavy: the command line's help needs none of it

    found = find_config(config_path)
    own = found.roles if found is not None else ()
    roles = [(each.name, each.aliases, each.source) for each in own]
    names = {name for name, _, _ in roles}
    roles += [(name, others, _BUILT_IN) for name, others in list_roles().items() if name not in names]
    if as_json:
        told = [{"role": name, "aliases": list(others), "source": source} for name, others, source in roles]
        print_text(to_json(told))
    else:
        rows = [(name, ", ".join(others), source) for name, others, source in roles]
        print_table([("ROLE", "OTHER NAMES", "FROM"), *rows])
