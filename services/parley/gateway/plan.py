"""From settings and the agents file to agents, providers, routes and defaults, and to the endpoints that are asked."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import httpx2
from msgspec import Struct

from parley.config.file import Agent as FileAgent
from parley.config.file import ConfigFile
from parley.config.file import Provider as FileProvider
from parley.config.messages import agent_message
from parley.gateway.providers import echo, local, openai_compatible
from parley.gateway.providers.kind import ProviderKind
from parley.gateway.providers.kinds import KINDS, api_at, home_at
from parley.gateway.routing.prices import PublishedPrices, Seller, load_prices
from parley.gateway.routing.queue import Limits
from parley.gateway.routing.route import DefaultRoute, Route
from parley.gateway.routing.table import Offer
from parley.gateway.settings import GatewaySettings
from parley.gateway.wire.endpoint import Endpoint, EndpointLimits, Provider
from parley.runtime.byte_budget import ByteBudget
from parley.runtime.errors import ConfigurationError
from parley.runtime.regular_files import read_start
from parley.v1 import agent_pb2, gateway_pb2

_MAX_BYTES: Final = 16 * 1024


def read_key(path: Path) -> str:
    """Return the key that a file holds, without a line end after it. Raise ConfigurationError, which never repeats it."""
    try:
        if not path.is_file():
            raise ConfigurationError(f"{path}: is no file; it should hold the key")
        held = read_start(path, _MAX_BYTES + 1)
        key = held.decode("ascii").strip()
    except OSError as error:
        raise ConfigurationError(f"{path}: the key cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: holds characters that no key has") from None
    if not key or len(held) > _MAX_BYTES:
        raise ConfigurationError(f"{path}: {'is too long for a key' if key else 'holds no key'}")
    return key


_ROLES = ("architect", "performance", "security", "testing", "simplicity", "data-modeling", "generalist")


class Roster(Struct, frozen=True):
    """Agents by id, and which of them debate and judge if a debate names none."""

    agents: Mapping[str, agent_pb2.Agent]
    default_team: tuple[str, ...]
    default_judge: str


def roster(config: ConfigFile) -> Roster:
    """Return the file's agents and judge; if the file (or there is none) names no team, an agent for every role."""
    team = tuple(agent.id for agent in config.agents)
    agents: dict[str, agent_pb2.Agent] = {}
    if not config.team_given:
        agents.update((role, agent_pb2.Agent(id=role, name=role, role=role)) for role in _ROLES)
        agents.update(
            _agents_by_id(FileAgent(own.name, own.name, own.name, own_role=own) for own in config.roles)
        )
    agents.update(_agents_by_id((*config.agents, config.judge)))
    return Roster(dict(sorted(agents.items())), team, config.judge.id)


def _agents_by_id(agents: Iterable[FileAgent]) -> Iterable[tuple[str, agent_pb2.Agent]]:
    for agent in agents:
        yield agent.id, agent_message(agent)


class Plan(Struct, frozen=True):
    """The providers that can be reached, what is said of their routes, and who serves agents without routes."""

    providers: tuple[Provider, ...]
    routes: tuple[Route, ...]
    defaults: tuple[str | DefaultRoute, ...]

    @property
    def open_providers(self) -> tuple[str, ...]:
        """Providers of which any model may be named."""
        closed = {local.KIND.name, echo.KIND.name}
        return tuple(each.name for each in self.providers if each.kind not in closed and not each.models)


