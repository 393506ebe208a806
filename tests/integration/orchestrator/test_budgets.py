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
from parley.orchestrator.model.tokens import likely_tokens
from parley.orchestrator.peers.roster import fetch_roster, fetch_routes, set_routes
from parley.runtime.channel import channel
from parley.v1.agent_pb2 import TOOL_FILE_READ, Usage
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED, ContextDocument, DebateLimits
from parley.v1.event_pb2 import DebateCreated, StepFailed, StepStarted, StepSucceeded
from parley.v1.panel_pb2 import SYNTHESIS_METHOD_VOTING
from tests.integration.gateway.harness import routes_file, run_gateway
from tests.support.arena_debates import ArenaScript, arena_settings, arena_spec
from tests.support.debate_logs import run_debate
from tests.support.kept_logs import KEPT
from tests.support.model_server import Match, ModelServer, Rule, ToolCall, ToolCalls
from tests.support.moderated_debates import ModeratedScript, moderated_spec
from tests.support.orchestration import backstage, make_debate, make_limits, until, with_fields, with_spec
from tests.support.scripted_gateway import StepRequest

FORMATS = ["panel@1-rounds", "panel@1-quality", "panel@1-merge", "arena@1-adversarial"]
FORMATS += ["moderated@1-unsteered", "evaluation@1-scores"]
LONG = f"{'w' * 399} " * 150
"""60,000 characters. Each word is an event of the stream."""
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


async def hold_kept(name: str, server: ModelServer, folder: Path, limits: DebateLimits) -> Held:
    """Hold a debate of the kind of a kept log."""
    return await hold(KEPT[name].spec(KEPT[name].format), server, folder, limits)


async def hold(created: DebateCreated, server: ModelServer, folder: Path, limits: DebateLimits) -> Held:
    """Hold a debate with every agent at one priced route."""
    settings = routes_file(folder, server, extra=PRICES)
    async with (
        run_gateway(settings, environment={"KEY_1": "sk-key-of-this-test"}) as gateway,
        channel(gateway.server.address) as models,
        backstage(folder) as stage,
        replace(stage, models=models).replica() as replica,
    ):
        spec = use_one_route(created, limits)
        set_routes(spec.spec, await fetch_roster(models), await fetch_routes(models, ["p1/m"]))
        assert price_of(spec.spec.judge.agent) is not None
        debate = await replica.create(spec)

        async def is_over() -> bool:
            return not (await stage.record(debate)).open

        await until(is_over, "the debate ends", within=90)
        return Held(await stage.events(debate), [each.body for each in server.ledger.to("/v1/responses")])


def use_one_route(spec: DebateCreated, limits: DebateLimits) -> DebateCreated:
    agents = tuple(with_fields(each, routes=("p1/m",)) for each in agents_of(spec.spec))
    return with_spec(
        spec, agents=agents, judge=with_fields(spec.spec.judge.agent, routes=("p1/m",)), limits=limits
    )


@pytest.mark.parametrize("name", FORMATS)
async def test_every_call_carries_a_bound_and_is_counted(name: str, tmp_path: Path) -> None:
    limits = make_limits(max_cost_micros=10_000_000, max_tokens=10_000_000, waiting=0)
    async with ModelServer(states_positions=True) as server:
        debate = await hold_kept(name, server, tmp_path, limits)
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
        debate = await hold_kept(name, server, tmp_path, limits)
    assert debate.costs()
    of_answer = max(debate.costs(of_answers=True), default=0)
    assert sum(debate.costs()) <= BUDGET + max(debate.costs()) + of_answer


async def test_agents_that_look_up_documents_as_often_as_they_may_stay_within_a_budget(
    tmp_path: Path,
) -> None:
    read = ToolCalls([ToolCall("file_read", {"path": "notes.md"})])
    spec = make_debate(3, 2, context=(ContextDocument(path="notes.md", text="word " * 200),))
    agents = [with_fields(each, tools=(TOOL_FILE_READ,)) for each in agents_of(spec.spec)]
    rules = [Rule(match=Match(tools=True), answer=read)]
    async with ModelServer(rules=rules, states_positions=True) as server:
        debate = await hold(with_spec(spec, agents=agents), server, tmp_path, make_limits(max_tokens=BUDGET))
    state = fold(debate.events)
    assert len(debate.asked) > 2 * len(debate.costs()), "they looked things up"
    assert state.usage.input_tokens + state.usage.output_tokens <= BUDGET
    assert state.status == DEBATE_STATUS_COMPLETED


FORMATS_WITH_BALLOTS = {
    "arena": lambda limits: arena_spec(5, arena_settings(revision_rounds=3), limits=limits),
    "arena with a document": lambda limits: arena_spec(
        5,
        arena_settings(revision_rounds=3),
        limits=limits,
        context=(ContextDocument(path="notes.md", text="word " * 2000),),
    ),
    "panel that votes": lambda limits: make_debate(
        5, 3, synthesis_method=SYNTHESIS_METHOD_VOTING, limits=limits
    ),
    "panel": lambda limits: make_debate(5, 3, limits=limits),
    "moderated": lambda limits: moderated_spec(3, spec={"limits": limits}),
}


@pytest.mark.parametrize("name", FORMATS_WITH_BALLOTS)
@pytest.mark.parametrize("tokens", [30_000, pytest.param(60_000, marks=pytest.mark.long), 200_000])
async def test_what_agents_are_asked_stays_within_a_budget_with_ballots_and_answer(
    name: str, tokens: int, tmp_path: Path
) -> None:
    gateway = LongWriters(ModeratedScript() if name == "moderated" else ArenaScript(choice="ada"))
    spec = FORMATS_WITH_BALLOTS[name](make_limits(max_tokens=tokens, waiting=0))
    events = await run_debate(tmp_path, gateway.scripted, spec)
    debate = fold(events)
    assert tokens > 30_000 or debate.ended_by == "token_budget"
    assert debate.usage.input_tokens + debate.usage.output_tokens <= tokens


class LongWriters:
    """Agents that write as much as they may, up to 6,000 tokens, and whose calls count what is read and written."""

    def __init__(self, script: ArenaScript | ModeratedScript) -> None:
        self.scripted = script.gateway()
        self.scripted.alter = self._write
        self.scripted.usage = lambda step: self._used[step]
        self._used: dict[str, Usage] = {}

    def _write(self, asked: StepRequest, text: str) -> str:
        length = min(asked.affordable or 6000, asked.max_output_tokens or 6000, 6000)
        text = text if asked.schema else f"{'word ' * (length * 4 // 5 - 40)}\n{text}"
        read, written = likely_tokens(asked.prompt), likely_tokens(text)
        self._used[asked.step] = Usage(input_tokens=read, output_tokens=written, requests=1)
        return text
