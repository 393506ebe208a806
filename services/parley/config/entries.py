"""The configuration file as it is written: every key, its type and its range.

The reader, its messages and `schema.json` all come from these declarations. Keys are snake_case; each is accepted
in camelCase too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import Field

__all__ = [
    "PASSED_OVER",
    "RENAMED",
    "AgentEntry",
    "DebateEntry",
    "FileEntry",
    "JudgeEntry",
    "ModelEntry",
    "ProviderEntry",
    "RouteEntry",
    "SummarizationEntry",
    "TerminationEntry",
]


Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$", description="Up to 32 of a-z, 0-9 and `-`.")]
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=512)]
Label = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=64)]
Seconds = Annotated[float, Field(ge=1, le=3600, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class SummarizationEntry:
    """When an agent's own history is summarized before a round."""

    enabled: Annotated[bool | None, Field(description="Whether summaries are made. Default: true.")] = None
    threshold: Annotated[
        int | None, Field(ge=1, le=10_000_000, description="Characters from which it is. Default: 5000.")
    ] = None
    max_length: Annotated[
        int | None, Field(ge=1, le=1_000_000, description="Characters of a summary at most. Default: 2500.")
    ] = None
    method: Annotated[Literal["length-based"] | None, Field(description="How it is decided.")] = None


