"""What holds for every test: no key and no model server of the person who runs them, and a last word on which MongoDB was there."""

import gc
import os
import signal
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Final

import execnet
import pytest
import structlog
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from xdist.remote import Producer

from tests.contract.reporting import report_mongodb
from tests.support.collect_once import start_forks
from tests.support.cpu_times import note_cpu, report_cpu
from tests.support.fixtures import model_server
from tests.support.memory_folder import memory_folder
from tests.support.scheduling import FileScheduling, order_scopes, scope_of
from tests.support.shared_compiling import import_in_processes
from tests.support.stale_contract import note_stale_contract

__all__ = ["model_server"]

_IS_LAST: Final = pytest.StashKey[bool]()
"""Whether no test follows in its process."""

# Modules and collected tests stay until the end: looking through them again and again took 40 % of the time of collection.
gc.disable()

for _name in [name for name in os.environ if name.startswith(("PARLEY_", "OPENAI_", "OPENROUTER_", "OTEL_"))]:
    if not _name.startswith("PARLEY_TEST_"):
        del os.environ[_name]

# What a shell starts in the background has Ctrl-C ignored, and under `nohup` hang-ups: tests send both.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# No test looks at the ports that model servers usually have: whoever runs the tests may run one.
os.environ["PARLEY_LOCAL_SERVERS"] = "off"

# No test asks a server of the internet: to read whom this machine trusts takes each client of an endpoint 20 ms.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)

# Errors that are logged are printed as Python does. To draw them in colours took a sixth of the gateway's tests.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)

if folder := memory_folder():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)

# How long an example takes says something of the machine, and nothing of the behaviour. The examples are the same every
# time, so that the first 50 are enough; `--hypothesis-profile=search` looks for others.
_PROFILE: Final = "parley"
settings.register_profile(_PROFILE, max_examples=50, deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile(_PROFILE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--collect-once", action="store_true", help="processes are forks of one that has collected"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: Sequence[execnet.XSpec]) -> None:
    if config.getoption("collect_once"):
        start_forks(config, specs)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FileScheduling | None:
    return FileScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection(session: pytest.Session) -> None:
    if settings.get_current_profile_name() == _PROFILE:
        # Hypothesis reads all our modules for constants to try. It takes ten seconds of a fresh checkout, in which no test runs,
        # and examples would be others after each change of any module.
        providers._get_local_constants = lambda: providers._local_constants
    if session.config.getoption("collect_once"):
        import_in_processes(session.config)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        scopes = dict.fromkeys(scope_of(each.nodeid) for each in items)
        places = {scope: place for place, scope in enumerate(order_scopes([*scopes]))}
        items.sort(key=lambda each: places[scope_of(each.nodeid)])


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(5_000, 10, 100)  # Python looks more often, which took a twentieth of the time
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    item.stash[_IS_LAST] = nextitem is None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    note_cpu(report, is_last=item.stash.get(_IS_LAST, False))
    note_stale_contract(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    note_stale_contract(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if count := terminalreporter.config.getoption("durations"):
        report_cpu(terminalreporter, count)
    report_mongodb(terminalreporter)
