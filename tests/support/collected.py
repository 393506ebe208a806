"""The tests, collected when this is imported, and how a fork of the process that did runs them: as `xdist.remote` does what it has collected."""

import os
import sys
from pathlib import Path
from typing import Any, Final

import execnet
import pytest
from _pytest.config import _prepareconfig
from _pytest.tmpdir import TempPathFactory

from tests.support.collect_once import read_arguments
from tests.support.cpu_times import is_of_interest

_noted: Final[list[tuple[str, dict[str, Any]]]] = []
"""Calls of hooks about errors and warnings of the collection."""


class _Note:
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            _noted.append(("pytest_collectreport", {"report": report}))

    def pytest_warning_recorded(
        self, warning_message: object, when: str, nodeid: str, location: object
    ) -> None:
        warning = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        _noted.append(("pytest_warning_recorded", warning))


def _collect() -> pytest.Session:
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)  # who started this process says what runs
    config = _prepareconfig(read_arguments())
    from xdist.remote import setup_config  # not before pytest does it

    setup_config(config, None)
    config.workerinput = {"workerid": "gw0", "workercount": 1}  # type: ignore[attr-defined]
    noting = config.pluginmanager.register(_Note())
    config._do_configure()
    session = pytest.Session.from_config(config)
    config.hook.pytest_sessionstart(session=session)
    try:
        config.hook.pytest_collection(session=session)
    except pytest.UsageError as error:
        sys.stderr.writelines(f"ERROR: {each}\n" for each in error.args)
    config.pluginmanager.unregister(name=noting)
    config.pluginmanager.getplugin("capturemanager").stop_global_capturing()
    config.pluginmanager.getplugin("faulthandler").pytest_unconfigure(config)
    return session


_SESSION: Final = _collect()


def run(channel: execnet.Channel) -> None:
    """Run the tests that come over a channel."""
    import xdist.remote

    workerinput, _, options, _ = channel.receive()
    os.environ["PYTEST_XDIST_TESTRUNUID"] = workerinput["testrunuid"]
    os.environ["PYTEST_XDIST_WORKER"] = workerinput["workerid"]
    os.environ["PYTEST_XDIST_WORKER_COUNT"] = str(workerinput["workercount"])
    session, config = _SESSION, _SESSION.config
    config.workerinput = workerinput  # type: ignore[attr-defined]
    config.workeroutput = {}  # type: ignore[attr-defined]
    _open_files(config, options.get("basetemp"))
    interactor = _open_interactor(config, channel)
    xdist.remote.interactor = interactor
    interactor.pytest_sessionstart(session)
    for hook, arguments in _noted:
        getattr(interactor, hook)(**arguments)
    interactor.pytest_collection_finish(session)
    session.exitstatus = pytest.ExitCode.OK
    try:
        config.hook.pytest_runtestloop(session=session)
    except (KeyboardInterrupt, pytest.exit.Exception):
        session.exitstatus = pytest.ExitCode.INTERRUPTED
    except BaseException:  # noqa: BLE001 (the process that started this one says what went wrong)
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        config.notify_exception(pytest.ExceptionInfo.from_current(), config.option)
    config.hook.pytest_sessionfinish(session=session, exitstatus=session.exitstatus)
    config._ensure_unconfigure()


def _open_interactor(config: pytest.Config, channel: execnet.Channel) -> Any:
    from xdist.remote import WorkerInteractor

    class Interactor(WorkerInteractor):  # type: ignore[misc]
        """Sends half of what xdist does: no start of a test, and no setup or teardown that says nothing."""

        @pytest.hookimpl
        def pytest_runtest_logstart(self) -> None:
            """Say nothing: what is printed follows from reports."""

        @pytest.hookimpl
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if is_of_interest(report):
                super().pytest_runtest_logreport(report)

    return Interactor(config, channel)


def _open_files(config: pytest.Config, folder: str | None) -> None:
    """Open what this process shares with no other."""
    config.option.basetemp = folder
    config._tmp_path_factory = TempPathFactory.from_config(config, _ispytest=True)  # type: ignore[attr-defined]
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.start_global_capturing()
    capture.suspend_global_capture()
    config.pluginmanager.getplugin("faulthandler").pytest_configure(config)
