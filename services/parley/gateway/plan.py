"""From settings and the agents file to providers, routes and defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parley.config import ConfigFile
from parley.config import Provider as FileProvider
from parley.gateway.discovery import FoundServer
from parley.gateway.key_files import read_key
from parley.gateway.providers import echo, local, openai_compatible
from parley.gateway.providers.kind import ProviderKind
from parley.gateway.providers.kinds import KINDS, api_at, home_at
from parley.gateway.routing.queue import Limits
from parley.gateway.routing.route import DefaultRoute, Route
from parley.gateway.settings import GatewaySettings
from parley.gateway.wire.provider import Provider
from parley.runtime.errors import ConfigurationError

__all__ = ["Plan", "found_plan", "local_plan", "plan"]


@dataclass(frozen=True, slots=True)
class Plan:
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

    It reads files of keys. Raises ConfigError, naming file, line and variable, if an agent needs a key that is not set, and ConfigurationError
    for a key that cannot be read or sent, or a kind of provider that is not among `kinds`.
    """
    _check_kinds(config, kinds)
    known = _environment(settings, environment)
    missing = config.missing_key(known)
    if missing is not None:
        raise missing
    providers = tuple(
        found for each in config.providers if (found := _provider(each, kinds, known)) is not None
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
        )
        for route in config.routes
        if route.provider in names
    )
    named = {route.name for route in routes}
    others = (Route(f"{each.name}/{model}", each.name, model) for each in providers for model in each.models)
    allowed = tuple(route for route in others if route.name not in named)
    chosen = Plan(providers, (*routes, *allowed), _defaults(settings, providers, routes, allowed))
    return _with_echo(chosen, settings) if settings.echo else chosen


def _with_echo(chosen: Plan, settings: GatewaySettings) -> Plan:
    """Return the plan with the route of the echo, which agents without routes are sent to where there is no other."""
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


def found_plan(model: str | None, servers: Sequence[FoundServer]) -> Plan:
    """Return the routes of model servers that were found on this machine: the first model of each, in order, or `model`.

    Raises ConfigurationError where none of them lists `model`.
    """
    providers = tuple(
        Provider(each.provider, openai_compatible.KIND.name, each.base_url, patient=True) for each in servers
    )  # patient: it may have to load the model first
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


def _environment(settings: GatewaySettings, environment: Mapping[str, str]) -> Mapping[str, str]:
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


def _provider(
    given: FileProvider, kinds: Mapping[str, ProviderKind], known: Mapping[str, str]
) -> Provider | None:
    """Return the provider, or None where the key that it needs is not set."""
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


def _defaults(
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
