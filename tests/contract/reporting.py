"""Says at the end of a test run what the MongoDB suites ran on, also where they ran in other processes."""

from collections import Counter

import pytest

_SAID = pytest.StashKey[bool]()


def report_mongodb(reporter: pytest.TerminalReporter) -> None:
    """Print a line for each server that the suites ran on, or why they were skipped."""
    if reporter.config.stash.get(_SAID, False):
        return
    reporter.config.stash[_SAID] = True
    seen = Counter(
        value
        for reports in reporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "teardown" or getattr(report, "skipped", False)
        for name, value in getattr(report, "user_properties", [])
        if name == "mongodb"
    )
    # A test that passed reports its teardown under "", one that was skipped its setup under "skipped".
    for value, tests in seen.items():
        reporter.write_line(
            f"MongoDB contract: {value} ({tests} tests)", yellow="SKIPPED" in str(value), bold=True
        )
