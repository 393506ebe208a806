"""An orchestrator among real services, and what a debate comes to there."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from parley.client import RatingsClient
from parley.runtime.server import RunningServer
from parley.v1 import memory_pb2, memory_pb2_grpc
from parley.v1.debate_pb2 import Debate, DebateSpec, Participant
from parley.v1.event_pb2 import Event
from parley.v1.orchestrator_pb2 import (
    CreateDebateRequest,
    WatchDebateRequest,
    WatchDebateResponse,
)
from parley.v1.panel_pb2 import (
    TERMINATION_RULE_CONVERGENCE,
    PanelSettings,
    Termination,
)
from tests.support.orchestration import WITHIN, Orchestrator, kind_of, orchestrating
from tests.support.real_services import convergence_at, free_address, memory_at, ratings_at

M = TypeVar("M", bound=Message)
AGREE = Termination(rule=TERMINATION_RULE_CONVERGENCE)
TWO = [Participant(agent_id="ada"), Participant(agent_id="bo")]


@dataclass
class Around:
    """Where the other services are, or would be: each is away until it is entered on a stack."""

    folder: Path
    convergence: str = field(default_factory=free_address)
    ratings: str = field(default_factory=free_address)
    memory: str = field(default_factory=free_address)

    @asynccontextmanager
    async def all(self) -> AsyncIterator[None]:
        async with (
            convergence_at(self.convergence),
            ratings_at(self.ratings, self.folder / "ratings"),
            memory_at(self.memory, self.folder / "memory", self.convergence),
        ):
            yield

    def orchestrating(self, gateway: RunningServer, **settings: Any) -> Any:
        addresses = {"convergence": self.convergence, "ratings": self.ratings, "memory": self.memory}
        return orchestrating(self.folder / "orchestrator", gateway, **{**addresses, **settings})

    async def matches(self, tenant: str = "default", domain: str = "") -> dict[str, tuple[int, int, int]]:
        """Opponents beaten, drawn with and lost to, by agent."""
        async with RatingsClient(self.ratings, tenant) as ratings:
            return {
                each.agent_id: (each.wins, each.draws, each.losses) async for each in ratings.list(domain)
            }

    async def remembered(self, text: str) -> list[memory_pb2.PastDebate]:
        async with grpc.aio.insecure_channel(self.memory) as channel:
            stub = memory_pb2_grpc.MemoryServiceStub(channel)
            found = stub.Recall(memory_pb2.RecallRequest(text=text), timeout=WITHIN)
            return [each.debate async for each in found]


async def create(orchestrator: Orchestrator, tenant: str = "default", **fields: Any) -> str:
    own = {each.name for each in PanelSettings.DESCRIPTOR.fields}
    settings = {"rounds": 1, **{name: fields.pop(name) for name in own & fields.keys()}}
    given = {"question": "Which broker, Kafka or RabbitMQ?", "agents": TWO, **fields}
    spec = DebateSpec(**given, panel=PanelSettings(**settings))
    request = CreateDebateRequest(request_id=uuid.uuid4().hex, spec=spec)
    metadata = (("parley-tenant", tenant),)
    return (await orchestrator.stub.CreateDebate(request, timeout=WITHIN, metadata=metadata)).debate_id


async def follow(orchestrator: Orchestrator, debate: str, until: str, tenant: str = "default") -> list[Event]:
    """The events up to the first of a kind."""
    request = WatchDebateRequest(debate_id=debate)
    stream = orchestrator.stub.WatchDebate(request, timeout=WITHIN, metadata=(("parley-tenant", tenant),))
    seen: list[Event] = []
    async for each in stream:
        assert isinstance(each, WatchDebateResponse)
        if each.WhichOneof("message") == "event":
            seen.append(each.event)
            if kind_of(each.event) == until:
                break
    return seen


async def get_closed(orchestrator: Orchestrator, debate: str) -> Debate:
    """Wait until a debate is closed, and return it."""
    await follow(orchestrator, debate, "closed")
    return await orchestrator.get(debate)


def value(events: list[Event], key: str, kind: type[M]) -> M:
    """What a service's step was recorded with."""
    (found,) = [
        each.step_succeeded.value for each in events if each.key == key and kind_of(each) == "step_succeeded"
    ]
    answer = kind()
    assert found.Unpack(answer)
    return answer
