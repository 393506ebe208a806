"""The system a command talks to: a server's, that of another process on this machine, or one of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Link", "connected"]


@dataclass(frozen=True, slots=True)
class Link:
    """Where services answer.

    Attributes:
        gateway: None where it is not known, as with --server.
        own: Whether the system runs in this process.
        borrowed: Whether it runs in another command of this machine, which may end before ours does.
        log: The file that its services log to, if it is known.
    """

    orchestrator: str
    gateway: str | None = None
    own: bool = False
    borrowed: bool = False
    log: Path | None = None


@asynccontextmanager
async def connected(
    server: str | None, config_path: Path | None = None, *, answers: bool = True
) -> AsyncIterator[Link]:
    """The system to talk to; where it is this process's own, it stops at the end of the block.

    Without `answers`, a system of our own can only be read.
    """
    if server is not None:
        yield Link(server)
        return
    from parley.local import LocalOptions, local_system

    async with local_system(LocalOptions(config_path=config_path, answers=answers)) as system:
        yield Link(
            system.orchestrator_address, system.gateway_address, own=system.own, borrowed=not system.own
        )
