"""The providers and routes of a file, and the routes that an agent names."""

from pathlib import Path
from typing import Final

from parley.config.endpoints import describe_key, find_header_problem, find_key_problem, find_url_problem
from parley.config.entries import FileEntry, ModelEntry, ProviderEntry, RouteEntry
from parley.config.file import OWN_PROVIDERS, Provider, Route
from parley.config.findings import Findings

_AZURE_KEY: Final = "AZURE_OPENAI_API_KEY"
_FORBIDDEN_HEADERS: Final = frozenset(
    {"authorization", "proxy-authorization", "api-key", "x-api-key", "cookie"}
)


class Routes:
    """What a file says of the ways to models.

    Attributes:
        providers: The declared ones, then `openai` and `openrouter` if they are not among them.
        routes: Those of the `routes` section, in order.
    """

    def __init__(self, file: FileEntry, folder: Path, findings: Findings) -> None:
        """Note in `findings` what is wrong. Files of keys are taken from the `folder`."""
        self._file = file
        self._folder = folder
        self._findings = findings
        self._noted: list[Provider] = []
        self.providers = self._build_providers()
        self.routes = self._build_routes()

    def select_routes(self, entry: ModelEntry, path: str) -> tuple[str, ...]:
        """Return the routes that an agent names, in the order in which they are tried; none: the default routes."""
        if entry.routes:
            if entry.model or entry.provider:
                self._findings.add_problem(f"{path}.routes", "say routes, or model and provider, not both")
            for number, route in enumerate(entry.routes):
                self._check_route(route, f"{path}.routes[{number}]")
            return entry.routes
        if entry.model:
            provider = entry.provider or "openai"
            self._note_destination(entry.provider, f"{path}.provider")
            if self._check_provider(provider, f"{path}.provider" if entry.provider else f"{path}.model"):
                self._check_model(provider, entry.model, f"{path}.model")
            return (f"{provider}/{entry.model}",)
        if entry.provider:
            self._note_destination(entry.provider, f"{path}.provider")
            self._check_provider(entry.provider, f"{path}.provider")
            of_provider = tuple(route.name for route in self.routes if route.provider == entry.provider)
            if not of_provider:
                self._findings.add_problem(f"{path}.provider", "needs a model too")
            return of_provider
        return ()

    def _check_route(self, name: str, path: str) -> None:
        provider, slash, model = name.partition("/")
        if name in {route.name for route in self.routes}:
            return
        if slash and model and provider in self._provider_names():
            self._note_destination(provider, path)
            self._check_model(provider, model, path)
            return
        known = [route.name for route in self.routes] + [f"{each}/MODEL" for each in self._provider_names()]
        self._findings.add_problem(path, f"unknown route {name}; known routes: {', '.join(known)}")

    def _note_destination(self, name: str | None, path: str) -> None:
        """Note that the file chooses who is asked, once for each provider that it does not declare."""
        chosen = next((each for each in self.providers if each.name == name and not each.declared), None)
        if chosen is None or chosen.api_key_env is None or chosen in self._noted:
            return
        self._noted.append(chosen)
        self._findings.add_destination(path, f"{name}, {describe_key(chosen.api_key_env)}")

    def _check_model(self, provider: str, model: str, path: str) -> None:
        models = next(each.models for each in self.providers if each.name == provider)
        if models and model not in models:
            self._findings.add_problem(
                path, f"{provider} may be asked for these models alone: {', '.join(models)}"
            )

    def _check_provider(self, name: str, path: str) -> bool:
        known = name in self._provider_names()
        if not known:
            self._findings.add_problem(
                path, f"unknown provider {name}; known providers: {', '.join(self._provider_names())}"
            )

        return known

    def _provider_names(self) -> list[str]:
        return [provider.name for provider in self.providers]

    def _build_providers(self) -> tuple[Provider, ...]:
        declared: list[Provider] = []
        for number, entry in enumerate(self._file.providers):
            path = f"providers[{number}]"
            if any(entry.name == other.name for other in declared):
                self._findings.add_problem(
                    f"{path}.name", f"{entry.name} is the name of another provider too"
                )
            target = (entry.base_url, entry.api_key_env, entry.api_key_file)
            self._findings.add_destination(path, " ".join(filter(None, target)))
            self._check_endpoint(entry, path)
            self._check_key(entry, path)
            declared.append(_build_provider(entry, self._folder))
        names = {provider.name for provider in declared}
        return (*declared, *(provider for provider in OWN_PROVIDERS if provider.name not in names))

    def _check_endpoint(self, entry: ProviderEntry, path: str) -> None:
        if entry.kind in {"openai-compatible", "azure-openai"} and entry.base_url is None:
            self._findings.add_problem(path, f"an {entry.kind} provider needs a base_url")
        if entry.routing and entry.kind != "openrouter":
            self._findings.add_problem(f"{path}.routing", "only an openrouter provider takes it")
        if entry.base_url is not None and (wrong := find_url_problem(entry.base_url)) is not None:
            self._findings.add_problem(f"{path}.base_url", wrong)

    def _check_key(self, entry: ProviderEntry, path: str) -> None:
        if (wrong := _why_key_stays(entry)) is not None:
            self._findings.add_problem(f"{path}.{'api_key_env' if entry.api_key_env else 'base_url'}", wrong)
        if entry.api_key_env and entry.api_key_file:
            self._findings.add_problem(f"{path}.api_key_file", "say api_key_env or api_key_file, not both")
        for header in entry.headers:
            if (wrong := find_header_problem(header)) is not None:
                self._findings.add_problem(f"{path}.headers.{header}", wrong)
            if header.lower() in _FORBIDDEN_HEADERS:
                self._findings.add_problem(
                    f"{path}.headers.{header}", "a key does not belong in a file; use api_key_env"
                )

    def _build_routes(self) -> tuple[Route, ...]:
        routes: list[Route] = []
        for number, entry in enumerate(self._file.routes):
            path = f"routes[{number}]"
            self._note_destination(entry.provider, f"{path}.provider")
            if self._check_provider(entry.provider, f"{path}.provider"):
                self._check_model(entry.provider, entry.model, f"{path}.model")
            route = _build_route(entry)
            if any(route.name == other.name for other in routes):
                self._findings.add_problem(f"{path}.name", f"{route.name} is the name of another route too")
            routes.append(route)
        return tuple(routes)