def plan(
    settings: GatewaySettings,
    config: ConfigFile,
    environment: Mapping[str, str],
    kinds: Mapping[str, ProviderKind] = KINDS,
) -> Plan:
    """Return what the settings and the file add up to; a plan without providers asks for the local model.

    It reads files of keys. Raise ConfigError, naming file, line and variable, if an agent needs a key that is not set, and ConfigurationError
    for a key that cannot be read or sent, or a kind of provider that is not among `kinds`.
    """
    _check_kinds(config, kinds)
    known = _with_settings(settings, environment)
    missing = config.find_missing_key(known)
    if missing is not None:
        raise missing
    providers = tuple(
        found for each in config.providers if (found := _create_provider(each, kinds, known)) is not None
    )
    names = {provider.name for provider in providers}
    routes = tuple(
        Route(
            route.name,
            route.provider,
            route.model,
            context_tokens=route.context_tokens or 0,
            limits=Limits(
                route.concurrency or 0, route.requests_per_minute or 0, route.tokens_per_minute or 0
            ),
            input_price=route.input_price,  # dollars a million tokens are micro-dollars a token
            output_price=route.output_price,
            stronger=route.stronger,
        )
        for route in config.routes
        if route.provider in names
    )
    named = {route.name for route in routes}
    others = (Route(f"{each.name}/{model}", each.name, model) for each in providers for model in each.models)
    allowed = tuple(route for route in others if route.name not in named)
    chosen = Plan(providers, (*routes, *allowed), _choose_defaults(settings, providers, routes, allowed))
    return _add_echo(chosen, settings) if settings.echo else chosen


def _add_echo(chosen: Plan, settings: GatewaySettings) -> Plan:
    """Return the plan with the route of the echo, which agents without routes are sent to if there is no other."""
    if any(each.name == echo.KIND.name for each in chosen.providers):
        raise ConfigurationError(
            f"PARLEY_ECHO: the agents file has a provider {echo.KIND.name} too; give that another name, or unset PARLEY_ECHO"
        )
    provider = echo.provider()
    route = Route(
        f"{provider.name}/{echo.MODEL}",
        provider.name,
        echo.MODEL,
        input_price=0.0,
        output_price=0.0,
        demonstration=True,
    )
    asked = settings.model == route.name
    return Plan(
        (*chosen.providers, provider),
        (*chosen.routes, route),
        (route.name,) if asked or not chosen.defaults else chosen.defaults,
    )


def local_plan(base_url: str, model: str, context_tokens: int, slots: int) -> Plan:
    """Return the one route of the model that runs in a process of ours."""
    provider = local.provider(base_url)
    route = Route(
        f"{provider.name}/{model}",
        provider.name,
        model,
        context_tokens=context_tokens,
        max_output_tokens=context_tokens // 4,
        limits=Limits(concurrency=slots),
        input_price=0.0,
        output_price=0.0,
        local=True,
        demonstration=True,
        continues_answers=True,
    )
    return Plan((provider,), (route,), (route.name,))


def find_ignored_model(settings: GatewaySettings, chosen: Plan) -> str:
    """Return the model of the settings if the small model of this machine answers instead, else nothing."""
    small = [route for route in chosen.routes if route.local]
    names = {name for route in small for name in (route.name, route.model)}
    return settings.model if small and settings.model and settings.model not in names else ""


def found_plan(model: str | None, servers: Sequence[gateway_pb2.FoundServer]) -> Plan:
    """Return the routes of model servers that were found on this machine: the first model of each, in order, or `model`.

    Raise ConfigurationError if none of them lists `model`.
    """
    # `patient`: it may have to load the model first
    providers = tuple(
        Provider(each.provider, openai_compatible.KIND.name, each.base_url, patient=True) for each in servers
    )
    routes = tuple(
        Route(f"{each.provider}/{name}", each.provider, name, input_price=0.0, output_price=0.0)
        for each in servers
        for name in each.models
    )
    if model is None:
        return Plan(providers, routes, tuple(f"{each.provider}/{each.models[0]}" for each in servers))
    named = next((route.name for route in routes if model in (route.name, route.model)), None)
    if named is None:
        listed = ", ".join(route.name for route in routes)
        raise ConfigurationError(
            f"PARLEY_MODEL: no key is set, and the model servers on this machine do not list {model}; "
            f"they list: {listed}"
        )
    return Plan(providers, routes, (named,))


