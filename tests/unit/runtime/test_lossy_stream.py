"""A line that cannot be written never reaches the code that says it."""

import io
import logging
import os
import sys
from collections.abc import Iterator
from typing import TextIO

import pytest

from parley.runtime.logs import configure_logging, get_logger
from parley.runtime.lossy_stream import LossyStream


class Refusing(io.StringIO):
    """A stream on a disk that is full for a while."""

    full = True

    def write(self, text: str) -> int:
        if self.full:
            raise OSError(28, "No space left on device")
        return super().write(text)

    def flush(self) -> None:
        if self.full:
            raise OSError(28, "No space left on device")


def close_pipe() -> TextIO:
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w", buffering=1)


def close_stream() -> TextIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    yield
    configure_logging()


@pytest.mark.parametrize("make", [close_pipe, close_stream, Refusing])
def test_a_log_line_that_cannot_be_written_is_dropped(make: type[TextIO]) -> None:
    configure_logging(stream=make())
    get_logger("x").error("one of ours")
    logging.getLogger("library").error("one of a library's")


@pytest.mark.parametrize("stderr", [None, "closed pipe"])
def test_a_log_goes_on_without_stderr(stderr: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", close_pipe() if stderr else None)
    configure_logging()
    get_logger("x").error("one of ours")
    logging.getLogger("library").error("one of a library's")


def test_once_there_is_room_again_lines_are_written_again() -> None:
    stream = Refusing()
    lossy = LossyStream(stream)
    lossy.write("lost\n")
    stream.full = False
    lossy.write("kept\n")
    lossy.flush()
    assert stream.getvalue() == "kept\n"