Tool = Literal["context_search", "file_read", "list_files"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """What agents and the judge have in common."""

    name: Annotated[Line | None, Field(description="What people see. Default: the id.")] = None
    model: Annotated[Line | None, Field(description="The model, as its provider names it.")] = None
    provider: Annotated[Line | None, Field(description="Who serves the model. Default: `openai`.")] = None
    routes: Annotated[
        tuple[Line, ...],
        Field(max_length=16, description="Routes in the order they are tried, in place of `model`."),
    ] = ()
    temperature: Annotated[
        float | None, Field(ge=0, le=2, allow_inf_nan=False, description="Default: the endpoint's own.")
    ] = None
    system_prompt_path: Annotated[str | None, Field(description="A file, from this file's folder.")] = None
    summary_prompt_path: Annotated[str | None, Field(description="A file, from this file's folder.")] = None
    summarization: Annotated[
        SummarizationEntry | None, Field(description="Overrides `debate.summarization`.")
    ] = None
    enabled: Annotated[bool, Field(description="A disabled agent is left out; the judge cannot be.")] = True
    tools: Annotated[
        tuple[Tool, ...],
        Field(
            description="What it looks the context documents up with, in place of having them in its prompt."
        ),
    ] = ()
    tool_call_limit: Annotated[
        int | None, Field(ge=1, le=100, description="Calls of tools in one contribution. Default: 10.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEntry(ModelEntry):
    """An agent that debates."""

    role: Annotated[Line, Field(description="Its role, such as `architect` or `security`.")]
    id: Annotated[Id | None, Field(description="Unique in the file. Default: the role.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEntry(ModelEntry):
    """The agent that writes the answer."""

    role: Annotated[Line, Field(description="Its role. Default: `generalist`.")] = "generalist"
    id: Annotated[Id, Field(description="Not an agent's. Default: `judge`.")] = "judge"


@dataclass(frozen=True, slots=True)
class TerminationEntry:
    """When the rounds end."""

    rule: Annotated[
        Literal["fixed", "convergence", "quality"],
        Field(
            description="`fixed`: all rounds are held. `convergence`: they end early once the agents agree, or "
            "disagree and no longer move; needs two agents. `quality`: once the judge scores the best work at the "
            "threshold or above. Default: `fixed`."
        ),
    ] = "fixed"
    threshold: Annotated[int | None, Field(ge=1, le=100, description="Percent. Default: 90.")] = None


@dataclass(frozen=True, slots=True)
class DebateEntry:
    """How a debate is run."""

    rounds: Annotated[int | None, Field(ge=1, le=100, description="Default: 3.")] = None
    include_full_history: Annotated[
        bool | None, Field(description="Whether agents see the whole text of earlier rounds. Default: true.")
    ] = None
    carry_forward: Annotated[
        bool | None,
        Field(description="Whether a round starts from the last round's refinements. Default: false."),
    ] = None
    summarization: Annotated[SummarizationEntry | None, Field(description="Summaries of long histories.")] = (
        None
    )
    termination: Annotated[TerminationEntry | None, Field(description="When the rounds end.")] = None
    synthesis_method: Annotated[Literal["judge"] | None, Field(description="Who writes the answer.")] = None
    call_timeout_seconds: Annotated[
        Seconds | None, Field(description="One call of an agent, fallback included. Default: 90.")
    ] = None
    timeout_per_round: Annotated[
        int | None,
        Field(
            ge=1000,
            le=86_400_000,
            description="Milliseconds after which a round goes on without whoever is late. Default: 300000.",
        ),
    ] = None
    total_timeout_seconds: Annotated[
        float | None,
        Field(
            ge=1,
            le=604_800,
            description="After so long, the debate ends with what it has. Default: no limit.",
        ),
    ] = None
    checkpoint_timeout_seconds: Annotated[
        float | None,
        Field(
            ge=1, le=604_800, description="How long a person is waited for before it pauses. Default: 1800."
        ),
    ] = None
    waiting_seconds: Annotated[
        float | None,
        Field(
            ge=0,
            le=86_400,
            description="How long a phase waits, in all, for providers that may come back. Default: 600; 5 with "
            "`parley debate`.",
        ),
    ] = None
    max_tokens: Annotated[
        int | None,
        Field(ge=1, le=1_000_000_000_000, description="Tokens of the whole debate. Default: no limit."),
    ] = None
    max_cost: Annotated[
        float | None,
        Field(
            gt=0,
            le=1_000_000,
            description="US dollars of the whole debate, by the prices of its routes. Default: no limit.",
        ),
    ] = None
    max_concurrent_proposals: Annotated[
        int | None, Field(ge=0, le=1024, description="Calls at a time. Default: 0, no limit.")
    ] = None
    max_concurrent_critiques: Annotated[
        int | None, Field(ge=0, le=1024, description="Calls at a time. Default: 0, no limit.")
    ] = None
    max_concurrent_revisions: Annotated[
        int | None, Field(ge=0, le=1024, description="Calls at a time. Default: 0, no limit.")
    ] = None
    max_output_tokens: Annotated[
        int | None,
        Field(ge=1, le=1_000_000, description="Tokens of one contribution. Default: the route's own."),
    ] = None
    history_limit: Annotated[
        int | None,
        Field(ge=0, le=20, description="Past debates on like questions that agents are shown. Default: 5."),
    ] = None
    domain: Annotated[
        Label | None,
        Field(description="What ratings are kept by, such as `architecture`. Default: `general`."),
    ] = None


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """An endpoint that serves models."""

    name: Annotated[Id, Field(description="What agents and routes call it.")]
    kind: Annotated[
        Literal["openai", "openrouter", "azure-openai", "openai-compatible"],
        Field(description="Default: `openai-compatible`."),
    ] = "openai-compatible"
    base_url: Annotated[
        str | None,
        Field(
            pattern=r"^https?://[^\s@]+$",
            max_length=2048,
            description="Needed for `openai-compatible` and for `azure-openai`, there such as "
            "`https://NAME.openai.azure.com/openai/v1`; without user or password.",
        ),
    ] = None
    api_key_env: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$",
            description="Name of the variable that holds the key. Default: `OPENAI_API_KEY` for kind openai, "
            "`OPENROUTER_API_KEY` for openrouter, `AZURE_OPENAI_API_KEY` for azure-openai, none otherwise.",
        ),
    ] = None
    headers: Annotated[
        dict[str, Annotated[str, Field(pattern=r"^[\x20-\x7e]*$", max_length=1024)]],
        Field(max_length=32, description="Sent with every request. Keys do not belong here."),
    ] = field(default_factory=dict)
    routing: Annotated[
        dict[str, Any],
        Field(
            max_length=32,
            description="For openrouter: how it chooses among its own providers, as its API calls it: `order`, `sort`, "
            "`allow_fallbacks`, `data_collection`, ….",
        ),
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RouteEntry:
    """A model at a provider, with what is known of it."""

    provider: Annotated[Line, Field(description="A provider's name.")]
    model: Annotated[Line, Field(description="The model, as the provider names it.")]
    name: Annotated[Line | None, Field(description="What agents call it. Default: `provider/model`.")] = None
    context_tokens: Annotated[
        int | None, Field(ge=256, le=100_000_000, description="Tokens of prompt and answer together.")
    ] = None
    concurrency: Annotated[int | None, Field(ge=1, le=100_000, description="Calls at a time.")] = None
    requests_per_minute: Annotated[int | None, Field(ge=1, le=10_000_000)] = None
    tokens_per_minute: Annotated[
        int | None, Field(ge=1, le=10_000_000_000, description="Read and written together.")
    ] = None
    input_price: Annotated[Price | None, Field(description="US dollars a million tokens read.")] = None
    output_price: Annotated[Price | None, Field(description="US dollars a million tokens written.")] = None


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Agents, judge, debate, providers and routes of Parley."""

    agents: Annotated[
        tuple[AgentEntry, ...] | None,
        Field(max_length=32, description="Default: an architect and a performance agent."),
    ] = None
    judge: Annotated[JudgeEntry | None, Field(description="Default: a generalist.")] = None
    debate: DebateEntry | None = None
    providers: Annotated[
        tuple[ProviderEntry, ...],
        Field(max_length=64, description="`openai` and `openrouter` are there without."),
    ] = ()
    routes: Annotated[
        tuple[RouteEntry, ...],
        Field(max_length=256, description="Only needed to say more of a route than `provider/model`."),
    ] = ()


_OF_AGENTS: Final = ("clarification_prompt_path",)

PASSED_OVER: Final[Mapping[type, tuple[str, ...]]] = {
    FileEntry: ("trace", "orchestrator_type"),
    DebateEntry: ("trace", "orchestrator_type"),
    AgentEntry: _OF_AGENTS,
    JudgeEntry: _OF_AGENTS,
}
"""Keys of panel configurations that have no effect: a file that holds them can be used, with a notice."""

RENAMED: Final[Mapping[type, Mapping[str, str]]] = {
    DebateEntry: {"termination_condition": "termination"},
    TerminationEntry: {"type": "rule"},
}
"""Keys of panel configurations that mean what another key means here."""
