"""The survivors that stay, and why."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FILE: Final = Path(__file__).with_name("explained.toml")


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a change is noticed by no test.

    Attributes:
        path: The file, from the project's folder.
        was: The line that is changed, without the spaces around it.
        now: What stands there instead; empty: whatever stands there.
        why: A sentence.
    """

    path: str
    was: str
    why: str
    now: str = ""

    def fits(self, path: Path, diff: list[str]) -> bool:
        """Whether it explains a mutant, by the lines its change takes out and puts in."""
        taken = [line[1:].strip() for line in diff if line.startswith("-")]
        put = [line[1:].strip() for line in diff if line.startswith("+")]
        return str(path) == self.path and self.was in taken and (not self.now or self.now in put)


def explanations() -> list[Explanation]:
    """Return those of `explained.toml`."""
    return [Explanation(**each) for each in tomllib.loads(_FILE.read_text())["survivor"]]
