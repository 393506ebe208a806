"""The loop of a process that serves: the garbage collector seldom holds it up, and threads do not wait long for it."""

import gc
import sys
from typing import Final

__all__ = ["spare_the_loop"]

_THRESHOLDS: Final = 2_000, 10, 100
"""64 debates and a thousand streams are 160,000 objects: to go through them takes 0.1 s, every 6 s with Python's own thresholds, and with
these not once in 45 s. What is collected so seldom are cycles that outlived 20,000 objects made after them."""
_SWITCH_SECONDS: Final = 0.001
"""A call goes to the store's threads and back some four times. Each time a thread waits so long for a loop that has more to do, 5 ms by
Python's own setting: beside a tenant at its limits GetDebate took 113 ms (99 %) then, and 80 with half a millisecond. Shorter
ones cost a loop that has no pause at all more of its throughput."""


def spare_the_loop() -> None:
    """Never go through what was imported, and seldom through all the rest; have threads wait shortly. To be called once the imports are done."""
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_SECONDS)
