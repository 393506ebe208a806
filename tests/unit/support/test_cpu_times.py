"""What a run of tests says of the processor's time."""

from io import StringIO
from types import SimpleNamespace
from typing import Any

from tests.support.cpu_times import note_cpu, report_cpu


def noted(name: str, rounds: int) -> Any:
    report: Any = SimpleNamespace(nodeid=f"tests/{name}.py::test")
    for _ in range(rounds):
        sum(range(100_000))
    note_cpu(report)
    return report


def test_files_that_computed_most_come_first() -> None:
    noted("before", 0)
    reports = [noted("little", 1), noted("most", 60), noted("much", 20)]
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
