"""Every fenced block of README and the guides is what it says: part of a file, a configuration, or a command that is there."""

import re
import shlex
from itertools import takewhile
from pathlib import Path
from typing import Final

import pytest

from parley.config.loading import loads
from tests.support.guides import ROOT, Block, find_blocks, is_program, list_pages

BLOCKS: Final = [block for page in list_pages() for block in find_blocks(page)]
ELIDED: Final = re.compile(r"^ *(?:#|//) …$", re.MULTILINE)
NOT_OURS: Final = (
    "rules:\n  - seriesQuery",
    "metrics:\n  enabled",
    '{\n  "mcpServers"',  # MCP clients: tests/integration/mcp/test_guide.py
    '{\n  "servers"',
    '{\n  "inputs"',
    "model_list:",  # LiteLLM: tests/integration/edge/test_chat_clients.py
)
"""The beginnings of files that other programs read."""
MADE_OF_PROMPTS: Final = (
    "prompts/security.md",
    "system.md",
    "user.md",
    "prompts/umpire.md",
    "roles/lawyer.md",
)
TARGETS: Final = set(
    re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
)


def choose(*languages: str) -> pytest.MarkDecorator:
    found = [pytest.param(block, id=block.place) for block in BLOCKS if block.language in languages]
    return pytest.mark.parametrize("block", found)


def test_each_block_says_what_it_is() -> None:
    known = {"", "console", "sh", "python", "proto", "yaml", "json", "markdown"}
    assert [block.place for block in BLOCKS if block.language not in known] == []
    untyped = [
        block.place
        for block in BLOCKS
        if not block.language and re.match(r"\$ |parley [a-z]+ [^:]*$", block.text)
    ]
    assert untyped == [], "commands are a console's"


def _lines(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _sources() -> dict[Path, str]:
    files = (path for folder in ("services", "protos", "tests") for path in (ROOT / folder).rglob("*.*"))
    return {
        path: _lines(path.read_text(encoding="utf-8")) for path in files if path.suffix in {".py", ".proto"}
    }


def test_code_that_shows_how_to_add_something_is_code_of_ours() -> None:
    sources = _sources()
    shown = [
        block
        for block in BLOCKS
        if block.language == "proto" or (block.language == "python" and not is_program(block))
    ]
    stale = [
        block.place
        for block in shown
        if not any(
            all(_lines(part) in text for part in ELIDED.split(block.text)) for text in sources.values()
        )
    ]
    assert shown
    assert stale == [], "no file has these lines"


@choose("yaml", "json")
def test_configurations_are_read_without_a_problem(block: Block, tmp_path: Path) -> None:
    if block.text.startswith(NOT_OURS):
        pytest.skip("another program reads it")
    for name in MADE_OF_PROMPTS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("# system\nYou are careful.\n", encoding="utf-8")
    found = loads(block.text, f"debate.{block.language}", tmp_path, evaluators=block.language == "json")
    unexpected = [each for each in found.notices if " section: " not in each]  # an example shows one section
    assert (unexpected, found.warnings) == ([], ())


@choose("sh", "console")
def test_targets_and_tests_that_commands_name_are_there(block: Block) -> None:
    for line in block.script.splitlines():
        if line.startswith("make "):
            words = shlex.split(line, comments=True)[1:]
            assert set(takewhile(lambda word: "=" not in word, words)) <= TARGETS, line
        for test in re.findall(r"tests/[\w/]+\.py", line):
            assert (ROOT / test).is_file(), line
