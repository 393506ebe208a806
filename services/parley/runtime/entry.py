"""From `python -m` to an exit code: one line an error for people, no traceback for what they can mend."""

import asyncio
import gc
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final

from parley.runtime.errors import ConfigurationError, PartFailedError
from parley.runtime.printable import printable_line
from parley.runtime.private_files import set_private_umask

__all__ = ["CONFIGURATION", "INTERRUPTED", "PART_FAILED", "run", "tune_gc_and_threads"]

PART_FAILED: Final = 1
CONFIGURATION: Final = 4
INTERRUPTED: Final = 130
_GC_THRESHOLDS: Final = 2_000, 10, 100
"""64 debates and a thousand streams are 160,000 objects: to go through them takes 0.1 s, every 6 s with Python's own thresholds, and with
these not once in 45 s. What is collected so seldom are cycles that outlived 20,000 objects made after them."""
_SWITCH_SECONDS: Final = 0.001
"""A call goes to the store's threads and back some four times. Each time a thread waits so long for a loop that has more to do, 5 ms by
Python's own setting: beside a tenant at its limits GetDebate took 113 ms (99 %) then, and 80 with half a millisecond. Shorter
ones cost a loop that has no pause at all more of its throughput."""


def run(main: Callable[[], Coroutine[Any, Any, int | None]]) -> int:
    """Run `main` to its end and return the exit code, for `sys.exit(run(main))`.

    None counts as 0, ConfigurationError is 4 with its lines on stderr, PartFailedError is 1 with its own, Ctrl-C is 130.
    """
    set_private_umask()
    tune_gc_and_threads()
    try:
        return asyncio.run(main()) or 0
    except ConfigurationError as error:
        for problem in error.problems:
            sys.stderr.write(f"{printable_line(problem)}\n")
        return CONFIGURATION
    except PartFailedError as error:
        sys.stderr.write(f"{printable_line(str(error))}\n")
        return PART_FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def tune_gc_and_threads() -> None:
    """Never go through what was imported, and seldom through all the rest; have threads wait shortly. To be called once the imports are done."""
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_SECONDS)