def _with_settings(settings: GatewaySettings, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables with what the settings say of the three that they hold."""
    known = dict(environment)
    for name, secret in (
        ("OPENAI_API_KEY", settings.openai_api_key),
        ("OPENROUTER_API_KEY", settings.openrouter_api_key),
    ):
        known[name] = secret.get_secret_value() if secret is not None else ""
    known["OPENAI_BASE_URL"] = settings.openai_base_url or ""
    return known


def _check_kinds(config: ConfigFile, kinds: Mapping[str, ProviderKind]) -> None:
    problems = [
        f"{config.places.of(f'providers[{number}].kind')}: there is no kind {each.kind}; kinds: {', '.join(sorted(kinds))}"
        for number, each in enumerate(config.providers)
        if each.kind not in kinds
    ]
    if problems:
        raise ConfigurationError(*problems)


def _create_provider(
    given: FileProvider, kinds: Mapping[str, ProviderKind], known: Mapping[str, str]
) -> Provider | None:
    """Return the provider, or None if the key that it needs is not set."""
    kind = kinds[given.kind]
    key = known.get(given.api_key_env, "") if given.api_key_env else ""
    if given.api_key_file is not None:
        key = read_key(given.api_key_file)
    base_url = kind.base_url(given, known, has_key=bool(key))
    if base_url is None:
        return None
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError(
            f"{given.api_key_file or given.api_key_env}: holds characters that no key has; look for a line end or a quote of print"
        )
    return kind.provider(given, base_url, key, home_at(kinds, base_url), api_at(kinds, base_url))


def _choose_defaults(
    settings: GatewaySettings,
    providers: tuple[Provider, ...],
    routes: tuple[Route, ...],
    allowed: tuple[Route, ...],
) -> tuple[str | DefaultRoute, ...]:
    if not providers:
        return ()
    names = {route.name for route in (*routes, *allowed)}
    if settings.model is not None:
        provider, _, model = settings.model.partition("/")
        if not model or provider not in {each.name for each in providers}:
            provider, model = providers[0].name, settings.model
        restricted = next(each.models for each in providers if each.name == provider)
        if settings.model not in names and restricted and model not in restricted:
            raise ConfigurationError(
                f"PARLEY_MODEL: {provider} may be asked for these models alone: {', '.join(restricted)}"
            )
        if settings.model == f"{provider}/{model}" or settings.model in names:
            return (settings.model,)
        return (DefaultRoute(provider, model),)
    if routes:
        return tuple(route.name for route in routes)
    return tuple(DefaultRoute(each.name, _usual_model(each)) for each in providers)


def _usual_model(provider: Provider) -> str | None:
    if not provider.models or provider.usual_model in provider.models:
        return provider.usual_model
    return provider.models[0]


class Offers:
    """Makes offers of plans, with one endpoint for a provider as long as nothing about it changes."""

    def __init__(
        self, settings: GatewaySettings, kinds: Mapping[str, ProviderKind], stack: AsyncExitStack
    ) -> None:
        self._kinds = kinds
        self._prices_file = settings.prices_file
        self._context_tokens = settings.context_tokens or 0
        self._published_prices = PublishedPrices()
        self._stack = stack
        self._endpoints: dict[str, Endpoint] = {}
        self._limits = EndpointLimits(
            settings.connect_timeout_seconds,
            settings.first_token_timeout_seconds,
            settings.idle_timeout_seconds,
            settings.max_connections,
            settings.trace_content,
            ByteBudget(settings.sending_bytes),
        )

    async def create(self, chosen: Plan) -> Offer:
        """Return the offer of a plan. Raise ConfigurationError for a file of prices or an endpoint that cannot be used."""
        sellers = {each.name: Seller(each.base_url, each.price_list) for each in chosen.providers}
        prices = await asyncio.to_thread(load_prices, self._prices_file, sellers, self._published_prices)
        self._endpoints = {each.name: self._get_endpoint(each) for each in chosen.providers}
        return Offer(
            self._endpoints,
            chosen.routes,
            chosen.open_providers,
            chosen.defaults,
            prices,
            self._context_tokens,
        )

    def _get_endpoint(self, provider: Provider) -> Endpoint:
        known = self._endpoints.get(provider.name)
        if known is not None and known.provider == provider:
            return known
        try:
            made = self._kinds[provider.kind].connect(provider, self._limits)
        except (httpx2.InvalidURL, ValueError) as error:
            raise ConfigurationError(f"provider {provider.name}: cannot be asked: {error}") from None
        self._stack.push_async_callback(made.aclose)  # calls that run may still be on it until the end
        return made
