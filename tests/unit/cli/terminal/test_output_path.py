"""Where results may be written."""

from pathlib import Path

import pytest

from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.cli.terminal.files import check_output_path, report_path


@pytest.mark.parametrize(
    ("given", "used"), [("r", "r.md"), ("r.md", "r.md"), ("r.txt", "r.txt.md"), ("R.MD", "R.MD")]
)
def test_a_report_ends_in_md(given: str, used: str) -> None:
    assert report_path(Path(given)) == Path(used)


@pytest.mark.parametrize("name", ["new.md", "there.md", "a/b/c.md", "link.md"])
def test_what_can_be_written_is_left_as_it_was(name: str, tmp_path: Path) -> None:
    there = tmp_path / "there.md"
    there.write_text("an older answer")
    (tmp_path / "link.md").symlink_to(there)
    check_output_path("--output", tmp_path / name)
    assert there.read_text() == "an older answer"
    assert {each.name for each in tmp_path.iterdir()} == {"there.md", "link.md"}


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/proc/answer.md", "cannot be written"),  # where root has every permission, and nobody can write
        ("/proc/a/b/answer.md", "cannot be written"),
        ("/dev/null/answer.md", "/dev/null is not a folder"),
        ("/tmp", "is a folder; name a file in it"),
        (f"/tmp/{'long' * 100}.md", "cannot be written"),
    ],
)
def test_what_cannot_be_written_is_refused_in_one_line(path: str, why: str) -> None:
    with pytest.raises(CommandError, match=why) as caught:
        check_output_path("--output", Path(path))
    assert caught.value.code == INVALID_ARGUMENTS
    assert "\n" not in str(caught.value)
