"""The live view of a debate: its progress, and a panel per agent with its position and its text in flight."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from parley.cli.terminal.event_lines import status_line
from parley.cli.terminal.progress import AgentProgress, AgentsProgress, DebateProgress, StepProgress
from parley.cli.terminal.words import work_text
from parley.runtime.clock import Clock
from parley.runtime.printable import picture_text

if TYPE_CHECKING:  # heavy: only a terminal needs it
    from rich.console import Console, RenderableType
    from rich.text import Text

_HEADER: Final = 2
_MIN_COLUMN: Final = 60
"""Columns of a panel at least, if several are side by side."""
_MIN_PANEL: Final = 4
_GOOD_PANEL: Final = 7
_MAX_PANEL: Final = 12
"""Lines of a panel, its border counted."""
_NAME_WIDTH: Final = 16


@dataclass(frozen=True, slots=True)
class PanelGrid:
    """The arrangement of panels.

    Attributes:
        columns: Panels side by side.
        height: Lines of a panel; 1: one line per agent, without panels.
    """

    columns: int
    height: int


def arrange_panels(agents: int, width: int, height: int) -> PanelGrid:
    """Return the arrangement for a number of agents, columns and lines; panels are side by side only if they must and fit."""
    most = max(width // _MIN_COLUMN, 1)
    for columns in range(1, most + 1):
        each = height // -(-agents // columns) if agents else height
        if each >= _GOOD_PANEL or (columns == most and each >= _MIN_PANEL):
            return PanelGrid(columns, min(each, _MAX_PANEL))
    return PanelGrid(1, 1)


class LiveView:
    """Renders the state of a debate; of earlier pictures only the spinner is kept."""

    def __init__(self, clock: Clock) -> None:
        """Begin to count the time that is shown."""
        from rich.spinner import Spinner

        self._clock = clock
        self._began = clock.monotonic()
        self._spinner = Spinner("dots")

    def render(
        self, progress: DebateProgress, agents: AgentsProgress, width: int, height: int
    ) -> "RenderableType":
        """Return the picture for a terminal of this width and height."""
        from rich.console import Group

        shown = [each for each in agents.values() if each.debates or each.steps]
        room = height - 1 - _HEADER
        grid = arrange_panels(len(shown), width, room)
        lines: list[RenderableType] = [self._status(progress), self._phases(progress)]
        if grid.height > 1:
            lines += self._panels(shown, grid, width)
        else:
            lines += self._compact_lines(shown, room)
        return Group(*lines[: max(height - 1, 1)] if grid.height == 1 else lines)

    def _status(self, progress: DebateProgress) -> "Text":
        return _cut(status_line(progress, self._clock.monotonic() - self._began), "bold")

    def _phases(self, progress: DebateProgress) -> "Text":
        parts = [f"{each.name} {each.done}/{each.expected}" for each in progress.phases]
        # Work of no agent has no panel.
        parts += [work_text(each.work) for each in progress.working.values() if not each.work.agent_id]
        return _cut(f"  {' · '.join(parts)}")

    def _panels(self, agents: Sequence[AgentProgress], grid: PanelGrid, width: int) -> "list[RenderableType]":
        from rich.table import Table

        each_width = width // grid.columns
        rows: list[RenderableType] = []
        for first in range(0, len(agents), grid.columns):
            row = Table.grid(expand=True)
            for _ in range(grid.columns):
                row.add_column(width=each_width)
            in_row = agents[first : first + grid.columns]
            row.add_row(*(self._panel(each, each_width, grid.height) for each in in_row))
            rows.append(row)
        return rows

    def _panel(self, agent: AgentProgress, width: int, height: int) -> "RenderableType":
        from rich.console import Group
        from rich.panel import Panel

        inside, room = max(width - 4, 1), height - 2
        lines: list[RenderableType] = []
        if agent.position and room > 1:
            lines.append(_cut(f"→ {agent.position}", "italic"))
            room -= 1
        lines += _text_lines(agent, inside, room)
        return Panel(
            Group(*lines),
            title=self._title(agent),
            title_align="left",
            height=height,
            border_style="cyan" if agent.steps else "dim",
        )

    def _title(self, agent: AgentProgress) -> "Text":
        from rich.text import Text

        role = f" ({agent.role})" if agent.role and agent.role != agent.id else ""
        title = Text(f"{agent.id}{role}", "bold")
        if agent.steps:
            title.append(" ")
            title.append(self._spinner_frame())
        doing = _activity_text(agent)
        return title.append(f" {doing}", "not bold") if doing else title

    def _spinner_frame(self) -> str:
        return str(self._spinner.render(self._clock.monotonic()))

    def _compact_lines(self, agents: Sequence[AgentProgress], room: int) -> "list[RenderableType]":
        ordered = sorted(agents, key=lambda each: not each.steps)
        fits = len(ordered) <= room
        shown = ordered if fits else ordered[: max(room - 1, 1)]
        width = min(max((len(each.id) for each in shown), default=0), _NAME_WIDTH)
        lines: list[RenderableType] = [self._agent_line(each, width) for each in shown]
        if not fits and room > 1:
            lines.append(_cut(f"  and {len(ordered) - len(shown)} more", "dim"))
        return lines

    def _agent_line(self, agent: AgentProgress, width: int) -> "Text":
        sign = self._spinner_frame() if agent.steps else " "
        text = (agent.position or agent.latest_text)[:400]
        parts = [part for part in (_activity_text(agent), text) if part]
        return _cut(f"{sign} {agent.id[:width].ljust(width)}  {' · '.join(parts)}")


def _activity_text(agent: AgentProgress) -> str:
    """Return `criticizes bo, cy`, or the latest activity."""
    if not agent.steps:
        return agent.latest_phase
    targets: dict[str, list[str]] = {}
    for step in agent.steps.values():
        targets.setdefault(step.work.doing or step.work.activity, []).append(step.work.target_agent_id)
    return ", ".join(f"{doing} {', '.join(filter(None, whom))}".rstrip() for doing, whom in targets.items())


def _text_lines(agent: AgentProgress, width: int, room: int) -> "Sequence[Text]":
    """Return the end of the text in flight, or the beginning of the latest text."""
    coming = next((each for each in reversed([*agent.steps.values()]) if each.length), None)
    if coming is None:
        text = picture_text(agent.latest_text).strip()[: 2 * width * room]
        return _wrap(text, width, "dim" if agent.steps else "")[:room]
    if coming.is_structured:
        return [_cut(_length_text(coming), "dim")]
    return _wrap(picture_text(coming.text[-2 * width * room :]).rstrip(), width)[-room:]


def _length_text(step: StepProgress) -> str:
    return f"{step.length:,} characters so far"


def _wrap(text: str, width: int, style: str = "") -> "Sequence[Text]":
    """Return the text in lines of a width; successive blank lines become one."""
    from rich.text import Text

    lines: list[Text] = []
    for line in text.split("\n"):
        if line.strip() or (lines and lines[-1].plain):
            lines += Text(line.expandtabs(4), style).wrap(_console(), width)
    return lines


@functools.cache
def _console() -> "Console":
    from rich.console import Console

    return Console(stderr=True)


def _cut(text: str, style: str = "") -> "Text":
    from rich.text import Text

    return Text(" ".join(picture_text(text).splitlines()), style, no_wrap=True, overflow="ellipsis")
