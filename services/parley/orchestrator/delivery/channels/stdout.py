"""The standard output of the orchestrator: each delivery is one line of JSON."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from parley.orchestrator.delivery.message import DeliveryError, Message
from parley.runtime.printable import printable_json

_WRITING: Final = ThreadPoolExecutor(1, thread_name_prefix="hook-stdout")
"""One line at a time, in a thread of its own: if nobody reads the output, it is held, and nothing else may wait for it."""


class StdoutChannel:
    """Writes lines."""

    async def send(self, message: Message) -> None:
        """Write a message, and return once it is written. Raise DeliveryError if it may not be."""
        line = printable_json(message.body.replace(b"\n", b" ").decode()) + "\n"
        try:
            await asyncio.get_running_loop().run_in_executor(_WRITING, _write, line)
        except (OSError, ValueError) as error:  # ValueError: it is closed
            why = getattr(error, "strerror", None) or "it is closed"
            raise DeliveryError(f"standard output could not be written: {why}") from None


def _write(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()
