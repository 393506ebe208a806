"""What a signal does after a command has handled it."""

import signal
from collections.abc import Iterator

import pytest

from parley.cli.commands.interrupts import cancel_on_interrupt, handle_signals


@pytest.fixture(autouse=True)
def kept_handlers() -> Iterator[None]:
    """Put back the handlers of the tests' own process."""
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGUSR1)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


async def test_a_signal_does_afterwards_what_it_did_before() -> None:
    def handle(*_: object) -> None:
        """Do nothing."""

    signal.signal(signal.SIGUSR1, handle)
    with handle_signals({signal.SIGUSR1: lambda: None}):
        assert signal.getsignal(signal.SIGUSR1) is not handle
    assert signal.getsignal(signal.SIGUSR1) is handle


async def test_a_signal_whose_handler_was_not_pythons_has_its_default_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(signal, "getsignal", lambda _number: None)
        handling = handle_signals({signal.SIGUSR1: lambda: None})
        handling.__enter__()
    handling.__exit__(None, None, None)
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


async def test_ctrl_c_whose_handler_was_not_pythons_has_its_default_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def install(*_: object) -> None:
        """Say as Python does that the handler before was none of its own."""

    with monkeypatch.context() as patch:
        patch.setattr(signal, "signal", install)
        handling = cancel_on_interrupt()
        handling.__enter__()
    handling.__exit__(None, None, None)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
