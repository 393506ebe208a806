"""From settings and the agents file to providers, routes and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import SecretStr

from parley.config import ConfigFile
from parley.config import Provider as FileProvider
from parley.gateway.endpoint import Provider
from parley.gateway.limits import Limits
from parley.gateway.routes import DefaultRoute, Route
from parley.gateway.settings import GatewaySettings
from parley.gateway.wire import Api
from parley.runtime.errors import ConfigurationError

__all__ = ["LOCAL", "Plan", "local_plan", "plan", "priced_as"]

LOCAL = "local"
"""Name of the provider that is the model on this machine."""

_OPENAI_URL = "https://api.openai.com/v1"
_OPENROUTER_URL = "https://openrouter.ai/api/v1"
_OPENAI_MODEL = "gpt-5-mini"
"""Small, current, and good enough to debate; PARLEY_MODEL names another."""
_OPENROUTER_MODEL = f"openai/{_OPENAI_MODEL}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The providers that can be reached, what is said of their routes, and who serves agents without routes."""

    providers: tuple[Provider, ...]
    routes: tuple[Route, ...]
    defaults: tuple[str | DefaultRoute, ...]

    @property
    def open_providers(self) -> tuple[str, ...]:
        """Providers of which any model may be named."""
        return tuple(provider.name for provider in self.providers if provider.kind != LOCAL)


def plan(settings: GatewaySettings, config: ConfigFile, environment: Mapping[str, str]) -> Plan:
    """What the settings and the file add up to; a plan without providers asks for the local model.

    Raises ConfigError, naming file, line and variable, if an agent needs a key that is not set, and ConfigurationError
    for one that cannot be sent.
    """
    known = _environment(settings, environment)
    missing = config.missing_key(known)
    if missing is not None:
        raise missing
    providers = tuple(
        found for each in config.providers if (found := _provider(each, settings, known)) is not None
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
    return Plan(providers, routes, _defaults(settings, providers, routes))


def local_plan(base_url: str, model: str, context_tokens: int, slots: int) -> Plan:
    """The one route of the model on this machine."""
    provider = Provider(
        LOCAL,
        LOCAL,
        base_url,
        api=Api.CHAT,  # its Responses API ignores the schema
        keep_alive=False,  # it drops kept connections after a stream
    )
    route = Route(
        f"{LOCAL}/{model}",
        LOCAL,
        model,
        context_tokens=context_tokens,
        max_output_tokens=context_tokens // 4,
        limits=Limits(concurrency=slots),
        input_price=0.0,
        output_price=0.0,
        local=True,
    )
    return Plan((provider,), (route,), (route.name,))


def _environment(settings: GatewaySettings, environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables with what the settings say of the three that they hold."""
    known = dict(environment)
    for name, secret in (
        ("OPENAI_API_KEY", settings.openai_api_key),
        ("OPENROUTER_API_KEY", settings.openrouter_api_key),
    ):
        known[name] = secret.get_secret_value() if secret is not None else ""
    known["OPENAI_BASE_URL"] = settings.openai_base_url or ""
    return known


def _provider(given: FileProvider, settings: GatewaySettings, known: Mapping[str, str]) -> Provider | None:
    """The provider, or None where the key that it needs is not set."""
    key = known.get(given.api_key_env, "") if given.api_key_env else ""
    base_url = given.base_url
    if given.kind == "openai" and base_url is None:
        base_url = settings.openai_base_url or (_OPENAI_URL if key else None)
    elif given.kind == "openrouter" and base_url is None:
        base_url = _OPENROUTER_URL if key else None
    if base_url is None or (given.base_url is not None and given.api_key_env and not key):
        return None
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError(
            f"{given.api_key_env}: holds characters that no key has; look for a line end or a quote of print"
        )
    return Provider(
        given.name,
        given.kind,
        base_url,
        SecretStr(key) if key else None,
        given.headers,
        api=Api.RESPONSES if base_url == _OPENAI_URL else None,
        routing=given.routing,
    )


def _defaults(
    settings: GatewaySettings, providers: tuple[Provider, ...], routes: tuple[Route, ...]
) -> tuple[str | DefaultRoute, ...]:
    if not providers:
        return ()
    names = {route.name for route in routes}
    if settings.model is not None:
        provider, _, model = settings.model.partition("/")
        if settings.model in names or (model and provider in {each.name for each in providers}):
            return (settings.model,)
        return (DefaultRoute(providers[0].name, settings.model),)
    if routes:
        return tuple(route.name for route in routes)
    return tuple(DefaultRoute(provider.name, _usual_model(provider)) for provider in providers)


def _usual_model(provider: Provider) -> str | None:
    return {_OPENAI_URL: _OPENAI_MODEL, _OPENROUTER_URL: _OPENROUTER_MODEL}.get(provider.base_url)


def priced_as(provider: Provider) -> str | None:
    """Under which name the built-in prices hold for a provider: only those of the sellers themselves are known."""
    return {_OPENAI_URL: "openai", _OPENROUTER_URL: "openrouter"}.get(provider.base_url.rstrip("/"))
