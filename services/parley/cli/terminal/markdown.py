"""Markdown, rendered on a terminal and unchanged elsewhere."""

import functools
import sys
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TextIO

from parley.cli.person import can_redraw
from parley.cli.printing import print_text, say, say_text
from parley.runtime.printable import printable, printable_line

if TYPE_CHECKING:  # heavy: only a terminal needs it
    from markdown_it import MarkdownIt
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
        console.print(to_rich(text), width=_width(console))


def show_markdown(text: str) -> None:
    """Print CommonMark on stderr, between blank lines: rendered on a terminal that can show it, unchanged elsewhere."""
    plain = printable(text).strip("\n")
    if not can_redraw(sys.stderr):
        say_text(f"\n{plain}\n\n")
    else:
        console = _console(sys.stderr)
        console.print("", to_rich(plain), "", width=_width(console))
    sys.stderr.flush()


def print_indented(text: str) -> None:
    """Print CommonMark on stdout, indented and with a blank line after it."""
    if not can_redraw(sys.stdout):
        print_text(f"{textwrap.indent(printable(text), ' ' * _INDENT)}\n\n")
        return
    from rich.padding import Padding

    console = _console()
    console.print(Padding(to_rich(text), (0, 0, 1, _INDENT), expand=False), width=_width(console))


def print_footer(*texts: str) -> None:
    """Print lines about the text on stdout: below it on a terminal, on stderr elsewhere."""
    lines = list(map(printable_line, texts))
    if not sys.stdout.isatty():
        sys.stdout.flush()
        for line in lines:
            say(line)
    elif not can_redraw(sys.stdout):
        print_text("\n" + "".join(f"{line}\n" for line in lines))
    else:
        console = _console()
        console.print()
        console.print("\n".join(lines), style="dim", markup=False, highlight=False, width=_width(console))


def plain_text(text: str) -> str:
    """Return the words of CommonMark on one line, without its markup and its blocks of code; all of it if no words are left."""
    paragraphs = [
        "".join(" " if each.type.endswith("break") else each.content for each in token.children or [])
        for token in _parser().parse(printable(text))
        if token.type == "inline"
    ]
    return printable_line(" ".join(paragraphs)) or printable_line(text)


def _console(stream: TextIO | None = None) -> "Console":
    from rich.console import Console

    return Console(file=stream or sys.stdout)


def _width(console: "Console") -> int:
    return min(console.width, _MAX_WIDTH)


def to_rich(text: str, clean: Callable[[str], str] = printable) -> "Markdown":
    """Return CommonMark as rich draws it; `clean` removes from every text in it what must not reach a terminal."""
    rendered = _left_markdown()("", code_theme="ansi_dark", hyperlinks=False)
    rendered.parsed = _clean_tokens(_parser().parse(clean(text)), clean)
    return rendered


@functools.cache
def _parser() -> "MarkdownIt":
    """Return a parser without HTML, since tags in an answer are part of its text and would not be shown."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


@functools.cache
def _left_markdown() -> "type[Markdown]":
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

    return LeftMarkdown


def _clean_tokens(tokens: "list[Token]", clean: Callable[[str], str]) -> "list[Token]":
    """Clean the texts in tokens; an entity such as `&#x202e;` becomes a character only when it is parsed."""
    for token in tokens:
        token.content = clean(token.content)
        token.attrs = {
            name: clean(value) if isinstance(value, str) else value for name, value in token.attrs.items()
        }
        _clean_tokens(token.children or [], clean)
    return tokens
