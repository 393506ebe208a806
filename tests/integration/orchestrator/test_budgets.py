"""Budgets over a whole gateway and a model server, for every format: bounds reach the model, and what is spent stays within them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.log.usage import usage_of
from parley.orchestrator.model.spec import agents_of, price_of
from parley.orchestrator.peers.roster import fetch_roster, fetch_routes, set_routes
from parley.runtime.channel import channel
from parley.v1.debate_pb2 import DebateLimits
from parley.v1.event_pb2 import DebateCreated, StepFailed, StepStarted, StepSucceeded
from tests.integration.gateway.harness import routes_file, running
from tests.support.kept_logs import KEPT
from tests.support.model_server import ModelServer
from tests.support.orchestration import backstage, make_limits, until, with_fields, with_spec

FORMATS = ["panel@1-rounds", "panel@1-quality", "panel@1-merge", "arena@1-adversarial"]
FORMATS += ["moderated@1-unsteered", "evaluation@1-scores"]
LONG = "word " * 12_000
PRICES = "    input_price: 1\n    output_price: 4\n"
BUDGET = 60_000


@dataclass(frozen=True)
class Held:
    """A debate that was held, and what its model was asked."""

    events: list[Envelope]
    asked: list[Mapping[str, Any]]

    def costs(self, *, of_answers: bool = False) -> list[int]:
        """What each call cost; or, of those that make the answer, each."""
        started = [(each.key, each.payload) for each in self.events if isinstance(each.payload, StepStarted)]
        keys = {key for key, payload in started if payload.is_answer or not of_answers}
        outcomes = [each.payload for each in self.events if each.key in keys]
        used = [usage_of(each) for each in outcomes if isinstance(each, StepFailed | StepSucceeded)]
        return [each.cost_micros for each in used if each.requests]


async def held(name: str, server: ModelServer, folder: Path, limits: DebateLimits) -> Held:
    """Hold a debate of the kind of a kept log, with every agent at one priced route."""
    settings = routes_file(folder, server, extra=PRICES)
    async with (
        running(settings, environment={"KEY_1": "sk-key-of-this-test"}) as gateway,
        channel(gateway.server.address) as models,
        backstage(folder) as stage,
        replace(stage, models=models).replica() as replica,
    ):
        spec = at_one_route(KEPT[name].spec(KEPT[name].format), limits)
        set_routes(spec.spec, await fetch_roster(models), await fetch_routes(models, ["p1/m"]))
        assert price_of(spec.spec.judge.agent) is not None
        debate = await replica.create(spec)

        async def over() -> bool:
            return not (await stage.record(debate)).open

        await until(over, "the debate ends", within=90)
        return Held(await stage.events(debate), [each.body for each in server.ledger.to("/v1/responses")])


def at_one_route(spec: DebateCreated, limits: DebateLimits) -> DebateCreated:
    agents = tuple(with_fields(each, routes=("p1/m",)) for each in agents_of(spec.spec))
    return with_spec(
        spec, agents=agents, judge=with_fields(spec.spec.judge.agent, routes=("p1/m",)), limits=limits
    )


@pytest.mark.parametrize("name", FORMATS)
async def test_every_call_carries_a_bound_and_is_counted(name: str, tmp_path: Path) -> None:
    limits = make_limits(max_cost_micros=10_000_000, max_tokens=10_000_000, waiting=0)
    async with ModelServer(states_positions=True) as server:
        debate = await held(name, server, tmp_path, limits)
    assert debate.asked
    bounds = {asked.get("max_output_tokens", 0) for asked in debate.asked}
    # One of these debates bounds its contributions at 200 by itself.
    assert 200 <= min(bounds) <= max(bounds) <= 8192
    usage = fold(debate.events).usage
    assert usage.cost_micros == sum(debate.costs()) > 0
    assert usage.requests == len(debate.asked)


@pytest.mark.parametrize("name", FORMATS)
async def test_answers_that_ignore_their_bound_exceed_a_budget_by_one_call_and_the_answer(
    name: str, tmp_path: Path
) -> None:
    limits = make_limits(max_cost_micros=BUDGET, waiting=0)
    async with ModelServer(answer=LONG) as server:
        debate = await held(name, server, tmp_path, limits)
    assert debate.costs()
    of_answer = max(debate.costs(of_answers=True), default=0)
    assert sum(debate.costs()) <= BUDGET + max(debate.costs()) + of_answer
