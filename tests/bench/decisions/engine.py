"""Debates of simulated agents through the whole system: real prompts, over HTTP to the tests' model server."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from parley.client import DebateSpec, ParleyClient
from parley.orchestrator.phases.count_votes import most_confident_choice
from parley.v1.agent_pb2 import Agent
from parley.v1.arena_pb2 import ArenaSettings, StoppingSettings, Topology
from parley.v1.debate_pb2 import Debate, Participant
from parley.v1.event_pb2 import Event
from parley.v1.voting_pb2 import VOTE_BALLOTS_FIRST_DRAFTS
from tests.bench.decisions.agents import OPTIONS, Panel
from tests.bench.decisions.debates import NAMES, ROUNDS, TOPOLOGIES, seats
from tests.bench.decisions.scripted import JUDGE, Case, ScriptedAgents, put_question
from tests.bench.system import system
from tests.support.model_server import ModelServer

FIXED: Final = StoppingSettings(
    convergence=False, ready_signal=False, unanimous_drafts=False, stable_positions=False
)
"""All rounds are held."""
ADAPTIVE: Final = StoppingSettings(ready_signal=False)
"""The default rules, but for what agents say of themselves."""
_AT_ONCE: Final = 4
_FAMILIES: Final = ("gpt", "claude", "gemini", "qwen", "mistral", "llama")


@dataclass(frozen=True, slots=True)
class Debated:
    """What a debate came to.

    Attributes:
        drafts: What each agent held at first, seat by seat; `last`: what the proposal says that it voted for.
        stood: What was decided.
        by_drafts: Whether the first drafts were counted; else the last vote was, since drafts could not be told apart.
        one_voice: The family that all voters are said to share.
        calls: Model calls, with those for ballots that were not waited for, and without those that group positions.
        grouped: Calls that group positions.
        tokens: Of all prompts together.
    """

    drafts: tuple[str, ...]
    last: tuple[str, ...]
    stood: str
    by_drafts: bool
    one_voice: str
    calls: int
    grouped: int
    tokens: int


def routes(panel: Panel) -> tuple[str, ...]:
    """Return the route of each agent; its model is of the agent's family."""
    return tuple(
        f"openai/{_FAMILIES[family]}-{name}"
        for name, family in zip(seats(panel), panel.families, strict=True)
    )


async def debate_cases(cases: Sequence[Case], topology: str, stopping: StoppingSettings) -> list[Debated]:
    """Return what cases come to, in their order; some are debated at a time."""
    agents = ScriptedAgents({case.name: case for case in cases})
    gate = asyncio.Semaphore(_AT_ONCE)
    async with ModelServer(answer=agents.answer) as models, system(models.base_url) as client:

        async def debate_one(case: Case) -> Debated:
            async with gate:
                return await _debate(client, case, topology, stopping)

        return list(await asyncio.gather(*map(debate_one, cases)))


async def _debate(client: ParleyClient, case: Case, topology: str, stopping: StoppingSettings) -> Debated:
    made = await client.create_debate(_spec(case, topology, stopping))
    positions: dict[str, str] = {}
    drafts: dict[str, str] = {}
    keys: list[str] = []
    async for event in client.watch(made):
        if not isinstance(event, Event) or not event.step_succeeded.HasField("reply"):
            continue
        keys.append(event.key)
        reply, agent = event.step_succeeded.reply, event.key.rpartition("/")[2]
        if reply.position:
            drafts.setdefault(agent, reply.position)
            positions[agent] = reply.position
    state = await client.get(made)
    return _read(case, state, drafts, positions, keys)


def _read(
    case: Case, state: Debate, drafts: Mapping[str, str], positions: Mapping[str, str], keys: Sequence[str]
) -> Debated:
    assert state.HasField("outcome"), f"{case.name} failed: {state.failure.message}"
    vote, decision = state.outcome.arena.votes[-1], state.outcome.arena.decision
    by_drafts = decision.ballots == VOTE_BALLOTS_FIRST_DRAFTS
    ballots = {each.agent_id: _option(positions[each.choice_agent_id]) for each in vote.ballots}
    names = seats(case.panel)
    grouped = sum("/grouping" in each for each in keys)
    return Debated(
        drafts=tuple(_option(drafts[name]) for name in names),
        last=tuple(ballots.get(name, "") for name in names),
        stood=_option((drafts if by_drafts else positions)[most_confident_choice(decision.count)]),
        by_drafts=by_drafts,
        one_voice=vote.shared_family,
        calls=len(keys) - grouped + len(vote.left_out_agent_ids),
        grouped=grouped,
        tokens=state.usage.input_tokens,
    )


def _option(position: str) -> str:
    return next(each for each in OPTIONS if each in position)


def _spec(case: Case, topology: str, stopping: StoppingSettings) -> DebateSpec:
    hub = NAMES[4] if topology == "star" else ""
    return DebateSpec(
        question=put_question(case),
        format="arena",
        history_limit=0,
        analysis=False,
        agents=[
            Participant(agent=Agent(id=name, role="generalist", routes=[route]))
            for name, route in zip(seats(case.panel), routes(case.panel), strict=True)
        ],
        judge=Participant(agent=Agent(id=JUDGE, role="judge", routes=[f"openai/command-{JUDGE}"])),
        arena=ArenaSettings(
            revision_rounds=ROUNDS,
            topology=Topology(kind=TOPOLOGIES[topology], hub_agent_id=hub),
            stopping=stopping,
        ),
    )
