"""The garbage collector of a process that serves: it holds the loop up, so it has little to go through, and seldom all of it."""

import gc
from typing import Final

__all__ = ["spare_the_loop"]

_THRESHOLDS: Final = 2_000, 10, 100
"""64 debates and a thousand streams are 160,000 objects: to go through them takes 0.1 s, every 6 s with Python's own thresholds, and with
these not once in 45 s. What is collected so seldom are cycles that outlived 20,000 objects made after them."""


def spare_the_loop() -> None:
    """Never go through what was imported, and seldom through all the rest. To be called once the imports are done."""
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
