"""The commands that a MongoDB client sends."""

import asyncio
from collections.abc import Mapping
from typing import Any

from pymongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent


class SentCommands(CommandListener):
    """Every command that a client sent."""

    def __init__(self) -> None:
        self.commands: list[Mapping[str, Any]] = []
        self._more = asyncio.Event()

    def started(self, event: CommandStartedEvent) -> None:
        self.commands.append(event.command)
        self._more.set()

    def succeeded(self, event: CommandSucceededEvent) -> None:
        pass

    def failed(self, event: CommandFailedEvent) -> None:
        pass

    async def wait_for(self, name: str, times: int) -> None:
        """Wait until so many commands of a name were sent."""
        while len(self.of(name)) < times:
            self._more.clear()
            await self._more.wait()

    def of(self, *names: str) -> list[Mapping[str, Any]]:
        """Return the commands of these names."""
        return [command for command in self.commands if next(iter(command)) in names]
