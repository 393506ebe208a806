"""One model for every agent of a new debate."""

from collections.abc import Mapping
from typing import Final

from parley import config
from parley.cli.errors import CONFIGURATION, CommandError
from parley.cli.input.agents import role_participant
from parley.client import DebateSpec, GatewayClient
from parley.config.messages import agent_message
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Participant
from parley.v1.gateway_pb2 import ListRoutesResponse

__all__ = ["set_model"]

_PATIENCE: Final = 30.0


async def set_model(spec: DebateSpec, model: str, gateway: str | None) -> None:
    """Have every agent of the specification, and its judge, answered by this model. Raise CommandError.

    `gateway` is where the agents and routes are known; None where a server is all that is known: its orchestrator then
    says whether it has the route, and names of agents count as roles.
    """
    if gateway is None:
        _expand_agents(spec, {}, (), "")
        route = model
    else:
        async with GatewayClient(gateway, patience=_PATIENCE) as asked:
            agents, routes = await asked.list_agents(), await asked.list_routes()
        known = {each.id: each for each in agents.agents}
        _expand_agents(spec, known, tuple(agents.default_team), agents.default_judge)
        route = _choose_route(model, routes)
    for each in (*spec.agents, spec.judge):
        each.agent.routes[:] = [route]


def _choose_route(model: str, routes: ListRoutesResponse) -> str:
    """Return the route that is named, or that of the model at the first provider."""
    if model in {each.name for each in routes.routes}:
        return model
    if not routes.open_providers:
        raise CommandError(
            f"--model {model}: no provider is set up; set OPENAI_API_KEY, OPENAI_BASE_URL or OPENROUTER_API_KEY",
            CONFIGURATION,
        )
    provider, _, name = model.partition("/")
    return model if name and provider in routes.open_providers else f"{routes.open_providers[0]}/{model}"


def _expand_agents(spec: DebateSpec, known: Mapping[str, Agent], team: tuple[str, ...], judge: str) -> None:
    """Describe every agent that is only named, and those that nobody named."""
    if not spec.agents:
        spec.agents.extend(Participant(agent_id=each) for each in team or config.DEFAULT_TEAM)
    for each in spec.agents:
        if each.WhichOneof("who") == "agent_id":
            described = known.get(each.agent_id)
            each.CopyFrom(
                Participant(agent=described) if described is not None else role_participant(each.agent_id)
            )
    if not spec.HasField("judge"):
        spec.judge.agent.CopyFrom(known.get(judge) or agent_message(config.defaults().judge))
