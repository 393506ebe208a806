"""A configuration, ready to be used: defaults filled in, agents chosen, prompts read."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from parley.config.endpoints import why_no_header_name, why_no_url
from parley.config.entries import (
    AgentEntry,
    DebateEntry,
    FileEntry,
    JudgeEntry,
    ModelEntry,
    ProviderEntry,
    RouteEntry,
    SummarizationEntry,
)
from parley.config.errors import ConfigError
from parley.config.prompts import Prompt, load_prompt
from parley.config.reading import Places, check
from parley.config.roles import canonical_role
from parley.config.source import parse, read

__all__ = [
    "DEFAULT_TEAM",
    "Agent",
    "ConfigFile",
    "Provider",
    "Route",
    "defaults",
    "load",
    "loads",
]

DEFAULT_TEAM: Final = ("architect", "performance")
_OPENAI_KEY: Final = "OPENAI_API_KEY"
_AZURE_KEY: Final = "AZURE_OPENAI_API_KEY"
_OPENROUTER_KEY: Final = "OPENROUTER_API_KEY"
_FORBIDDEN_HEADERS: Final = frozenset(
    {"authorization", "proxy-authorization", "api-key", "x-api-key", "cookie"}
)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent or the judge.

    Attributes:
        routes: In the order they are tried. Empty: the gateway's default routes.
        tool_call_limit: Calls of tools in one contribution. 0: the default.
        path: Its place in the file, such as `agents[1]`. Empty: it is not in a file.
    """

    id: str
    name: str
    role: str
    routes: tuple[str, ...] = ()
    temperature: float | None = None
    system_prompt: Prompt | None = None
    summary_prompt: Prompt | None = None
    summarization: SummarizationEntry | None = None
    path: str = ""
    tools: tuple[str, ...] = ()
    tool_call_limit: int = 0


