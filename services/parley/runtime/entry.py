"""From `python -m` to an exit code: one line for each error that people can fix, without a traceback."""

import asyncio
import ctypes
import gc
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final

from parley.runtime.errors import ConfigurationError, PartFailedError
from parley.runtime.printable import printable_line
from parley.runtime.private_files import set_private_umask

PART_FAILED: Final = 1
CONFIGURATION: Final = 4
INTERRUPTED: Final = 130
_M_MMAP_THRESHOLD: Final = -3
"""As malloc.h names it."""
_LARGE_BLOCK_BYTES: Final = 256 * 1024
_GC_THRESHOLDS: Final = 10_000, 10, 20
"""64 debates and a thousand streams are 160,000 objects. A full collection takes 0.1 s: every 6 s with Python's defaults, and not once in 45 s with these.
It only finds cycles that outlived 100,000 newer objects. The fewer new objects start a small one, the more of them are still in use: with 2,000 in place of
10,000, they take 3 ms more of the 140 ms that a debate takes."""
_SWITCH_SECONDS: Final = 0.001
"""A call goes to the store's threads and back about four times, and each time a thread waits up to this long for a busy loop. With
Python's 5 ms, GetDebate took 113 ms (99 %) next to a tenant at its limits, and 80 ms with half a millisecond. A shorter
interval costs a busy loop more of its throughput."""


def run(main: Callable[[], Coroutine[Any, Any, int | None]]) -> int:
    """Run `main` and return the exit code, for `sys.exit(run(main))`.

    None is 0. ConfigurationError is 4 with its lines on stderr, PartFailedError is 1 with its line, Ctrl-C is 130.
    """
    set_private_umask()
    return_large_blocks()
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
    finally:
        gc.freeze()  # else Python looks at its end for garbage in all that was imported, for a fifth of a second


def return_large_blocks() -> None:
    """Let glibc return every large block to the system when it is freed. By itself it stops that once such a block was freed.

    Without it a service keeps several times the memory of the documents that it has at a time. Other C libraries stay as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)


def tune_gc_and_threads() -> None:
    """Exclude imported objects from garbage collection, collect the rest seldom, and shorten the wait of threads. Call it after the imports."""
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_SECONDS)
