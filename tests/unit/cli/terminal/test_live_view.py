"""The picture of a debate: what fits, and what a person never sees."""

import io
import json
import re
from typing import Any, Literal

import pytest
from msgspec.structs import replace
from rich.console import Console

from parley.cli.terminal.live_view import LiveView, PanelGrid, arrange_panels
from parley.cli.terminal.progress import AgentProgress, DebateProgress, PhaseProgress, StepProgress
from parley.runtime.debaters import Debaters
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


PROPOSAL = Work(activity="proposal", doing="proposes", round=1)


def agent(name: str, text: str = "", *, structured: bool = False, **given: Any) -> AgentProgress:
    steps = {"k": StepProgress(PROPOSAL, structured, (1, 1), len(text), text)} if text else {}
    return AgentProgress(name, debates=True, steps=steps, **given)


def picture(*agents: AgentProgress, **given: Any) -> list[str]:
    return draw(*agents, **given).rstrip("\n").split("\n")


def draw(
    *agents: AgentProgress,
    width: int = 80,
    height: int = 24,
    progress: DebateProgress = PROGRESS,
    question: str = "",
    color_system: Literal["truecolor"] | None = None,
) -> str:
    console = Console(
        file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=color_system
    )
    by_id = {each.id: each for each in agents}
    names = Debaters(tuple(each.id for each in agents if each.debates)).names
    shown = LiveView(ManualClock()).render(question, progress, by_id, width, height, names)
    with console.capture() as caught:
        console.print(shown)
    return caught.get()


def test_a_panel_an_agent_shows_its_stand_and_its_text_as_it_comes() -> None:
    ada = agent("ada", "Use one.\n\n" + "word " * 100 + "end", role="security", position="One is enough.")
    bo = agent("bo", latest_text="Use two.", latest_phase="round 1 proposal", latest_work=PROPOSAL, role="bo")
    lines = picture(ada, bo, height=18)
    assert lines[0].startswith("Round 1/3 · 0:00 · 0 tokens")
    assert lines[1] == "  critique 0/6 · proposal 1/3 · comparing the first drafts"
    panel = "\n".join(lines[2:])
    assert "─ ada (security) " in panel
    assert " proposes ─" in panel
    assert "│ → One is enough." in panel
    assert "word end" in panel
    assert "Use one." not in panel
    assert "─ bo round 1 proposal ─" in panel
    assert "│ Use two." in panel


def test_the_question_stands_first_where_there_is_room() -> None:
    asked = "One or two?\nSay why."
    assert picture(question=asked)[0] == "One or two? Say why."
    assert picture(question=asked, height=11)[0].startswith("Round 1/3")


def test_the_phase_that_is_worked_at_stands_first() -> None:
    work = {"k": StepStarted(work=Work(activity="proposal", agent_id="ada", round=1))}
    assert picture(progress=replace(PROGRESS, working=work))[1] == "  proposal 1/3 · critique 0/6"


def test_agents_of_an_earlier_phase_are_a_line_below_those_at_work() -> None:
    ada = agent("ada", latest_text="Use one.", latest_phase="round 1 refinement", position="One is enough.")
    lines = picture(ada, agent("judge", '{"description": "Use one.', structured=True))
    assert lines[2].startswith("╭─ judge ")
    assert lines[-1].split() == ["ada", "round", "1", "refinement", "·", "One", "is", "enough."]


def test_what_json_says_is_read_as_it_comes() -> None:
    said = {"position": "One.", "points": ["It is **cheap**.", "It is small."], "gives_up": []}
    lines = "\n".join(picture(agent("ada", json.dumps(said)[:-20], structured=True)))
    assert not any(sign in lines for sign in '{}["*')
    for words in ("Position: One.", "Points:", " • It is cheap.", " • It is small"):
        assert words in lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"issu', "6 characters so far"),
        ('{"a": [1, "x",,', "15 characters so far"),
        ('Of course:\n```json\n{"a": "A dog', "A: A dog"),
        ('{"a": "A dog\nbarks', "A: A dog barks"),
        ('{"a": "A dog."}\n```', "A: A dog."),
        ("It has no form: {", "It has no form: {"),
        ("Take this:\n```js\n{ a: 1 }\n```\nIt is short.", "It is short."),
    ],
)
def test_what_is_no_plain_json_is_read_as_far_as_it_can_be(text: str, shown: str) -> None:
    lines = "\n".join(picture(agent("ada", text, structured=True)))
    assert shown in lines
    assert '":' not in lines


def test_markdown_is_drawn_in_a_panel() -> None:
    written = (
        "# Choice\n\n| store | cost |\n|---|---|\n| **one** | 3 |\n\n1. `a` first\n\n```sql\nSELECT 1;\n```\n"
    )
    lines = [line.strip("│ ") for line in picture(agent("ada", written))]
    assert lines[3:8] == ["Choice", "store  cost", "───────────", "one    3", "1 a first"]
    assert "SELECT 1;" in lines


def test_the_end_of_a_code_block_is_code() -> None:
    written = "Look:\n\n```py\n" + "\n\n".join(f"x = **{number}**" for number in range(99))
    lines = "\n".join(picture(agent("ada", written)))
    assert "x = **98**" in lines


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


HOSTILE = (
    "\x1b]8;;https://evil.example\x1b\\[bank](https://evil.example)\x1b]8;;\x1b\\ ![pic](https://evil.example/p.png)\n\n"
    "<script>x</script> \x1b[2J\x9b5m\x07 &#x202e;&#27;[31m&ZeroWidthSpace;\u2066\n\n"
    "```\n\x1b[31m\u202e\n```\n\n[ref]: https://evil.example '\x1b[2J'\n\n| \x1b[1mA\u200b |\n|---|\n| &rlo;b |\n"
)


@pytest.mark.parametrize("text", [HOSTILE, json.dumps({"text": HOSTILE, "\x1b[5mname": [HOSTILE]})])
def test_no_text_reaches_the_terminal_but_as_words(text: str) -> None:
    given = agent("ada", text, structured=text.startswith("{"), position=HOSTILE)
    done = agent("bo", latest_text=text if text == HOSTILE else "", latest_work=PROPOSAL, position=HOSTILE)
    with_styles = draw(given, done, width=120, height=60, color_system="truecolor")
    assert re.sub(r"\x1b\[[0-9;]*m", "", with_styles).replace("\n", "").isprintable(), "nothing but colors"
    assert not set(with_styles) & set("\u202e\u2066\u200b\x9b\x07")
    assert "bank (https://evil.example)" in re.sub(r"\x1b\[[0-9;]*m", "", with_styles), (
        "a link shows where it leads"
    )


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
        (1, 80, 21, PanelGrid(1, 21)),
        (3, 80, 21, PanelGrid(1, 7)),
        (4, 80, 21, PanelGrid(1, 5)),
        (4, 120, 21, PanelGrid(2, 10)),
        (7, 80, 21, PanelGrid(1, 1)),
        (7, 120, 21, PanelGrid(2, 5)),
        (2, 120, 21, PanelGrid(2, 21)),
        (3, 200, 21, PanelGrid(3, 21)),
        (0, 80, 21, PanelGrid(1, 21)),
    ],
)
def test_agents_share_the_rows(agents: int, width: int, height: int, grid: PanelGrid) -> None:
    assert arrange_panels(agents, width, height) == grid
