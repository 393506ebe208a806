"""What the `debate:` section says of a format: one module a format, with its keys and the settings they become.

The other modules of the configuration, and the command, know formats through this registry alone. A new format is a
module here, listed in both places below.
"""

from dataclasses import dataclass
from typing import Final

from parley.config.formats.arena import ARENA, ArenaKeys
from parley.config.formats.format import Format
from parley.config.formats.moderated import MODERATED, ModeratedKeys
from parley.config.formats.panel import PANEL, PanelKeys

__all__ = ["DEFAULT", "FORMATS", "Format", "FormatKeys", "format_named"]

FORMATS: Final[tuple[Format, ...]] = (PANEL, ARENA, MODERATED)
"""The formats that have keys in the section; the first is the default."""
DEFAULT: Final = FORMATS[0]


@dataclass(frozen=True)
class FormatKeys(PanelKeys, ArenaKeys, ModeratedKeys):
    """The keys of all formats, side by side in the section; formats may share a key."""


def format_named(name: str | None) -> Format | None:
    """Return the format of `NAME` or `NAME@VERSION`, by default the first; None for one that has no keys here."""
    if not name:
        return DEFAULT
    bare = name.partition("@")[0]
    return next((each for each in FORMATS if each.name == bare), None)
