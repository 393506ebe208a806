"""A moderated debate as a person holds it: on a terminal, left and taken up by another process, and its decision in a file."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import model_server
from tests.support.command import Command
from tests.support.terminal import CTRL_C, CTRL_D, Terminal

QUESTION = "Should we use Redis or PostgreSQL for caching?"
DEBATE = [
    "debate",
    QUESTION,
    "--format",
    "moderated",
    "--agents",
    "architect,security",
    "--perspectives",
    "2",
]
CHOICES = "[C]ontinue  [G]uide  [E]nd early\n> "
SECTIONS = (
    "Recommendation",
    "Dissenting View",
    "Question",
    "Points of Agreement",
    "Key Tensions",
    "Perspectives Considered",
)
SECONDS = 120.0


@pytest.fixture
def variables() -> Iterator[dict[str, str]]:
    with model_server() as url:
        yield {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test", "TERM": "xterm-256color"}


def wait_for(terminal: Terminal, text: str, times: int = 1) -> None:
    terminal.wait_until(lambda _: terminal.written.count(text) >= times, SECONDS)


@pytest.mark.timeout(400)  # five systems start, one after another
def test_a_person_guides_leaves_resumes_ends_early_and_approves_and_the_decision_stands_in_its_file(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    with Terminal(DEBATE, tmp_path, variables, columns=200) as terminal:
        wait_for(terminal, "> ")
        if CHOICES not in terminal.written:  # the moderator may have questions first
            terminal.type(CTRL_D)
        wait_for(terminal, CHOICES)
        assert "Guide: " in terminal.written, "what each choice leads to is said before"
        terminal.type(b"g\n")
        wait_for(terminal, "Your guidance:\n> ")
        terminal.type(b"Mind the otters.\n")
        wait_for(terminal, "a person said guide: Mind the otters.")
        wait_for(terminal, CHOICES, 2)
        terminal.type(CTRL_C)
        assert terminal.end(SECONDS) == 130, terminal.written
        terminal.assert_sane()
        (debate,) = set(re.findall(r"debate --resume (\S+)", terminal.written))
    assert not (tmp_path / "docs").exists()

    with Terminal(["debate", "--resume", debate], tmp_path, variables, columns=200) as terminal:
        wait_for(terminal, CHOICES)
        terminal.type(b"e\n")
        wait_for(terminal, "[A]pprove  [R]efuse\n> ")
        terminal.type(b"a\n")
        assert terminal.end(SECONDS) == 0, terminal.written
        terminal.assert_sane()
        (path,) = re.findall(r"Decision: (docs/decisions/\S+\.md)", terminal.written)
    document = (tmp_path / path).read_text()
    headings = re.findall(r"^## (.+)$", document, re.MULTILINE)
    assert [each for each in headings if each in SECTIONS] == list(SECTIONS)
    assert len(re.findall(r"^### ", document, re.MULTILINE)) == 2
    for told in (QUESTION, debate, "**Rounds:** 2", "Mind the otters.", "**Confidence:**", "**Caveats:**"):
        assert told in document

    again = Command(["debate", "--resume", debate], tmp_path, variables).end()
    assert (again.code, again.err.count(f"Decision: {path}")) == (0, 1)
    other = Command([*DEBATE, "--max-rounds", "1"], tmp_path, variables).end()
    assert other.code == 0, other.err
    assert any("without checkpoints" in line for line in other.err)
    assert (tmp_path / path).read_text() == document
    assert len(list((tmp_path / "docs" / "decisions").iterdir())) == 2
    listed = Command(["debate", "--list"], tmp_path, variables).end()
    assert (listed.code, debate in listed.out) == (0, True)


@pytest.mark.timeout(400)  # four systems start, one after another
def test_guidance_counts_once_where_command_and_system_are_killed_around_a_checkpoint(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    def kill(terminal: Terminal) -> None:
        terminal.process.kill()
        assert terminal.end(SECONDS) != 0, terminal.written

    with Terminal(DEBATE, tmp_path, variables, columns=200) as terminal:
        wait_for(terminal, "> ")
        if CHOICES not in terminal.written:
            terminal.type(CTRL_D)
        wait_for(terminal, CHOICES)
        kill(terminal)
    listed = Command(["debate", "--list"], tmp_path, variables).end()
    (debate,) = set(re.findall(r"deb-\d{8}-\d{6}-\w+", listed.out))
    resume = ["debate", "--resume", debate]
    with Terminal(resume, tmp_path, variables, columns=200) as terminal:
        wait_for(terminal, CHOICES)
        terminal.type(b"g\n")
        wait_for(terminal, "Your guidance:\n> ")
        terminal.type(b"Mind the otters.\n")
        wait_for(terminal, "a person said guide: Mind the otters.")
        kill(terminal)
    with Terminal(resume, tmp_path, variables, columns=200) as terminal:
        wait_for(terminal, CHOICES)
        terminal.type(b"e\n")
        wait_for(terminal, "[A]pprove  [R]efuse\n> ")
        kill(terminal)
    with Terminal(resume, tmp_path, variables, columns=200) as terminal:
        wait_for(terminal, "[A]pprove  [R]efuse\n> ")
        terminal.type(b"a\n")
        assert terminal.end(SECONDS) == 0, terminal.written
        (path,) = re.findall(r"Decision: (docs/decisions/\S+\.md)", terminal.written)
    document = (tmp_path / path).read_text()
    assert document.count("Mind the otters.") == 1
    assert "**Rounds:** 2" in document
    assert "; a person approved it." in document
    assert "- **Approved**" in document
