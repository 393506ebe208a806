"""What a debate costs in calls, by the ledger of the server that answers them."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from parley.orchestrator.log.envelope import Envelope
from parley.runtime.channel import channel
from parley.v1.event_pb2 import StepSucceeded
from tests.integration.gateway.harness import one_server
from tests.support.model_server import ModelServer
from tests.support.orchestration import Backstage, backstage, make_debate

ON_TOP = {"requirements", "summary"}
"""What is asked beside the formula: the list of requirements, once, and summaries."""


@asynccontextmanager
async def before_models(folder: Path, server: ModelServer) -> AsyncIterator[Backstage]:
    """Agents are asked through a real gateway."""
    async with (
        one_server(server) as gateway,
        channel(gateway.server.address) as models,
        backstage(folder) as stage,
    ):
        yield replace(stage, models=models)


def formula(agents: int, rounds: int, *, carry: bool) -> int:
    """The calls of so many agents and rounds, the judge's included."""
    critiques = agents * (agents - 1)
    if carry:
        return agents + rounds * critiques + rounds * agents + 1
    return rounds * (agents + critiques + agents) + 1


def activities(events: list[Envelope]) -> Counter[str]:
    steps = [event.payload for event in events if isinstance(event.payload, StepSucceeded)]
    return Counter(step.work.activity for step in steps if step.work.agent_id)


@pytest.mark.parametrize("carry", [False, True])
@pytest.mark.parametrize(
    "agents", [1, 2, 3, *(pytest.param(count, marks=pytest.mark.long) for count in (4, 5, 6, 7))]
)
async def test_calls_of_one_to_five_rounds_are_those_of_the_formula(
    agents: int, *, carry: bool, tmp_path: Path
) -> None:
    async with (
        ModelServer(states_positions=True) as server,
        before_models(tmp_path, server) as stage,
        stage.replica() as replica,
    ):
        for rounds in range(1, 6) if agents == 2 else (1, 5):  # every round more costs the same
            server.ledger.reset()
            spec = make_debate(agents, rounds, carry_forward=carry)
            events = await stage.comes_to(await replica.create(spec), "COMPLETED", within=60)
            made = activities(events)
            on_top = sum(made[each] for each in ON_TOP)
            assert made["requirements"] == 1
            assert made.total() - on_top == formula(agents, rounds, carry=carry), rounds
            assert len(server.ledger.calls) == made.total(), "every call is a step, and the other way round"
