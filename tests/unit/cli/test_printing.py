"""Lines on stderr: wrapped between words for a terminal, whole elsewhere."""

import pytest

from parley.cli.printing import print_field, say, wrap_line

WARNING = "warning: the context size of open/a is unknown: 32,768 tokens are assumed"


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        (WARNING, 40, ["warning: the context size of open/a is", "  unknown: 32,768 tokens are assumed"]),
        (f"  {WARNING[:32]}", 20, ["  warning: the", "    context size of", "    ope"]),
        (WARNING, 200, [WARNING]),
        (WARNING, 0, [WARNING]),
        (WARNING, 5, [WARNING]),
        ("a  b\nc \x1b[2Jd", 80, ["a b c d"]),
        ("see " + "x" * 40, 30, ["see", "  " + "x" * 40]),
        (
            "Not answered; the debate waits. Go on with: parley debate --resume deb-1",
            30,
            ["Not answered; the debate", "  waits. Go on with:", "  parley debate --resume deb-1"],
        ),
        (
            "  Go on with: parley debate --resume deb-20261128-005903-cthpug2w",
            50,
            ["  Go on with:", "    parley debate --resume deb-20261128-005903-cthpug2w"],
        ),
        ("Saved debate deb-1; parley show deb-1", 40, ["Saved debate deb-1; parley show deb-1"]),
    ],
)
def test_a_line_is_wrapped_between_words_and_a_command_stays_whole(
    text: str, width: int, lines: list[str]
) -> None:
    assert list(wrap_line(text, width)) == lines


def test_elsewhere_than_on_a_terminal_a_line_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"  {WARNING * 3}")
    assert capsys.readouterr().err == f"  {WARNING * 3}\n"


JUDGE = "Judge      judge (all models are of one family: they make the same mistakes)"


@pytest.mark.parametrize(
    ("line", "columns", "lines"),
    [
        (
            JUDGE,
            45,
            [
                "Judge      judge (all models are of one",
                "           family: they make the same",
                "           mistakes)",
            ],
        ),
        (JUDGE, 0, [JUDGE]),
        ("Go on      parley debate --resume deb-1", 30, ["Go on      parley debate --resume deb-1"]),
    ],
)
def test_on_a_terminal_a_value_is_wrapped_below_itself(
    line: str,
    columns: int,
    lines: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("parley.cli.printing._terminal_width", lambda _: columns)
    print_field(line)
    assert capsys.readouterr().out.splitlines() == lines
