"""The standard output as a receiver: a line of JSON for each delivery."""

import sys

from parley.orchestrator.delivery.message import Message


class StdoutChannel:
    """Writes deliveries to the standard output of this process."""

    async def send(self, message: Message) -> None:
        """Write the body in one line."""
        sys.stdout.write(f"{message.body.decode()}\n")
        sys.stdout.flush()
