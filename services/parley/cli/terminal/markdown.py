"""Markdown, rendered on a terminal and unchanged elsewhere."""

import sys
import textwrap
from typing import TYPE_CHECKING, Final, TextIO

from parley.cli.person import can_redraw
from parley.cli.printing import print_text, say, say_text
from parley.runtime.printable import printable, printable_line

if TYPE_CHECKING:  # heavy: only a terminal needs it
    from markdown_it.token import Token
    from rich.console import Console
    from rich.markdown import Markdown

_MAX_WIDTH: Final = 100
"""Longer lines are hard to read, however wide the terminal is."""
_INDENT: Final = 4


def print_markdown(text: str) -> None:
    """Print CommonMark on stdout: rendered on a terminal that can show it, unchanged elsewhere."""
    if not can_redraw(sys.stdout):  # a pipe may end at a terminal too
        print_text(text)
    else:
        console = _console()
        console.print(_markdown(printable(text)), width=_width(console))


def show_markdown(text: str) -> None:
    """Print CommonMark on stderr, between blank lines: rendered on a terminal that can show it, unchanged elsewhere."""
    plain = printable(text).strip("\n")
    if not can_redraw(sys.stderr):
        say_text(f"\n{plain}\n\n")
    else:
        console = _console(sys.stderr)
        console.print("", _markdown(plain), "", width=_width(console))
    sys.stderr.flush()


def print_indented(text: str) -> None:
    """Print CommonMark on stdout, indented and with a blank line after it."""
    if not can_redraw(sys.stdout):
        print_text(f"{textwrap.indent(printable(text), ' ' * _INDENT)}\n\n")
        return
    from rich.padding import Padding

    console = _console()
    console.print(
        Padding(_markdown(printable(text)), (0, 0, 1, _INDENT), expand=False), width=_width(console)
    )


def print_footer(text: str) -> None:
    """Print one line about the text on stdout: below it on a terminal, on stderr elsewhere."""
    line = printable_line(text)
    if not sys.stdout.isatty():
        sys.stdout.flush()
        say(line)
    elif not can_redraw(sys.stdout):
        print_text(f"\n{line}\n")
    else:
        console = _console()
        console.print()
        console.print(line, style="dim", markup=False, highlight=False, width=_width(console))


def _console(stream: TextIO | None = None) -> "Console":
    from rich.console import Console

    return Console(file=stream or sys.stdout)


def _width(console: "Console") -> int:
    return min(console.width, _MAX_WIDTH)


def _markdown(text: str) -> "Markdown":
    from markdown_it import MarkdownIt
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import Heading, Markdown

    class LeftHeading(Heading):
        """A heading at the left, without a box."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            heading = self.text.copy()
            heading.justify = "left"
            heading.stylize("bold underline" if self.tag in {"h1", "h2"} else "bold")
            yield heading

    class LeftMarkdown(Markdown):
        elements = {**Markdown.elements, "heading_open": LeftHeading}  # noqa: RUF012 (as in the class above it)

    rendered = LeftMarkdown(text, code_theme="ansi_dark", hyperlinks=False)
    # Parsed again without HTML, since tags in an answer are part of its text and would not be shown.
    reading = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    rendered.parsed = _clean(reading.parse(text))
    return rendered


def _clean(tokens: "list[Token]") -> "list[Token]":
    """Remove characters that must not reach a terminal; an entity such as `&#x202e;` becomes one only when it is parsed."""
    for token in tokens:
        token.content = printable(token.content)
        token.attrs = {
            name: printable(value) if isinstance(value, str) else value for name, value in token.attrs.items()
        }
        _clean(token.children or [])
    return tokens
