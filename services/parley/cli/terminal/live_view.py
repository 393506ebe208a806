"""The live view of a debate: its progress, and a panel for each agent of the present phase with its position and its text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from parley.cli.terminal.agent_text import latest_words, progress_text, text_lines
from parley.cli.terminal.event_lines import status_line
from parley.cli.terminal.progress import (
    AgentProgress,
    AgentsProgress,
    DebateProgress,
    PhaseProgress,
)
from parley.runtime.agent_names import Names
from parley.runtime.clock import Clock
from parley.runtime.debaters import Debaters
from parley.runtime.printable import picture_text
from parley.runtime.work_words import work_text

if TYPE_CHECKING:  # heavy: only a terminal needs it
    from rich.console import RenderableType
    from rich.text import Text

_MIN_COLUMN: Final = 60
_MAX_COLUMN: Final = 104
"""Columns of a panel at least, if several are side by side, and at most: longer lines are hard to read."""
_MIN_PANEL: Final = 4
"""Lines of a panel at least, its border counted."""
_MIN_HEIGHT: Final = 12
"""Lines of a terminal at least for the question to be shown."""
_NAME_WIDTH: Final = 20


class PanelGrid(Struct, frozen=True):
    """The arrangement of panels.

    Attributes:
        columns: Panels side by side.
        height: Lines of a panel; 1: one line per agent, without panels.
    """

    columns: int
    height: int


def arrange_panels(agents: int, width: int, height: int) -> PanelGrid:
    """Return the arrangement for a number of agents, columns and lines: as many panels side by side as fit."""
    columns = max(min(width // _MIN_COLUMN, agents), 1)
    each = height // -(-agents // columns) if agents else height
    return PanelGrid(columns, each) if each >= _MIN_PANEL else PanelGrid(1, 1)


class LiveView:
    """Renders the state of a debate; of earlier pictures only the spinner is kept."""

    def __init__(self, clock: Clock) -> None:
        """Begin to count the time that is shown."""
        from rich.spinner import Spinner

        self._clock = clock
        self._began = clock.monotonic()
        self._spinner = Spinner("dots")
        self._names = Debaters().names

    def render(
        self,
        question: str,
        progress: DebateProgress,
        agents: AgentsProgress,
        width: int,
        height: int,
        names: Names,
    ) -> "RenderableType":
        """Return the picture for a terminal of this width and height, which leaves the last line free.

        `question` is what is debated; empty before the first event. `names` are those of the agents.
        """
        from rich.console import Group

        self._names = names
        lines: list[RenderableType] = [*self._header(question, progress, height)]
        room = height - 1 - len(lines)
        now, others = _split_by_phase(progress, agents)
        grid = arrange_panels(len(now), width, room - len(others))
        if grid.height > 1:
            lines += self._panels(now, grid, width)
            lines += self._agent_lines(others, len(others))
        else:
            lines += self._agent_lines([*now, *others], room)
        return Group(*lines[: max(height - 1, 1)] if grid.height == 1 else lines)

    def _header(self, question: str, progress: DebateProgress, height: int) -> "Sequence[Text]":
        status = _cut(status_line(progress, self._clock.monotonic() - self._began), "bold")
        parts = [f"{each.name} {each.count}" for each in _sort_phases(progress)]
        # Work of no agent has no panel.
        parts += [work_text(each.work) for each in progress.working.values() if not each.work.agent_id]
        lines = (status, _cut(f"  {' · '.join(parts)}")) if parts else (status,)
        if not question or height < _MIN_HEIGHT:
            return lines
        return (_cut(question, "italic"), *lines)

    def _panels(self, agents: Sequence[AgentProgress], grid: PanelGrid, width: int) -> "list[RenderableType]":
        from rich.table import Table

        each_width = min(width // grid.columns, _MAX_COLUMN)
        rows: list[RenderableType] = []
        for first in range(0, len(agents), grid.columns):
            row = Table.grid()
            in_row = agents[first : first + grid.columns]
            for _ in in_row:
                row.add_column(width=each_width)
            row.add_row(*(self._panel(each, each_width, grid.height) for each in in_row))
            rows.append(row)
        return rows

    def _panel(self, agent: AgentProgress, width: int, height: int) -> "RenderableType":
        from rich.console import Group
        from rich.panel import Panel
        from rich.segment import SegmentLines

        inside, room = max(width - 4, 1), height - 2
        head = (
            [_cut(f"→ {self._names.put_in(agent.position)}", "italic")] if agent.position and room > 1 else []
        )
        coming = progress_text(agent)
        head += [_cut(coming, "dim")] if coming else []
        lines = text_lines(agent, inside, room - len(head), self._names) if room > len(head) else ()
        return Panel(
            Group(*head, SegmentLines(lines, new_lines=True)),
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

    def _agent_lines(self, agents: Sequence[AgentProgress], room: int) -> "list[RenderableType]":
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
        parts = [part for part in (_activity_text(agent), latest_words(agent, self._names)) if part]
        return _cut(f"{sign} {agent.id[:width].ljust(width)}  {' · '.join(parts)}")


def _split_by_phase(
    progress: DebateProgress, agents: AgentsProgress
) -> tuple[Sequence[AgentProgress], Sequence[AgentProgress]]:
    """Return the agents of the present phases, which get panels, and the others; all of them are the former if no phase has any."""
    shown = [each for each in agents.values() if each.debates or each.steps]
    now = [each for each in shown if each.steps or _is_in_open_phase(progress, each)]
    return (now, [each for each in shown if each not in now]) if now else (shown, ())


def _is_in_open_phase(progress: DebateProgress, agent: AgentProgress) -> bool:
    work = agent.latest_work
    return any(each.is_of(work.activity, work.round) for each in progress.phases)


def _sort_phases(progress: DebateProgress) -> Sequence[PhaseProgress]:
    """Return the open phases, those that are worked at first, and of these the latest."""
    works = [each.work for each in progress.working.values()]

    def is_active(phase: PhaseProgress) -> bool:
        return any(phase.is_of(work.activity, work.round) for work in works)

    return sorted(progress.phases, key=is_active)[::-1]


def _activity_text(agent: AgentProgress) -> str:
    """Return `criticizes bo, cy`, or the latest activity."""
    if not agent.steps:
        return agent.latest_phase
    targets: dict[str, list[str]] = {}
    for step in agent.steps.values():
        targets.setdefault(step.work.doing or step.work.activity, []).append(step.work.target_agent_id)
    return "; ".join(f"{doing} {', '.join(filter(None, whom))}".rstrip() for doing, whom in targets.items())


def _cut(text: str, style: str = "") -> "Text":
    from rich.text import Text

    return Text(" ".join(picture_text(text).splitlines()), style, no_wrap=True, overflow="ellipsis")
