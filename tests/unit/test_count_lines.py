"""The count of hand-written lines by room."""

import subprocess
from collections import Counter
from pathlib import Path

from tests.support.count_lines import GROWTH, code_of, count_lines, outgrown, render


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


def test_blank_lines_comments_and_docstrings_are_not_code() -> None:
    text = b'"""Says\n\nmuch."""\n\n# why\nA = """\n# text\n"""  # how\n"""What A is."""\n'
    assert code_of("a.py", text) == 2
    assert code_of("a.md", b"# Title\n\ntext\n") == 2


def test_the_table_shows_the_largest_room_first_and_how_each_grew() -> None:
    table = render(
        Counter({"cli": 30, "edge": 200}), Counter({"cli": 20, "edge": 150}), Counter({"cli": 40, "gone": 10})
    )
    assert [line.split(" | ", 1)[0] for line in table.splitlines()[2:]] == [
        "| `edge`",
        "| `cli`",
        "| **all**",
    ]
    assert "| `edge` | 200 | 150 | new |" in table
    assert "| `cli` | 30 | 20 | -25% |" in table


def test_a_room_that_outgrew_its_row_is_named() -> None:
    page = render(Counter({"cli": 1_000}), Counter(), Counter())
    assert not outgrown(Counter({"cli": 1_000 + GROWTH, "new": GROWTH}), page)
    assert outgrown(Counter({"cli": 1_001 + GROWTH}), page) == [
        "cli has 1,201 lines, its row says 1,000",
    ]
    assert outgrown(Counter({"new": 1 + GROWTH}), page) == ["new has 201 lines, its row says 0"]