@dataclass(frozen=True, slots=True)
class Provider:
    """An endpoint that serves models.

    Attributes:
        kind: `openai`, `openrouter`, `azure-openai` or `openai-compatible`.
        base_url: None: the kind's own.
        api_key_env: Name of the variable that holds the key. None: no key is sent.
        headers: Sent with every request.
        routing: How OpenRouter chooses among its own providers.
        declared: Whether the file declares it, rather than its being there by itself.
    """

    name: str
    kind: str
    base_url: str | None = None
    api_key_env: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    declared: bool = True
    routing: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """A model at a provider.

    Attributes:
        context_tokens: Tokens of prompt and answer together. None: unknown.
        concurrency: Calls at a time. None: no bound; so with requests and tokens a minute.
        input_price: US dollars a million tokens read. None: unknown.
        output_price: US dollars a million tokens written. None: unknown.
    """

    name: str
    provider: str
    model: str
    context_tokens: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    concurrency: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration.

    Attributes:
        agents: The enabled ones, in order, at least one.
        team_given: Whether the file has an `agents` section.
        judge_given: Whether the file has a `judge` section.
        providers: The declared ones, then `openai` and `openrouter` where they are not among them.
        routes: Those of the `routes` section, in order.
        notices: What was passed over or filled in, one line each.
        empty: Whether the file says nothing at all.
        gaps: Those of the notices that say what holds where `agents`, `judge` or `debate` is not there.
        warnings: What could not be used and was replaced, one line each.
    """

    agents: tuple[Agent, ...]
    judge: Agent
    debate: DebateEntry
    providers: tuple[Provider, ...]
    routes: tuple[Route, ...]
    notices: tuple[str, ...]
    warnings: tuple[str, ...]
    places: Places
    team_given: bool
    judge_given: bool
    empty: bool
    gaps: Mapping[str, str]

    def missing_key(
        self, environment: Mapping[str, str], agents: Sequence[Agent] | None = None
    ) -> ConfigError | None:
        """The first agent (of `agents`, else of all, and the judge) whose provider lacks its key in `environment`.

        A provider with a base URL of its own needs no key unless it names a variable.
        """
        by_name = {provider.name: provider for provider in self.providers}
        route_providers = {route.name: route.provider for route in self.routes}
        for agent in agents if agents is not None else (*self.agents, self.judge):
            for route in agent.routes:
                provider = by_name[route_providers.get(route) or route.partition("/")[0]]
                variable = provider.api_key_env
                if variable is None or environment.get(variable):
                    continue
                if provider.kind == "openai" and environment.get("OPENAI_BASE_URL"):
                    continue
                place = self.places.of(_route_key(agent, self.places))
                return ConfigError(f"{place}: provider {provider.name} needs {variable}, which is not set")
        return None


def _route_key(agent: Agent, places: Places) -> str:
    keys = (f"{agent.path}.{key}" for key in ("provider", "model", "routes"))
    return next((key for key in keys if key in places.lines), agent.path)


def load(path: Path) -> ConfigFile:
    """Reads a YAML file, or JSON where its name ends in `.json`; raises ConfigError."""
    return loads(read(path), str(path), path.parent)


def loads(text: str, name: str, folder: Path) -> ConfigFile:
    """As `load`, of text: `name` stands in messages, prompt paths are taken from `folder`."""
    entry, places, notices = check(parse(text, name), name)
    return _Build(entry, places, folder, list(notices)).config()


@functools.cache
def defaults() -> ConfigFile:
    """What holds where there is no file."""
    built = _Build(FileEntry(), Places("", {}), Path(), []).config()
    return dataclasses.replace(built, notices=(), gaps={})


class _Build:
    def __init__(self, entry: FileEntry, places: Places, folder: Path, notices: list[str]) -> None:
        self._entry = entry
        self._places = places
        self._folder = folder
        self._notices = notices
        self._gaps: dict[str, str] = {}
        self._warnings: list[str] = []
        self._problems: list[tuple[int, str]] = []
        self._providers: tuple[Provider, ...] = ()
        self._routes: tuple[Route, ...] = ()

    def config(self) -> ConfigFile:
        entry = self._entry
        self._providers = self._all_providers()
        self._routes = self._all_routes()
        agents, judge = self._agents(), self._judge()
        if judge.id in {agent.id for agent in agents}:
            self._problem(
                "judge.id" if entry.judge else "agents", f"{judge.id} is the id of an agent and of the judge"
            )
        if entry.debate is None:
            self._gap("debate", "3 rounds, as always")
        if self._problems:
            raise ConfigError(*(text for _, text in sorted(self._problems)))
        return ConfigFile(
            agents=agents,
            judge=judge,
            debate=entry.debate or DebateEntry(),
            providers=self._providers,
            routes=self._routes,
            notices=tuple(self._notices),
            warnings=tuple(self._warnings),
            places=self._places,
            team_given=entry.agents is not None,
            judge_given=entry.judge is not None,
            empty=entry == FileEntry(),
            gaps=self._gaps,
        )

    def _problem(self, path: str, text: str) -> None:
        self._problems.append((self._places.line(path), f"{self._places.of(path)}: {text}"))

    def _gap(self, section: str, text: str) -> None:
        self._gaps[section] = f"{self._places.name}: no {section} section: {text}"
        self._notices.append(self._gaps[section])

    def _agents(self) -> tuple[Agent, ...]:
        if self._entry.agents is None:
            self._gap("agents", f"{' and '.join(DEFAULT_TEAM)} debate")
            return tuple(Agent(role, role, role) for role in DEFAULT_TEAM)
        agents: list[Agent] = []
        for number, entry in enumerate(self._entry.agents):
            if not entry.enabled:
                continue
            path = f"agents[{number}]"
            identity = entry.id or canonical_role(entry.role)
            if any(identity == other.id for other in agents):
                self._problem(f"{path}.id", f"{identity} is the id of another agent too")
            agents.append(self._agent(entry, identity, path))
        if not agents:
            self._problem("agents", "no agent is left; enable one")
        return tuple(agents)

    def _judge(self) -> Agent:
        entry = self._entry.judge
        if entry is None:
            self._gap("judge", "a generalist judges")
            return self._agent(JudgeEntry(), "judge", "")
        if not entry.enabled:
            self._problem("judge.enabled", "the judge cannot be disabled")
        return self._agent(entry, entry.id, "judge")

    def _agent(self, entry: AgentEntry | JudgeEntry, identity: str, path: str) -> Agent:
        return Agent(
            id=identity,
            name=entry.name or identity,
            role=canonical_role(entry.role),
            routes=self._agent_routes(entry, path),
            temperature=entry.temperature,
            system_prompt=self._prompt(path, "system_prompt_path", entry.system_prompt_path),
            summary_prompt=self._prompt(path, "summary_prompt_path", entry.summary_prompt_path),
            summarization=entry.summarization,
            path=path,
            tools=self._tools(entry, path),
            tool_call_limit=entry.tool_call_limit or 0,
        )

    def _tools(self, entry: ModelEntry, path: str) -> tuple[str, ...]:
        for number, tool in enumerate(entry.tools):
            if tool in entry.tools[:number]:
                self._problem(f"{path}.tools[{number}]", f"{tool} is there twice")
        return entry.tools

    def _prompt(self, path: str, key: str, written: str | None) -> Prompt | None:
        if written is None:
            return None
        prompt = load_prompt(self._folder, written)
        if isinstance(prompt, Prompt):
            return prompt
        self._warnings.append(f"{self._places.of(f'{path}.{key}')}: {prompt}; the built-in prompt is used")
        return None

    def _agent_routes(self, entry: ModelEntry, path: str) -> tuple[str, ...]:
        if entry.routes:
            if entry.model or entry.provider:
                self._problem(f"{path}.routes", "say routes, or model and provider, not both")
            for number, route in enumerate(entry.routes):
                self._known_route(route, f"{path}.routes[{number}]")
            return entry.routes
        if entry.model:
            provider = entry.provider or "openai"
            self._known_provider(provider, f"{path}.provider" if entry.provider else f"{path}.model")
            return (f"{provider}/{entry.model}",)
        if entry.provider:
            self._known_provider(entry.provider, f"{path}.provider")
            of_provider = tuple(route.name for route in self._routes if route.provider == entry.provider)
            if not of_provider:
                self._problem(f"{path}.provider", "needs a model beside it")
            return of_provider
        return ()

    def _known_route(self, name: str, path: str) -> None:
        provider, slash, model = name.partition("/")
        if name in {route.name for route in self._routes} or (
            slash and model and provider in self._provider_names()
        ):
            return
        known = [route.name for route in self._routes] + [f"{each}/MODEL" for each in self._provider_names()]
        self._problem(path, f"unknown route {name}; known routes: {', '.join(known)}")

    def _known_provider(self, name: str, path: str) -> None:
        if name not in self._provider_names():
            self._problem(
                path, f"unknown provider {name}; known providers: {', '.join(self._provider_names())}"
            )

    def _provider_names(self) -> list[str]:
        return [provider.name for provider in self._providers]

    def _all_providers(self) -> tuple[Provider, ...]:
        declared: list[Provider] = []
        for number, entry in enumerate(self._entry.providers):
            path = f"providers[{number}]"
            if any(entry.name == other.name for other in declared):
                self._problem(f"{path}.name", f"{entry.name} is the name of another provider too")
            if entry.kind in {"openai-compatible", "azure-openai"} and entry.base_url is None:
                self._problem(path, f"an {entry.kind} provider needs a base_url")
            if entry.routing and entry.kind != "openrouter":
                self._problem(f"{path}.routing", "only an openrouter provider takes it")
            if entry.base_url is not None and (wrong := why_no_url(entry.base_url)) is not None:
                self._problem(f"{path}.base_url", wrong)
            for header in entry.headers:
                if (wrong := why_no_header_name(header)) is not None:
                    self._problem(f"{path}.headers.{header}", wrong)
                if header.lower() in _FORBIDDEN_HEADERS:
                    self._problem(
                        f"{path}.headers.{header}", "a key does not belong in a file; use api_key_env"
                    )
            declared.append(_provider(entry))
        names = {provider.name for provider in declared}
        own = (
            Provider("openai", "openai", api_key_env=_OPENAI_KEY, declared=False),
            Provider("openrouter", "openrouter", api_key_env=_OPENROUTER_KEY, declared=False),
        )
        return (*declared, *(provider for provider in own if provider.name not in names))

    def _all_routes(self) -> tuple[Route, ...]:
        routes: list[Route] = []
        for number, entry in enumerate(self._entry.routes):
            path = f"routes[{number}]"
            self._known_provider(entry.provider, f"{path}.provider")
            route = _route(entry)
            if any(route.name == other.name for other in routes):
                self._problem(f"{path}.name", f"{route.name} is the name of another route too")
            routes.append(route)
        return tuple(routes)


def _provider(entry: ProviderEntry) -> Provider:
    key = entry.api_key_env
    if key is None and entry.base_url is None:
        key = {"openai": _OPENAI_KEY, "openrouter": _OPENROUTER_KEY}.get(entry.kind)
    if key is None and entry.kind == "azure-openai":
        key = _AZURE_KEY
    return Provider(
        entry.name, entry.kind, entry.base_url, key, dict(entry.headers), routing=dict(entry.routing)
    )


def _route(entry: RouteEntry) -> Route:
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
    )
