"""From `python -m` to an exit code: one line an error for people, no traceback for what they can mend."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final

from parley.runtime.errors import ConfigurationError

__all__ = ["CONFIGURATION", "INTERRUPTED", "run"]

CONFIGURATION: Final = 4
INTERRUPTED: Final = 130


def run(main: Callable[[], Coroutine[Any, Any, int | None]]) -> int:
    """Runs `main` to its end and returns the exit code, for `sys.exit(run(main))`.

    None counts as 0, ConfigurationError is 4 with its lines on stderr, Ctrl-C is 130.
    """
    try:
        return asyncio.run(main()) or 0
    except ConfigurationError as error:
        for problem in error.problems:
            sys.stderr.write(f"{problem}\n")
        return CONFIGURATION
    except KeyboardInterrupt:
        return INTERRUPTED
