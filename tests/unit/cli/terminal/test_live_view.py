"""The picture of a debate: what fits, and what a person never sees."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from parley.cli.terminal.live_view import LiveView, PanelGrid, arrange_panels
from parley.cli.terminal.progress import AgentProgress, DebateProgress, PhaseProgress, StepProgress
from parley.v1.debate_pb2 import Work
from parley.v1.event_pb2 import StepStarted
from tests.support.manual_clock import ManualClock

PROGRESS = DebateProgress(
    state="running",
    round=1,
    rounds=3,
    phases=(PhaseProgress("proposal", 1, 3, 1), PhaseProgress("critique", 1, 6)),
    working={"v": StepStarted(work=Work(activity="vote", doing="comparing the first drafts"))},
)


def agent(name: str, text: str = "", *, structured: bool = False, **given: str) -> AgentProgress:
    work = Work(activity="proposal", doing="proposes", agent_id=name, round=1)
    steps = {"k": StepProgress(work, structured, (1, 1), len(text), text)} if text else {}
    return AgentProgress(name, debates=True, steps=steps, **given)


def picture(
    *agents: AgentProgress, width: int = 80, height: int = 24, progress: DebateProgress = PROGRESS
) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    shown = LiveView(ManualClock()).render(progress, {each.id: each for each in agents}, width, height)
    with console.capture() as caught:
        console.print(shown)
    return caught.get().rstrip("\n").split("\n")


def test_a_panel_an_agent_shows_its_stand_and_its_text_as_it_comes() -> None:
    ada = agent("ada", "Use one.\n\n" + "word " * 100 + "end", role="security", position="One is enough.")
    lines = picture(ada, agent("bo", latest_text="Use two.", latest_phase="round 1 proposal", role="bo"))
    assert lines[0].startswith("Round 1/3 · 0:00 · 0 tokens")
    assert lines[1] == "  proposal 1/3 · critique 0/6 · comparing the first drafts"
    panel = "\n".join(lines[2:])
    assert "─ ada (security) " in panel
    assert " proposes ─" in panel
    assert "│ → One is enough." in panel
    assert "word end" in panel
    assert "Use one." not in panel
    assert "─ bo round 1 proposal ─" in panel
    assert "│ Use two." in panel


def test_json_is_never_shown() -> None:
    lines = "\n".join(picture(agent("ada", '{"issues": [{"severity"', structured=True)))
    assert "{" not in lines
    assert "severity" not in lines
    assert "23 characters so far" in lines


def test_what_several_steps_of_an_agent_are_about_is_told_in_one() -> None:
    works = [
        Work(activity="critique", doing="criticizes", agent_id="ada", target_agent_id=each)
        for each in ("bo", "cy")
    ]
    ada = replace(agent("ada"), steps={each.target_agent_id: StepProgress(each) for each in works})
    assert "criticizes bo, cy" in "\n".join(picture(ada))


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("height", [2, 3, 5, 8, 12, 24, 60])
@pytest.mark.parametrize("count", [0, 1, 3, 7, 40])
def test_every_picture_fits_its_terminal(count: int, width: int, height: int) -> None:
    agents = [
        agent(
            f"agent-{number}",
            "漢字と👩‍👩‍👧 e\u0301 \x1b[2J\x07\u202e" * 90,
            position="立場" * 90,
            role="security",
        )
        for number in range(count)
    ]
    lines = picture(*agents, width=width, height=height)
    assert len(lines) <= max(height - 1, 2)
    assert all(Console().render_str(line, markup=False).cell_len <= width for line in lines)
    assert not any(sign in "\n".join(lines) for sign in ("\x1b[2J", "\x07", "\u202e"))


def test_many_agents_are_a_line_each_those_at_work_first() -> None:
    agents = [agent(f"a{number}", latest_text=f"Use {number}.") for number in range(20)] + [
        agent("z", "Coming.")
    ]
    lines = picture(*agents, height=12)
    assert lines[2].split()[1] == "z"
    assert lines[-1] == "  and 13 more"
    assert len(lines) == 11


@pytest.mark.parametrize(
    ("agents", "width", "height", "grid"),
    [
        (1, 80, 21, PanelGrid(1, 12)),
        (3, 80, 21, PanelGrid(1, 7)),
        (4, 80, 21, PanelGrid(1, 5)),
        (4, 120, 21, PanelGrid(2, 10)),
        (7, 80, 21, PanelGrid(1, 1)),
        (7, 120, 21, PanelGrid(2, 5)),
        (2, 120, 21, PanelGrid(1, 10)),
        (0, 80, 21, PanelGrid(1, 12)),
    ],
)
def test_agents_share_the_rows(agents: int, width: int, height: int, grid: PanelGrid) -> None:
    assert arrange_panels(agents, width, height) == grid
