"""Tables on a terminal and elsewhere."""

import sys

import pytest

from parley.cli.terminal.tables import is_narrow, print_table

ROWS = [
    ("ID", "QUESTION"),
    ("deb-1", "Which database should the orders be kept in?"),
    ("deb-2", "あいうえおかき"),
]


def pretend_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))


def test_a_table_is_cut_to_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_terminal(monkeypatch, 20)
    print_table(ROWS)
    assert capsys.readouterr().out == ("ID     QUESTION\ndeb-1  Which databa…\ndeb-2  あいうえおか…\n")
    assert is_narrow()


def test_the_last_column_keeps_some_room(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_terminal(monkeypatch, 3)
    print_table(ROWS)
    assert "deb-1  Which d…\n" in capsys.readouterr().out


def test_columns_that_leave_the_last_one_no_room_are_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_terminal(monkeypatch, 20)
    print_table([("ID", "STATUS", "CREATED", "QUESTION"), ("deb-1", "completed", "2026", "Which database?")])
    assert capsys.readouterr().out == "ID     QUESTION\ndeb-1  Which databa…\n"


def test_columns_are_left_out_for_a_time_rather_than_half_of_it_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_terminal(monkeypatch, 40)
    rows = [("AGENT", "RATING", "LOST", "LAST MATCH"), ("architect", "1500", "2", "2026-11-27 19:14:47")]
    print_table(rows)
    assert capsys.readouterr().out == (
        "AGENT      RATING  LAST MATCH\narchitect  1500    2026-11-27 19:14:47\n"
    )


def test_elsewhere_everything_is_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    print_table(ROWS)
    assert "should the orders be kept in?\n" in capsys.readouterr().out
    assert not is_narrow()