def _key_variable(entry: ProviderEntry) -> str | None:
    if entry.api_key_env is not None or entry.api_key_file is not None:
        return entry.api_key_env
    if entry.kind == "azure-openai":
        return _AZURE_KEY
    if entry.base_url is not None:
        return None
    return next((each.api_key_env for each in OWN_PROVIDERS if each.kind == entry.kind), None)


def _why_key_stays(entry: ProviderEntry) -> str | None:
    variable = _key_variable(entry)
    if not variable or entry.base_url is None or find_url_problem(entry.base_url) is not None:
        return None
    return find_key_problem(variable, entry.base_url)


def _build_provider(entry: ProviderEntry, folder: Path) -> Provider:
    return Provider(
        entry.name,
        entry.kind,
        entry.base_url,
        _key_variable(entry),
        dict(entry.headers),
        api=entry.api,
        routing=dict(entry.routing),
        api_key_file=folder / entry.api_key_file if entry.api_key_file else None,
        models=tuple(dict.fromkeys(entry.models)),
    )


def _build_route(entry: RouteEntry) -> Route:
    name = entry.name or f"{entry.provider}/{entry.model}"
    return Route(
        name,
        entry.provider,
        entry.model,
        entry.context_tokens,
        entry.input_price,
        entry.output_price,
        entry.concurrency,
        entry.requests_per_minute,
        entry.tokens_per_minute,
        entry.stronger,
    )
