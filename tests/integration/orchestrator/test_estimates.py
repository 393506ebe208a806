"""What a debate is expected to take, and what is said of a budget of money before the first call."""

from typing import Any

import pytest

from parley.v1 import debate_pb2, orchestrator_pb2
from parley.v1.panel_pb2 import EFFORT_QUICK, PanelSettings
from tests.support.orchestration import Orchestrator, events_of, failure_of, kind_of
from tests.support.scripted_gateway import ScriptedGateway


async def test_a_budget_of_money_that_cannot_be_kept_is_said_before_the_first_call(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.unpriced = True
    limits = debate_pb2.DebateLimits(max_cost_micros=1_000_000)
    debate = await orchestrator.create(limits=limits)
    events = events_of(await orchestrator.watch(debate))
    kinds = [kind_of(event) for event in events]
    assert kinds.index("warned") < kinds.index("step_started")
    assert kinds.count("warned") == 1
    said = events[kinds.index("warned")].warned.message
    assert said.startswith("the budget of money cannot be kept: the price of p/m is unknown, and")


async def test_nothing_is_said_of_prices_that_are_known_or_without_a_budget_of_money(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    known = await orchestrator.create(limits=debate_pb2.DebateLimits(max_cost_micros=1_000_000))
    gateway.unpriced = True
    free = await orchestrator.create(limits=debate_pb2.DebateLimits(max_tokens=1_000_000))
    for debate in (known, free):
        assert "warned" not in map(kind_of, events_of(await orchestrator.watch(debate)))


async def estimate(orchestrator: Orchestrator, **fields: Any) -> orchestrator_pb2.EstimateDebateResponse:
    spec = debate_pb2.DebateSpec(**{"question": "Is water wet?", **fields})
    request = orchestrator_pb2.CreateDebateRequest(spec=spec)
    response: orchestrator_pb2.EstimateDebateResponse = await orchestrator.stub.EstimateDebate(
        request, timeout=10
    )
    return response


async def test_what_a_debate_is_expected_to_take_is_said_without_starting_it(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.prices = (1_000_000, 4_000_000)
    expected = (await estimate(orchestrator)).estimate
    assert (expected.min_calls, expected.max_calls) == (15, 43)
    assert 0 < expected.min_tokens < expected.max_tokens
    assert expected.min_tokens < expected.min_cost_micros < 4 * expected.min_tokens, (
        "one to four dollars a million"
    )
    assert expected.min_cost_micros < expected.max_cost_micros
    assert list(expected.priced_routes) == ["p/m"]
    listed = await orchestrator.stub.ListDebates(orchestrator_pb2.ListDebatesRequest(), timeout=10)
    assert not listed.debates
    assert not gateway.calls


async def test_a_debate_says_what_it_was_expected_to_take(orchestrator: Orchestrator) -> None:
    debate = await orchestrator.create(rounds=1)
    await orchestrator.watch(debate)
    state = await orchestrator.get(debate)
    assert state.estimate == (await estimate(orchestrator, panel=PanelSettings(rounds=1))).estimate
    assert state.estimate.max_calls == state.calls == 15


async def test_a_cost_is_expected_only_where_every_price_is_known(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.unpriced = True
    unknown = (await estimate(orchestrator)).estimate
    assert (unknown.HasField("min_cost_micros"), unknown.HasField("max_cost_micros")) == (False, False)
    assert (list(unknown.priced_routes), list(unknown.unpriced_routes)) == ([], ["p/m"])
    assert unknown.max_calls == 43


async def test_the_cost_of_a_model_that_is_not_known_yet_is_said_to_be_unknown(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.default_routes = ()
    unknown = (await estimate(orchestrator)).estimate
    assert list(unknown.unpriced_routes) == ["the default routes"]


async def test_an_estimate_is_refused_as_the_debate_would_be(orchestrator: Orchestrator) -> None:
    fields: dict[str, Any] = {
        "question": " ",
        "agents": [debate_pb2.Participant(agent_id="zed")],
        "panel": PanelSettings(effort=EFFORT_QUICK, rounds=3),
    }
    spec = debate_pb2.DebateSpec(**fields)
    request = orchestrator_pb2.CreateDebateRequest(request_id="r", spec=spec)
    refused = await failure_of(orchestrator.stub.CreateDebate(request, timeout=10))
    assert {each.field for each in refused.violations} >= {"spec.question", "spec.panel.effort"}
    assert (await failure_of(estimate(orchestrator, **fields))).violations == refused.violations


@pytest.mark.parametrize("name", ["arena", "moderated"])
async def test_a_format_that_cannot_say_what_a_debate_takes_gives_no_estimate(
    name: str, orchestrator: Orchestrator
) -> None:
    assert not (await estimate(orchestrator, format=name)).HasField("estimate")
