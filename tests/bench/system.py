"""Parley as it is measured: the embedded system in this process, on a fresh store, followed by its own client."""

import os
import re
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from parley.client import DebateSpec, ParleyClient
from parley.local import LocalOptions, local_system
from parley.v1.agent_pb2 import Agent, SummarySettings
from parley.v1.debate_pb2 import Participant
from parley.v1.event_pb2 import Event
from parley.v1.panel_pb2 import PanelSettings
from tests.bench.environment import use_environment
from tests.bench.graph import Place, Shape
from tests.bench.models import Served
from tests.support.model_server.answers import digest_of

_ME = re.compile(r"You are agent (\w) of")
_ROUND = re.compile(r"This is round (\d+) of")
_CRITICIZED = re.compile(r"Criticize this proposal of agent (\w)\.")


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
async def system(base_url: str, *, over_port: bool = False, **settings: str) -> AsyncIterator[ParleyClient]:
    """Run the embedded system on a fresh store for as long as the block lasts, with these variables besides.

    Its client calls it as the command's does, without a socket, unless it is to go `over_port`.
    """
    with tempfile.TemporaryDirectory() as folder:
        use_environment(Path(folder), base_url)
        os.environ |= settings
        async with local_system(LocalOptions()) as running:
            assert running.channel is not None
            if over_port:
                async with ParleyClient(running.orchestrator_address) as client:
                    yield client
            else:
                yield ParleyClient.over(running.channel, ())


def spec(shape: Shape, question: str) -> DebateSpec:
    """Return a panel debate of that shape."""
    return DebateSpec(
        question=question,
        agents=[Participant(agent=Agent(id=each, role="architect")) for each in shape.agents],
        judge=Participant(agent=Agent(id="judge", role="generalist")),
        analysis=False,
        panel=PanelSettings(
            rounds=shape.rounds,
            include_full_history=shape.full_history,
            summaries=SummarySettings(enabled=False),  # the graph of calls does not hang on lengths
        ),
    )


async def run_debate(client: ParleyClient, debate: DebateSpec, *, text: bool = False) -> Run:
    """Hold a debate and follow it to its end, with its text as it comes where that is asked for."""
    made = await client.create_debate(debate)
    texts: dict[str, str] = {}
    concluded = heard = 0.0
    async for event in client.watch(made, text=text):
        if not isinstance(event, Event):
            continue
        match event.WhichOneof("payload"):
            case "step_succeeded" if event.step_succeeded.HasField("reply"):
                texts[event.key] = event.step_succeeded.reply.text
            case "concluded" if event.concluded.HasField("outcome"):
                heard = time.monotonic()
                concluded = event.time.ToNanoseconds() / 1e9 - time.time() + heard
            case "debate_failed":
                raise RuntimeError(f"a debate failed: {event.debate_failed.failure.message}")
            case _:
                pass
    assert heard, "the debate did not conclude"
    return Run(texts, concluded, heard)


def places(run: Run, served: list[Served]) -> dict[str, Place]:
    """Return what was asked at each step, told by what the prompts say of themselves."""
    found = {}
    for call in served:
        key = step_of(call.prompt)
        latency_key = f"{digest_of(call.path, call.model, call.prompt)}/{call.occurrence}"
        structured = key in {"requirements", "synthesis"} or "/critique/" in key
        found[key] = Place(call.prompt, latency_key, structured=structured)
    assert found.keys() == run.texts.keys(), "every call belongs to one step"
    return found


def step_of(prompt: str) -> str:
    """Return the key of the step that a prompt of the panel is for."""
    for key, told in {
        "requirements": "list what an answer has to meet",
        "synthesis": "Score the work of",
    }.items():
        if told in prompt:
            return key
    agent, number = _agent(_ME, prompt), _found(_ROUND, prompt)
    if "Criticize this proposal" in prompt:
        return f"round/{number}/critique/{agent}/of/{_agent(_CRITICIZED, prompt)}"
    refines = "Your revised proposal, complete in itself" in prompt
    return f"round/{number}/{'refine' if refines else 'propose'}/{agent}"


def _agent(pattern: re.Pattern[str], prompt: str) -> str:
    return f"agent-{ord(_found(pattern, prompt)) - ord('A') + 1}"


def _found(pattern: re.Pattern[str], prompt: str) -> str:
    found = pattern.search(prompt)
    return found[1] if found else "A"
