"""The models that answer: the one that --model names for all agents, or those that answer by default."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from parley.cli.errors import CONFIGURATION, CommandError
from parley.cli.input.agents import role_participant
from parley.cli.printing import say
from parley.client import DebateSpec, GatewayClient
from parley.config.default import DEFAULT
from parley.config.file import DEFAULT_TEAM
from parley.config.messages import agent_message
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Participant
from parley.v1.gateway_pb2 import FoundServer, ListRoutesResponse, UnlistedModel

_PATIENCE: Final = 30.0
WITH_A_KEY: Final = (
    "With a key (export OPENAI_API_KEY=sk-…) or a model server of yours, the same command asks a model that can debate: requirements, "
    "issues by severity, trade-offs, open questions, and how sure the answer is."
)
"""What is said to whoever had a debate of the small model, since nothing else was set."""
GOES_ON_WITHOUT_A_KEY: Final = (
    "warning: other models began this debate, and its answer will not be called a demonstration. Ctrl-C pauses it: set what was set then, "
    "such as OPENAI_API_KEY, and resume it."
)
"""What is said where the small model goes on with a debate that is no demonstration."""


async def set_model(spec: DebateSpec, model: str, gateway: str | None) -> None:
    """Set this model for every agent of the specification and its judge. Raise CommandError.

    `gateway` lists agents and routes; None if only an orchestrator is known, which then
    checks the route, and names of agents are read as roles.
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
    """Return the route of this name, or the model's route at the first provider."""
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
    """Replace names of agents by agents; add the default team and judge if none are given."""
    if not spec.agents:
        spec.agents.extend(Participant(agent_id=each) for each in team or DEFAULT_TEAM)
    for each in spec.agents:
        if each.WhichOneof("who") == "agent_id":
            described = known.get(each.agent_id)
            each.CopyFrom(
                Participant(agent=described) if described is not None else role_participant(each.agent_id)
            )
    if not spec.HasField("judge"):
        spec.judge.agent.CopyFrom(known.get(judge) or agent_message(DEFAULT.judge))


async def report_models(gateway: str, spec: DebateSpec, *, own: bool, patience: float) -> ListRoutesResponse:
    """Say which models answer, and where, and return the gateway's routes."""
    async with GatewayClient(gateway, patience=patience) as client:
        listed = await client.list_routes()
    line = models_line(spec, listed, own=own)
    if line is not None:
        say(line)
    return listed


def models_line(spec: DebateSpec, listed: ListRoutesResponse, *, own: bool) -> str | None:
    """Return a line about the models that answer; None if they are not known.

    `own` says whether the system uses the keys that are set here.
    """
    used = dict.fromkeys(_routes(spec, listed))
    small = [route.model for route in listed.routes if route.demonstration and route.name in used]
    if small and not answers_for_want_of_a_key(spec, listed):
        return (
            f"The model {small[0]} is very small. This is a demonstration: what it says is often nonsense, and the debate is "
            "neither remembered nor rated."
        )
    if small:
        unset = "No key and no base URL is set" if own else "The Parley that runs was started without a key"
        instead = f", and not {listed.ignored_model} of PARLEY_MODEL" if listed.ignored_model else ""
        return (
            f"{unset}: the small model {small[0]} answers on this machine{instead}. This is a demonstration: a debate takes it about a "
            "minute, and what it says is often nonsense."
        )
    providers = {route.partition("/")[0] for route in used}
    found = [each for each in listed.found_servers if each.provider in providers]
    if found:
        return _found_servers_line(found, listed.default_routes)
    unlisted = (_unlisted_line(each) for each in listed.unlisted_defaults if each.route in used)
    return next(unlisted, None) or _asked_line(spec, used, listed)


def _asked_line(spec: DebateSpec, used: Mapping[str, None], listed: ListRoutesResponse) -> str | None:
    """Return `Model: openai/gpt-5-mini at api.openai.com`; None if neither a route nor a host is known."""
    hosts = {each.name: each.host for each in listed.routes}
    asked = [f"{route} at {hosts[route]}" for route in used if hosts.get(route)]
    if _takes_defaults(spec):
        asked += [
            f"one that {each.host} chooses (it has not listed its models yet)"
            for each in listed.unnamed_defaults
        ]
    return f"Model{'s' if len(asked) > 1 else ''}: {', '.join(asked)}" if asked else None


def _unlisted_line(gone: UnlistedModel) -> str:
    provider, _, model = gone.route.partition("/")
    instead = (
        f"{gone.successor} is likely to be what took its place: PARLEY_MODEL={gone.successor}"
        if gone.successor
        else "PARLEY_MODEL=… names one that it lists"
    )
    return f"warning: {provider} does not list {model}, which is asked where nobody names a model; {instead}"


def answers_for_want_of_a_key(spec: DebateSpec, listed: ListRoutesResponse) -> bool:
    """Return whether the small model of this machine answers."""
    used = set(_routes(spec, listed))
    return any(route.local and route.demonstration for route in listed.routes if route.name in used)


def _routes(spec: DebateSpec, listed: ListRoutesResponse) -> Iterator[str]:
    for agent in _named_agents(spec):
        yield from agent.routes or listed.default_routes
    if _takes_defaults(spec):
        yield from listed.default_routes


def _named_agents(spec: DebateSpec) -> list[Agent]:
    return [each.agent for each in spec.agents] + ([spec.judge.agent] if spec.HasField("judge") else [])


def _takes_defaults(spec: DebateSpec) -> bool:
    """Return whether an agent or the judge names no route."""
    is_complete = bool(spec.agents) and spec.HasField("judge")
    return not (is_complete and all(each.routes for each in _named_agents(spec)))


def _found_servers_line(found: Iterable[FoundServer], default_routes: Iterable[str]) -> str:
    servers = list(found)
    where = " and ".join(f"{each.title} ({each.base_url})" for each in servers)
    count = sum(len(each.models) for each in servers)
    others = f"; PARLEY_MODEL=… takes another of the {count} models there" if count > 1 else ""
    return (
        f"No key and no base URL is set, and this machine runs {where}: {', then '.join(default_routes)} answers{others}; "
        "PARLEY_LOCAL_SERVERS=off leaves it alone."
    )
