"""Waiting for what another process does."""

import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 180.0) -> None:
    """Wait until a condition holds."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"not within {seconds} s"
        time.sleep(0.02)
