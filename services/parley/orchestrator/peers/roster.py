"""The agents and routes that the gateway knows; new debates are checked against them."""

from collections.abc import Mapping, Sequence

import grpc
from msgspec import Struct, field
from msgspec.structs import replace

from parley.orchestrator.model.model_families import family_of
from parley.orchestrator.model.spec import Price, agents_of, dearest
from parley.runtime.errors import is_transport, unavailable
from parley.v1 import gateway_pb2, gateway_pb2_grpc
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DebateSpec

_SECONDS = 10.0
_UNKNOWN_ROUTES = "the default routes"
_OPENAI_HOSTS = (".api.openai.com", ".openai.azure.com", ".openai.azure.us")
MAX_NAMES = 256
"""Names of routes that the gateway takes in a request."""


class Roster(Struct, frozen=True):
    """What the gateway knows.

    Attributes:
        open_providers: Providers of which any model can be named as a route.
        default_routes: Those of agents that name none, as far as they are known.
        demonstrations: Routes to models that are too small to be relied on.
        stronger: Routes that the gateway's settings call stronger than others.
        models: Of each route, its provider and model, as `provider/model`.
        own_servers: Providers whose names say nothing of their models: each is a server of the operator's own.
    """

    agents: Mapping[str, Agent]
    default_team: tuple[str, ...]
    default_judge: str
    routes: frozenset[str]
    open_providers: frozenset[str]
    default_routes: tuple[str, ...] = ()
    demonstrations: frozenset[str] = frozenset()
    stronger: frozenset[str] = frozenset()
    models: Mapping[str, str] = field(default_factory=dict)
    own_servers: frozenset[str] = frozenset()

    def has_route(self, name: str) -> bool:
        """Whether a route of this name serves."""
        provider, _, model = name.partition("/")
        return name in self.routes or (provider in self.open_providers and bool(model))

    def routes_of(self, agent: Agent) -> tuple[str, ...]:
        """Return the routes that an agent's calls may take; empty if its provider has not named a model yet."""
        return tuple(agent.routes) or self.default_routes

    def family_of(self, route: str) -> str:
        """Return the family of a route's model; empty if it is not known."""
        name = self.models.get(route, route)
        provider, _, model = name.partition("/")
        return family_of(model if provider in self.own_servers else name)

    def is_demonstration(self, agent: Agent) -> bool:
        """Whether an agent may be answered by a model that is too small to be relied on."""
        return not self.demonstrations.isdisjoint(self.routes_of(agent))

    def describe_routes(self) -> str:
        """Return what may be named, for a person."""
        names = [*sorted(self.routes), *(f"{each}/MODEL" for each in sorted(self.open_providers))]
        return f"known routes: {', '.join(names)}"


class KnownRoute(Struct, frozen=True):
    """What the gateway knows of a route.

    Attributes:
        context_tokens: Tokens that prompt and answer may have together; 0: not known.
        priced: Whether it is known what tokens cost there.
        price: What they cost; None: not known, or the gateway's version does not report it.
        demonstration: Whether its model is too small to be relied on.
    """

    context_tokens: int
    priced: bool
    price: Price | None = None
    demonstration: bool = False


async def fetch_roster(channel: grpc.aio.Channel) -> Roster:
    """Return what the gateway knows now. Raise ParleyError: UNAVAILABLE `GATEWAY_UNAVAILABLE`."""
    gateway = gateway_pb2_grpc.GatewayServiceStub(channel)
    try:
        agents = await gateway.ListAgents(gateway_pb2.ListAgentsRequest(), timeout=_SECONDS)
        routes = await gateway.ListRoutes(gateway_pb2.ListRoutesRequest(), timeout=_SECONDS)
    except grpc.aio.AioRpcError as error:
        if is_transport(error) or error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            message = "the gateway is away; try again"
            raise unavailable("GATEWAY_UNAVAILABLE", message, retry_after=1.0) from error
        raise
    return Roster(
        agents={each.id: each for each in agents.agents},
        default_team=tuple(agents.default_team),
        default_judge=agents.default_judge,
        routes=frozenset(each.name for each in routes.routes),
        open_providers=frozenset(routes.open_providers),
        default_routes=tuple(routes.default_routes),
        demonstrations=frozenset(each.name for each in routes.routes if each.demonstration),
        stronger=frozenset(each.name for each in routes.routes if each.stronger),
        models={each.name: f"{each.provider}/{each.model}" for each in routes.routes},
        own_servers=frozenset(each.provider for each in routes.routes if _is_own_server(each)),
    )


