"""The system in one process: what goes wrong around it does not hide what goes wrong in it."""

from pathlib import Path

import pytest

from parley.local import _log_file


def _fail_after_a_line() -> None:
    with _log_file(Path("/dev/full")) as log:
        with pytest.raises(OSError, match="No space"):
            log.write("a line\n")
        raise ValueError("the other")


def test_a_log_on_a_full_disk_hides_no_other_error() -> None:
    with pytest.raises(ValueError, match="the other"):
        _fail_after_a_line()
