"""A configuration, ready to be used: defaults filled in, agents chosen, prompts read."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from parley.config.errors import ConfigError
from parley.config.places import Places
from parley.config.prompts import Prompt
from parley.config.roles import OwnRole, find_own_role

if TYPE_CHECKING:  # heavy, as all that reads: a command without a file needs none of it
    from parley.config.entries import DebateEntry, SummarizationEntry

DEFAULT_TEAM: Final = ("architect", "performance")
"""The roles that debate if none are named."""


class Agent(Struct, frozen=True):
    """An agent or the judge.

    Attributes:
        routes: In the order they are tried. Empty: the gateway's default routes.
        tool_call_limit: Calls of tools in one contribution. 0: the default.
        own_role: Its role, if that is one of the file or of the folder `roles`.
        path: Its place in the file, such as `agents[1]`. Empty: it is not in a file.
        evaluation_prompt: How it judges in an evaluation. None: as its role does.
        timeout_seconds: What its call in an evaluation may take. None: what any call may.
        stronger: Of the judge, whether its model is stronger than the agents'.
    """

    id: str
    name: str
    role: str
    routes: tuple[str, ...] = ()
    temperature: float | None = None
    system_prompt: Prompt | None = None
    summary_prompt: Prompt | None = None
    clarification_prompt: Prompt | None = None
    summarization: "SummarizationEntry | None" = None
    path: str = ""
    tools: tuple[str, ...] = ()
    tool_call_limit: int = 0
    own_role: OwnRole | None = None
    evaluation_prompt: Prompt | None = None
    timeout_seconds: float | None = None
    stronger: bool = False


class Provider(Struct, frozen=True):
    """An endpoint that serves models.

    Attributes:
        kind: `openai`, `openrouter`, `azure-openai`, `openai-compatible` or another one that the gateway knows.
        base_url: None: the kind's own.
        api_key_env: Name of the variable that holds the key. None: no key is sent.
        api: `responses`, `chat`, or `auto`: what is known or found out.
        headers: Sent with every request.
        routing: How OpenRouter chooses among its own providers.
        api_key_file: File that holds the key, in place of the variable.
        models: Those that may be asked for there. Empty: any.
        declared: Whether the file declares it, rather than its being there by itself.
    """

    name: str
    kind: str
    base_url: str | None = None
    api_key_env: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    declared: bool = True
    api: str = "auto"
    routing: Mapping[str, Any] = field(default_factory=dict)
    api_key_file: Path | None = None
    models: tuple[str, ...] = ()

    def serves(self, model: str) -> bool:
        """Return whether the model may be asked for there."""
        return not self.models or model in self.models


OWN_PROVIDERS: Final = (
    Provider("openai", "openai", api_key_env="OPENAI_API_KEY", declared=False),
    Provider("openrouter", "openrouter", api_key_env="OPENROUTER_API_KEY", declared=False),
)
"""Those that are there without a declaration."""


class Route(Struct, frozen=True):
    """A model at a provider.

    Attributes:
        context_tokens: Tokens of prompt and answer together. None: unknown.
        concurrency: Calls at a time. None: no bound; so with requests and tokens a minute.
        input_price: US dollars a million tokens read. None: unknown.
        output_price: US dollars a million tokens written. None: unknown.
        stronger: Whether its model is stronger than those of other routes.
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
    stronger: bool = False


class ConfigFile(Struct, frozen=True):
    """A configuration.

    Attributes:
        agents: The enabled ones, in order, at least one.
        evaluators: The enabled ones, in order, of a file that has such a section; else none.
        team_given: Whether the file has an `agents` section.
        judge_given: Whether the file has a `judge` section.
        debate: None if there is no file.
        providers: The declared ones, then `openai` and `openrouter` if they are not among them.
        routes: Those of the `routes` section, in order.
        notices: What was passed over or filled in, one line each.
        empty: Whether the file says nothing at all.
        roles: Those of the `roles` section, then those of the folder `roles`.
        gaps: Those of the notices that say what holds if `agents`, `judge` or `debate` is not there.
        reaching: What needs trust in a file that just lies there: files outside its folder, and who is asked, one line each.
        warnings: What could not be used and was replaced, one line each.
    """

    agents: tuple[Agent, ...]
    judge: Agent
    debate: "DebateEntry | None"
    providers: tuple[Provider, ...]
    routes: tuple[Route, ...]
    notices: tuple[str, ...]
    warnings: tuple[str, ...]
    places: Places
    team_given: bool
    judge_given: bool
    empty: bool
    gaps: Mapping[str, str]
    evaluators: tuple[Agent, ...] = ()
    roles: tuple[OwnRole, ...] = ()
    reaching: tuple[str, ...] = ()

    @property
    def format(self) -> str | None:
        """The format that the file names."""
        return self.debate.format if self.debate is not None else None

    @property
    def wants_clarifications(self) -> bool:
        """Whether the file lets the agents ask before they begin."""
        return self.debate is not None and bool(self.debate.interactive_clarifications)

    def find_own_role(self, name: str) -> OwnRole | None:
        """Return the role of one's own that goes by a name or an alias."""
        return find_own_role(self.roles, name)

    def find_missing_key(
        self, environment: Mapping[str, str], agents: Sequence[Agent] | None = None
    ) -> ConfigError | None:
        """Return an error for the first agent whose provider lacks its key in `environment`; None if none does.

        Look at `agents`, else at all and the judge. A provider with a base URL of its own
        needs no key unless it names a variable.
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
