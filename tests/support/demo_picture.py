"""The picture of `parley demo` in README: `python -m tests.support.demo_picture` makes it.

It is what the command shows on a terminal in the middle of the debate, drawn by the command's own code.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, RenderableType
from rich.text import Text

from parley.cli.commands.demo import timed_items
from parley.cli.terminal.display import DisplayState, _LiveDisplay
from parley.client import Event
from parley.example import read_example
from tests.support.manual_clock import ManualClock

PICTURE: Final = Path(__file__).parent.parent.parent / "docs" / "demo.svg"
_SECONDS: Final = 2.8
"""The moment, from the beginning: the agents criticize each other's proposals."""
_COLUMNS: Final = 122
_LINES: Final = 24
"""The size of the terminal. The command line stands on its first screen, and is in the picture all the same."""
_FONTS: Final = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'
"""Fonts that are there: GitHub loads none for a picture."""


def draw_demo() -> str:
    """Return the picture as SVG; the same each time."""
    console = Console(
        file=io.StringIO(),
        record=True,
        force_terminal=True,
        color_system="truecolor",
        no_color=False,
        width=_COLUMNS,
        height=_LINES,
    )
    for shown in _screen():
        console.print(shown)
    drawn = console.export_svg(title="", code_format=_svg_form(), unique_id="demo")
    return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines())


def _screen() -> Iterator[RenderableType]:
    """Yield what the terminal shows, from top to bottom."""
    example = read_example()
    yield Text("$ parley demo", "bold")
    clock = ManualClock()
    display = _LiveDisplay(DisplayState(), clock)
    clock.advance(_SECONDS)
    for at, seen in timed_items(example.events):
        if at > _SECONDS:
            break
        if isinstance(seen, Event):
            display.show(seen)
        else:
            display.show_text(seen)
    yield display.painter.frame(_COLUMNS, _LINES)


def _svg_form() -> str:
    """Return rich's form of an SVG without what it loads from elsewhere."""
    form = re.sub(r" *@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    form = re.sub(r" *<!--.*?-->\n", "", form)
    return form.replace("Fira Code, monospace", _FONTS)


if __name__ == "__main__":
    PICTURE.write_text(draw_demo(), encoding="utf-8")