def _is_own_server(route: gateway_pb2.RouteStatus) -> bool:
    """Return whether OPENAI_BASE_URL leads elsewhere than to OpenAI, or to OpenAI at Azure, where models may be of anyone."""
    host = route.host.partition(":")[0].lower()
    return route.provider == "openai" and bool(host) and not f".{host}".endswith(_OPENAI_HOSTS)


def routes_of(spec: DebateSpec, known: Roster) -> tuple[str, ...]:
    """Return the names of the routes that the calls of a debate may take, as far as they are known."""
    agents = (*agents_of(spec), spec.judge.agent)
    return tuple(dict.fromkeys(name for agent in agents for name in known.routes_of(agent)))


def unknown_routes(spec: DebateSpec, known: Roster) -> list[str]:
    """Return what the routes are called that some calls of a debate take and that are not known yet; empty if all are known."""
    agents = (*agents_of(spec), spec.judge.agent)
    return [] if all(map(known.routes_of, agents)) else [_UNKNOWN_ROUTES]


def routes_by_price(
    spec: DebateSpec, known: Roster, routes: Mapping[str, KnownRoute]
) -> tuple[list[str], list[str]]:
    """Return those routes of a debate of which it is known what tokens cost, and the others: a small model of this machine costs nothing."""
    found = [name for name in routes_of(spec, known) if name in routes]
    priced = [name for name in found if routes[name].price is not None]
    unpriced = [name for name in found if name not in priced and not routes[name].demonstration]
    return priced, [*unpriced, *unknown_routes(spec, known)]


async def fetch_routes(channel: grpc.aio.Channel, names: Sequence[str]) -> Mapping[str, KnownRoute]:
    """Return what the gateway knows of these routes; nothing if it is away."""
    gateway = gateway_pb2_grpc.GatewayServiceStub(channel)
    try:
        request = gateway_pb2.ListRoutesRequest(names=names[:MAX_NAMES])
        listed = await gateway.ListRoutes(request, timeout=_SECONDS)
    except grpc.aio.AioRpcError:
        return {}  # the debate can run without it
    return {
        each.name: KnownRoute(each.context_tokens, each.priced, _price(each), each.demonstration)
        for each in listed.routes
    }


def with_demonstrations(known: Roster, routes: Mapping[str, KnownRoute]) -> Roster:
    """Return the roster with what is known of these routes: a model is known to be small once it is asked about."""
    small = {name for name, each in routes.items() if each.demonstration}
    return replace(known, demonstrations=known.demonstrations | small)


def set_routes(spec: DebateSpec, known: Roster, routes: Mapping[str, KnownRoute]) -> None:
    """Set in a specification that is being made the smallest context and the highest prices of each agent's routes, as far as known."""
    for agent in (*agents_of(spec), spec.judge.agent):
        found = [routes[name] for name in known.routes_of(agent) if name in routes]
        agent.context_tokens = min((each.context_tokens for each in found if each.context_tokens), default=0)
        agent.ClearField("input_price_micros")
        agent.ClearField("output_price_micros")
        price = dearest(each.price for each in found)
        if price is not None:
            agent.input_price_micros, agent.output_price_micros = price.read, price.written


def _price(route: gateway_pb2.RouteStatus) -> Price | None:
    if not route.HasField("input_price_micros"):
        return None
    return Price(route.input_price_micros, route.output_price_micros)
