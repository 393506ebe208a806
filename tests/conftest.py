"""What holds for every test: no key of the person who runs them, and a last word on which MongoDB was there."""

import os

import pytest
from hypothesis import settings

from tests.contract.reporting import report_mongodb
from tests.support.fixtures import model_server

__all__ = ["model_server"]

for _name in [name for name in os.environ if name.startswith(("PARLEY_", "OPENAI_", "OPENROUTER_", "OTEL_"))]:
    if not _name.startswith("PARLEY_TEST_"):
        del os.environ[_name]

# How long an example takes says something of the machine, and nothing of the behaviour.
settings.register_profile("parley", deadline=None)
settings.load_profile("parley")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    report_mongodb(terminalreporter)
