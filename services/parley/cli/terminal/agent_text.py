"""What an agent writes, in lines for its panel: the end of a text in flight, or else the beginning of its latest contribution."""

import functools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from parley.cli.terminal.markdown import to_rich
from parley.cli.terminal.progress import AgentProgress, StepProgress
from parley.cli.terminal.streamed_answer import extract_words
from parley.runtime.agent_names import Names
from parley.runtime.printable import picture_text

if TYPE_CHECKING:  # heavy: only a terminal needs it
    from rich.console import Console
    from rich.segment import Segment

Lines = Sequence[list["Segment"]]

_MAX_BLOCK: Final = 4000
"""Characters of a paragraph that are rendered: each frame renders the last one anew."""
_FENCE: Final = re.compile(r"^[ \t]*(`{3,}|~{3,})", re.MULTILINE)


def text_lines(agent: AgentProgress, width: int, room: int, names: Names) -> Lines:
    """Return at most `room` lines: of the text in flight, or of the latest contribution, dim if the agent has begun another step.

    Agents are called by their `names`.
    """
    coming = _text_in_flight(agent)
    if coming:
        return _render(names.put_in(_last_blocks(coming, width, room)), width)[-room:]
    latest = _render(names.put_in(agent.latest_text[: 2 * width * room]), width)[:room]
    return _dim_lines(latest) if agent.steps else latest


def progress_text(agent: AgentProgress) -> str:
    """Return how much of an answer came that cannot be read; empty if none, or if it can."""
    length = max((step.length for step in agent.steps.values()), default=0)
    return f"{length:,} characters so far" if length and not _text_in_flight(agent) else ""


def latest_words(agent: AgentProgress, names: Names) -> str:
    """Return on one line the end of the text in flight, or else its position or the beginning of its latest contribution."""
    coming = " ".join(names.put_in(_text_in_flight(agent)[-400:]).split())
    return f"… {coming[-100:]}" if coming else names.put_in(agent.position or agent.latest_text[:400])


def _text_in_flight(agent: AgentProgress) -> str:
    """Return the text of the latest step of which something can be read; empty if there is none."""
    return next(filter(None, map(_readable_text, reversed([*agent.steps.values()]))), "")


def _readable_text(step: StepProgress) -> str:
    return extract_words(step.text) if step.is_structured else step.text.strip()


def _last_blocks(text: str, width: int, room: int) -> str:
    """Return as many of the last blocks of Markdown as fill the lines: rendering all of a long text takes too long."""
    kept: list[str] = []
    lines = 0
    for block in reversed(_blocks(text)):
        kept.append(block[-_MAX_BLOCK:])
        lines += sum(1 + len(line) // width for line in block.split("\n"))
        if lines >= room + 2:
            break
    return "\n\n".join(reversed(kept))


def _blocks(text: str) -> list[str]:
    """Return the parts of Markdown between blank lines; a code block stays whole."""
    blocks: list[str] = []
    is_code = False
    for part in re.split(r"\n[ \t]*\n", text):
        if is_code:
            blocks[-1] += f"\n\n{part}"
        else:
            blocks.append(part)
        is_code ^= len(_FENCE.findall(part)) % 2 == 1
    return blocks


@functools.lru_cache(maxsize=64)
def _render(text: str, width: int) -> Lines:
    """Return Markdown in lines of a width, without blank ones."""
    console = _console()
    shown = to_rich(text, picture_text)
    lines = console.render_lines(shown, console.options.update(width=width), pad=False)
    return tuple(line for line in lines if any(segment.text.strip() for segment in line))


def _dim_lines(lines: Lines) -> Lines:
    from rich.segment import Segment
    from rich.style import Style

    return [[*Segment.apply_style(line, post_style=Style(dim=True))] for line in lines]


@functools.cache
def _console() -> "Console":
    from rich.console import Console

    return Console(stderr=True)
