"""What the painter writes to a terminal."""

import os

import pytest
from rich.text import Text

from parley.cli.terminal.painter import Painter


def test_a_write_that_a_signal_cuts_is_continued(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """On a full terminal a signal ends a write after some of its bytes, and the cursor would stay hidden."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:2]))
    with Painter(lambda _width, _height: Text("a picture")):
        pass
    assert capfd.readouterr().err.endswith("\x1b[?25h")
