"""How the progress of a debate is shown."""

from typing import Final, Literal, get_args

__all__ = ["STYLES", "Style"]

Style = Literal["live", "lines", "none"]
"""In place with a panel an agent; an event a line; not at all."""

STYLES: Final[tuple[Style, ...]] = get_args(Style)
