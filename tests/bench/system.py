"""Parley as it is measured: the embedded system in this process, on a fresh store, followed by its own client."""

import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from parley.client import DebateEvent, DebateSpec, ParleyClient
from parley.client.events import Concluded, DebateFailed, StepSucceeded
from parley.local import LocalOptions, local_system
from parley.v1.agent_pb2 import Agent
from parley.v1.orchestrator_pb2 import Participant
from tests.bench.environment import use_environment
from tests.bench.graph import Place, Shape
from tests.bench.models import Served
from tests.support.model_server.answers import digest_of

__all__ = ["Run", "places", "run_debate", "spec", "system"]


@dataclass(frozen=True, slots=True)
class Run:
    """A debate that was held.

    `texts` are the answers by step; `concluded` is the moment (of `time.monotonic`) that its event carries, and `heard`
    when the client had it, after it was durable.
    """

    texts: dict[str, str]
    concluded: float
    heard: float


@asynccontextmanager
async def system(base_url: str) -> AsyncIterator[ParleyClient]:
    """Run the embedded system on a fresh store for as long as the block lasts."""
    with tempfile.TemporaryDirectory() as folder:
        use_environment(Path(folder), base_url)
        async with (
            local_system(LocalOptions()) as running,
            ParleyClient(running.orchestrator_address) as client,
        ):
            yield client


def spec(shape: Shape, question: str) -> DebateSpec:
    """Return a panel debate of that shape."""
    return DebateSpec(
        question=question,
        agents=[Participant(agent=Agent(id=each, role="architect")) for each in shape.agents],
        judge=Participant(agent=Agent(id="judge", role="generalist")),
        rounds=shape.rounds,
        include_full_history=shape.full_history,
    )


async def run_debate(client: ParleyClient, debate: DebateSpec, *, text: bool = False) -> Run:
    """Hold a debate and follow it to its end, with its text as it comes where that is asked for."""
    made = await client.create_debate(debate)
    texts: dict[str, str] = {}
    concluded = heard = 0.0
    async for event in client.watch(made, text=text):
        if not isinstance(event, DebateEvent):
            continue
        match event.payload:
            case StepSucceeded(reply=reply) if reply is not None:
                texts[event.key] = reply.text
            case Concluded(status="completed"):
                heard = time.monotonic()
                concluded = event.time.timestamp() - time.time() + heard
            case DebateFailed() as failure:
                raise RuntimeError(f"a debate failed: {failure.message}")
            case _:
                pass
    assert heard, "the debate did not conclude"
    return Run(texts, concluded, heard)


def places(run: Run, served: list[Served]) -> dict[str, Place]:
    """Return what was asked at each step, found by the digest that the model server's answers begin with."""
    digests = {id(call): digest_of(call.path, call.model, call.prompt) for call in served}
    by_digest = {digest[:8]: call for call in served if (digest := digests[id(call)]) and call.streamed}
    found = {}
    for key, text in run.texts.items():
        called = by_digest.get(text[7:15]) or next(call for call in served if not call.streamed)
        latency_key = f"{digests[id(called)]}/{called.occurrence}"
        found[key] = Place(called.prompt, latency_key, streamed=called.streamed)
    assert len(found) == len(served), "every call belongs to one step"
    return found
