"""What a run of tests says of the processor's time."""

from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.cpu_times import is_of_interest, note_cpu, report_cpu


def make_report(name: str = "a", **fields: Any) -> Any:
    usual = {"when": "call", "passed": True, "sections": [], "duration": 0.0}
    return SimpleNamespace(nodeid=f"tests/{name}.py::test", **usual | fields)


def note_report(name: str, rounds: int, *, is_last: bool = False, **fields: Any) -> Any:
    report = make_report(name, **fields)
    for _ in range(rounds):
        sum(range(100_000))
    note_cpu(report, is_last=is_last)
    return report


def test_files_that_computed_most_come_first() -> None:
    note_report("before", 0)
    reports = [note_report("little", 1), note_report("most", 60), note_report("much", 20)]
    out = StringIO()
    reporter: Any = SimpleNamespace(
        stats={"passed": reports[:2], "": [*reports[2:], SimpleNamespace()]},
        write_sep=lambda _, title: out.write(f"{title}\n"),
        write_line=lambda line: out.write(f"{line}\n"),
    )
    report_cpu(reporter, 2)
    title, *lines = out.getvalue().splitlines()
    assert title.startswith("2 files that took most of ")
    assert [line.split()[-1] for line in lines] == ["tests/most.py", "tests/much.py"]


@pytest.mark.parametrize("when", ["setup", "teardown"])
def test_a_setup_or_teardown_that_says_nothing_is_of_no_interest_and_its_time_counts_to_the_next(
    when: str,
) -> None:
    note_report("before", 0)
    short, after = note_report("a", 60, when=when), note_report("a", 0)
    other = note_report("b", 20)
    assert not is_of_interest(short)
    assert not hasattr(short, "cpu_seconds")
    assert after.cpu_seconds > other.cpu_seconds


def test_what_ends_with_the_last_test_is_none_of_its_time() -> None:
    note_report("before", 0)
    call = note_report("a", 20, is_last=True)
    ended = note_report("a", 1, is_last=True, when="teardown", duration=1.0)
    assert call.cpu_seconds > 0
    assert not hasattr(ended, "cpu_seconds")


@pytest.mark.parametrize(
    "fields",
    [
        {"when": "call"},
        {"passed": False},
        {"sections": [("Captured stdout setup", "x")]},
        {"duration": 0.006},
    ],
)
def test_a_call_and_whatever_fails_prints_or_takes_long_is_of_interest(fields: dict[str, Any]) -> None:
    assert is_of_interest(make_report(**{"when": "setup"} | fields))
