"""The hand-written lines of each room, for docs/architecture/README.md: `make lines` counts them anew and writes the table there.

Lines of Python, scripts, styles and texts count, blank ones too; what is generated from `protos/` does not. With `--check` nothing is
written, and a room that outgrew its row is an error (docs/decisions/lines.md).
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "architecture" / "README.md"
BUDGET: Final = 64_000
GROWTH: Final = 200
"""How many lines a room may have more than its row says."""
SINCE: Final = "e52af88"
"""The commit that growth is counted from."""
_COUNTED: Final = {".py", ".js", ".css", ".html", ".md", ".yaml"}
_LARGE: Final = {"cli", "edge", "gateway", "orchestrator"}
"""Rooms that are shown by the rooms in them."""


def lines_of(name: str, text: bytes) -> int:
    """Return how many lines a file has."""
    return text.count(b"\n")


def code_of(name: str, text: bytes) -> int:
    """Return how many lines of a file are neither blank nor, in Python, of a comment or docstring."""
    lines = text.splitlines()
    says: set[int] = set()
    if name.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                says.update(range(node.lineno - 1, node.end_lineno or node.lineno))
        says.update(index for index, line in enumerate(lines) if line.lstrip().startswith(b"#"))
    return sum(1 for index, line in enumerate(lines) if line.strip() and index not in says)


def count_lines(
    commit: str, root: Path = ROOT, counted: Callable[[str, bytes], int] = lines_of
) -> Counter[str]:
    """Return the hand-written lines of each room under `services/parley/` at a commit."""
    files = _git(root, "ls-tree", "-r", "--name-only", commit, "services/parley").decode().splitlines()
    wanted = [each for each in files if PurePosixPath(each).suffix in _COUNTED and "/v1/" not in each]
    objects = "".join(f"{commit}:{each}\n" for each in wanted).encode()
    answers = _git(root, "cat-file", "--batch", given=objects)
    lines: Counter[str] = Counter()
    for name in wanted:
        header, _, answers = answers.partition(b"\n")
        size = int(header.rsplit(b" ", 1)[1])
        lines[_room(name)] += counted(name, answers[:size])
        answers = answers[size + 1 :]
    return lines


def _room(name: str) -> str:
    room, *inner = PurePosixPath(name).parts[2:-1] or (PurePosixPath(name).name,)
    return f"{room}/{inner[0]}" if room in _LARGE and inner else room


def render(now: Counter[str], code: Counter[str], before: Counter[str]) -> str:
    """Return the table: a row a room, the largest first."""
    rows = [
        f"| `{room}` | {lines:,} | {code[room]:,} | {_growth(lines, before[room])} |"
        for room, lines in now.most_common()
    ]
    growth = _growth(now.total(), before.total())
    total = f"| **all** | **{now.total():,}** of {BUDGET:,} | {code.total():,} | {growth} |"
    return "\n".join([f"| room | lines | of it code | since {SINCE} |", "|---|---|---|---|", *rows, total])


def outgrown(now: Counter[str], page: str) -> list[str]:
    """Return the rooms that have more lines than their rows on the page allow."""
    rows = dict(re.findall(r"^\| `([^`]+)` \| ([\d,]+) \|", page, re.MULTILINE))
    return [
        f"{room} has {lines:,} lines, its row says {rows.get(room, 0)}"
        for room, lines in now.most_common()
        if lines > int(rows.get(room, "0").replace(",", "")) + GROWTH
    ]


def _growth(now: int, before: int) -> str:
    return f"{(now - before) / before:+.0%}" if before else "new"


def _git(root: Path, *arguments: str, given: bytes = b"") -> bytes:
    done = subprocess.run(["git", *arguments], cwd=root, input=given, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"git {arguments[0]}: {done.stderr.decode().strip()}")
    return done.stdout


def main() -> None:
    """Write the table into the page, or compare its rows with the rooms."""
    now = count_lines("HEAD")
    if sys.argv[1:] == ["--check"]:
        if rooms := outgrown(now, PAGE.read_text(encoding="utf-8")):
            sys.exit("; ".join(rooms) + ": see what can go, then run make lines")
        return
    table = render(now, count_lines("HEAD", counted=code_of), count_lines(SINCE))
    place = re.compile(r"(made by make lines[^\n]*\n).*?([^\n]*end of lines)", re.DOTALL)
    page, count = place.subn(
        lambda found: f"{found[1]}\n{table}\n\n{found[2]}", PAGE.read_text(encoding="utf-8")
    )
    if count != 1:
        sys.exit(f"{PAGE.name} needs one place for the table: `made by make lines` and `end of lines`")
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
