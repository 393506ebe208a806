"""The standard output of the orchestrator: each delivery is one line of JSON."""

import asyncio
import sys
from threading import Lock
from typing import Final

from parley.orchestrator.delivery.message import DeliveryError, Message
from parley.runtime.printable import printable_json

_WRITING: Final = Lock()


class StdoutChannel:
    """Writes lines."""

    async def send(self, message: Message) -> None:
        """Write a message, and return once it is written. Raise DeliveryError if it may not be."""
        line = printable_json(message.body.replace(b"\n", b" ").decode()) + "\n"
        try:
            await asyncio.to_thread(_write, line)
        except (OSError, ValueError) as error:  # ValueError: it is closed
            why = getattr(error, "strerror", None) or "it is closed"
            raise DeliveryError(f"standard output could not be written: {why}") from None


def _write(line: str) -> None:
    with _WRITING:
        sys.stdout.write(line)
        sys.stdout.flush()
