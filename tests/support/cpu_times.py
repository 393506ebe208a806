"""Says at the end of a test run which files take most of the processor: how long a test waits is no cost, and how much it computes is."""

import resource
import time
from collections import defaultdict
from typing import Final

import pytest

_before = 0.0
_CPU: Final = "cpu_seconds"
_SHORT: Final = 0.005
"""Seconds: what takes less is not among the slowest that pytest lists."""


def is_of_interest(report: pytest.TestReport) -> bool:
    """Return whether a report says more than that a setup or teardown passed at once."""
    says_nothing = report.passed and not report.sections and report.duration < _SHORT
    return report.when == "call" or not says_nothing


def note_cpu(report: pytest.TestReport, *, is_last: bool = False) -> None:
    """Write into a report of interest the seconds of the processor since the last one, of this process and of its children that have ended.

    With the last test of a process (`is_last`) the servers of other tests end: what these took is not its own.
    """
    global _before  # noqa: PLW0603 (a process has one clock)
    if _before and not is_of_interest(report):
        return
    if is_last and report.when == "teardown":
        return
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    now = time.process_time() + children.ru_utime + children.ru_stime
    setattr(report, _CPU, now - (_before or now))
    _before = now


def report_cpu(reporter: pytest.TerminalReporter, count: int) -> None:
    """Print so many files that took most, and what all took. What a server or browser of several tests took is not in it."""
    seconds = defaultdict[str, float](float)
    for reports in reporter.stats.values():
        for report in reports:
            seconds[getattr(report, "nodeid", "").partition("::")[0]] += getattr(report, _CPU, 0.0)
    reporter.write_sep("=", f"{count} files that took most of {sum(seconds.values()):.0f} s of the processor")
    for file, took in sorted(seconds.items(), key=lambda each: -each[1])[:count]:
        reporter.write_line(f"{took:6.1f}s {file}")
