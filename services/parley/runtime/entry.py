"""From `python -m` to an exit code: one line an error for people, no traceback for what they can mend."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final

from parley.runtime.errors import ConfigurationError, PartFailedError
from parley.runtime.printable import printable_line
from parley.runtime.private_files import keep_private
from parley.runtime.spared_loop import spare_the_loop

__all__ = ["CONFIGURATION", "INTERRUPTED", "PART_FAILED", "run"]

PART_FAILED: Final = 1
CONFIGURATION: Final = 4
INTERRUPTED: Final = 130


def run(main: Callable[[], Coroutine[Any, Any, int | None]]) -> int:
    """Run `main` to its end and return the exit code, for `sys.exit(run(main))`.

    None counts as 0, ConfigurationError is 4 with its lines on stderr, PartFailedError is 1 with its own, Ctrl-C is 130.
    """
    keep_private()
    spare_the_loop()
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
