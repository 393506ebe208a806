"""A debate whose log is kept, and the person who steers it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from parley.v1.debate_pb2 import Intervention
from parley.v1.event_pb2 import DebateCreated, Intervened
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import (
    TENANT,
    Backstage,
    Replica,
)
from tests.support.scripted_gateway import ScriptedGateway

FOLDER: Final = Path(__file__).parents[2] / "data" / "logs"


@dataclass(frozen=True, slots=True)
class Person:
    """Whoever steers a debate. What the log has already is not done again, so that a cut log can be gone on with."""

    stage: Backstage
    replica: Replica
    debate: str
    clock: ManualClock

    async def sees(self, kind: str, count: int = 1) -> None:
        """Wait for events of a kind."""
        await self.stage.has(self.debate, kind, count)

    async def does(self, request_id: str, act: Intervention) -> None:
        """Act on the debate, once."""
        made = Intervened(request_id=request_id, intervention=act)
        payloads = [event.payload for event in await self.stage.events(self.debate)]
        if not any(isinstance(each, Intervened) and each.request_id == request_id for each in payloads):
            async with asyncio.timeout(60):
                await self.replica.intake.intervene(TENANT, self.debate, made)

    async def lets_pass(self, seconds: float, until: str) -> None:
        """Let time pass until there is an event of a kind."""
        async with asyncio.timeout(60):
            while until not in await self.stage.kinds(self.debate):
                self.clock.advance(seconds)
                await asyncio.sleep(0.01)


async def _let_be(_person: Person) -> None:
    pass


@dataclass(frozen=True, slots=True)
class KeptDebate:
    """A debate whose log is kept.

    Attributes:
        format: `name@version`.
        name: What it shows, in a word.
        spec: Makes what is debated, of the format.
        gateway: Makes a gateway that answers, each time, what it answered when the log was recorded.
        steer: Does what a person does in it.
    """

    format: str
    name: str
    spec: Callable[[str], DebateCreated]
    gateway: Callable[[], ScriptedGateway] = ScriptedGateway
    steer: Callable[[Person], Awaitable[None]] = _let_be

    @property
    def id(self) -> str:
        """What the file is called."""
        return f"{self.format}-{self.name}"

    @property
    def path(self) -> Path:
        """The file."""
        return FOLDER / f"{self.id}.log"
