"""The count of hand-written lines by room."""

import subprocess
from collections import Counter
from pathlib import Path

from tests.support.count_lines import count_lines, render


def test_lines_are_counted_by_room_without_what_is_generated(tmp_path: Path) -> None:
    written = {
        "parley/local.py": "a\n",
        "parley/cli/app.py": "a\n\nb\n",
        "parley/cli/commands/demo.py": "a\nb\n",
        "parley/edge/console/static/style.css": "a\n",
        "parley/config/schema.json": "{}\n",
        "parley/v1/event_pb2.py": "a\n" * 99,
    }
    for name, text in written.items():
        path = tmp_path / "services" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    commit = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "commit",
        "--quiet",
        "--message",
        "Begin",
    ]
    for command in (["init", "--quiet"], ["add", "."], commit):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    assert count_lines("HEAD", tmp_path) == {"local.py": 1, "cli": 3, "cli/commands": 2, "edge/console": 1}


def test_the_table_shows_the_largest_room_first_and_how_each_grew() -> None:
    table = render(Counter({"cli": 30, "edge": 200}), Counter({"cli": 40, "gone": 10}))
    assert [line.split(" | ", 1)[0] for line in table.splitlines()[2:]] == [
        "| `edge`",
        "| `cli`",
        "| **all**",
    ]
    assert "| `edge` | 200 | new |" in table
    assert "| `cli` | 30 | -25% |" in table
