"""The fenced blocks of the pages that a newcomer reads."""

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
_FENCED: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Attributes:
        page: The page's path from the root of the project.
        line: The line of its first fence, from 1.
        language: What the first fence says; empty for output and transcripts.
    """

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        """The page and line, as editors take it."""
        return f"{self.page}:{self.line}"

    @property
    def script(self) -> str:
        """The block as a shell runs it: of a console, the lines that are typed, without their prompt."""
        if self.language != "console":
            return self.text
        return "".join(f"{line[2:]}\n" for line in self.text.splitlines() if line.startswith("$ "))


def list_pages() -> list[str]:
    """Return the README and the guides, as paths from the root."""
    guides = sorted((ROOT / "docs" / "guides").glob("*.md"))
    return [
        "README.md",
        "CONTRIBUTING.md",
        "docker/README.md",
        "k8s/README.md",
        *(str(each.relative_to(ROOT)) for each in guides),
    ]


def find_blocks(page: str) -> list[Block]:
    """Return the blocks of a page, in its order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, each.start()) + 1, each[2], dedent(each[3]))
        for each in _FENCED.finditer(text)
    ]


def is_program(block: Block) -> bool:
    """Return whether a block of Python is a whole program, which imports a client, and no part of a file of ours."""
    return "from parley.client import" in block.text or "from openai import" in block.text
