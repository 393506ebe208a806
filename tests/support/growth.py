"""How much longer work takes on more of the same, which is the same on a fast and on a slow machine."""

import time
from collections.abc import Callable
from typing import Final

_TIMES: Final = 16
_MOST: Final = 64
"""Sixteen times as much takes 16 times as long if each piece takes the same, and 256 times if each is compared with all others."""
_TOO_SHORT: Final = 0.005
"""Seconds that are not told from nothing: `_MOST` times as much is still short."""


def check_growth(work: Callable[[int], object], size: int) -> None:
    """Assert that work on `size` takes about 16 times the processor time of work on a sixteenth, or less; and not 256 times."""
    short = max(cpu_seconds(lambda: work(size // _TIMES)), _TOO_SHORT)
    assert any(cpu_seconds(lambda: work(size)) < _MOST * short for _ in range(3)), (
        f"more than {_MOST} times {short:.3f} s"
    )


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return how much of the processor's time work takes."""
    began = time.process_time()
    work()
    return time.process_time() - began
