"""The configuration file as it is written: every key, its type and its range.

The reader, its messages and `schema.json` all come from these declarations. Keys are snake_case; each is accepted
in camelCase too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from parley.config.contract_entries import entry_of, number_field, with_keys_of
from parley.config.formats import FORMATS
from parley.runtime.validation import AGENT_ID
from parley.v1.agent_pb2 import Agent, SummarySettings
from parley.v1.debate_pb2 import Clarifications, DebateSpec
from parley.v1.panel_pb2 import Termination

ID_PATTERN: Final = f"^{AGENT_ID.pattern}$"

Id = Annotated[str, Field(pattern=ID_PATTERN, description="Up to 32 of a-z, 0-9 and `-`.")]
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=512)]
Price = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]


_ROLE_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "string", "description": "A file, from this file's folder."},
        {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "required": ["system"],
            "description": "Prompts by section: system, propose, critique, refine, summarize, clarify, …",
        },
    ]
}

_ToolName = Literal["context_search", "file_read", "list_files"]
Tool = Annotated[
    _ToolName,
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(get_args(_ToolName))},
                {
                    "type": "object",
                    "properties": {"name": {"enum": list(get_args(_ToolName))}},
                    "required": ["name"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
"""A tool by its name, or by a mapping that holds the name alone."""


@with_keys_of(SummarySettings.DESCRIPTOR)
@dataclass(frozen=True)
class SummarizationEntry:
    """When an agent's own history is summarized before a round."""

    method: Annotated[Literal["length-based"] | None, Field(description="How it is decided.")] = None


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
    temperature: Annotated[float | None, number_field(Agent, "temperature")] = None
    system_prompt_path: Annotated[str | None, Field(description="A file, from this file's folder.")] = None
    summary_prompt_path: Annotated[str | None, Field(description="A file, from this file's folder.")] = None
    clarification_prompt_path: Annotated[
        str | None,
        Field(description="What says what to ask before the debate: a file, from this file's folder."),
    ] = None
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
    tool_call_limit: Annotated[int | None, number_field(Agent, "tool_call_limit")] = None


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
    stronger: Annotated[
        bool,
        Field(
            description="Whether its model is stronger than the agents': it may then overrule a narrow majority of them. "
            "Default: false."
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorEntry(ModelEntry):
    """An agent that judges the answers of finished debates."""

    role: Annotated[Line, Field(description="Its role. Default: `evaluator`.")] = "evaluator"
    id: Annotated[Id | None, Field(description="Unique among the evaluators. Default: the role.")] = None
    user_prompt_path: Annotated[
        str | None,
        Field(
            description="A file, from this file's folder, that says how to judge. `{problem}`, `{clarifications}` and "
            "`{final_solution}` in it point to what is quoted before it."
        ),
    ] = None
    timeout: Annotated[
        int | None,
        Field(
            ge=1000,
            le=3_600_000,
            description="Milliseconds that its call may take. Default: `debate.call_timeout_seconds`.",
        ),
    ] = None


def _check_names(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return perspectives. Raise PydanticCustomError if two have one name."""
    names = [each.name.strip().casefold() for each in given]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise PydanticCustomError(
                "perspectives", "two are called {name}; names must differ", {"name": repr(given[number].name)}
            )
    return given


@with_keys_of(Clarifications.DESCRIPTOR)
@with_keys_of(DebateSpec.DESCRIPTOR, checks={"custom_perspectives": _check_names})
@dataclass(frozen=True)
class DebateEntry:
    """How a debate is run."""

    format: Annotated[
        str | None,
        Field(
            pattern=r"^[a-z][a-z0-9-]*(@[1-9][0-9]*)?$",
            max_length=64,
            description="The format that it is held in, such as `arena`. An option of the command counts before it. "
            "Default: `panel`.",
        ),
    ] = None
    timeout_per_round: Annotated[
        int | None,
        Field(
            ge=1000,
            le=86_400_000,
            description="`round_timeout_seconds` in milliseconds; one of both.",
        ),
    ] = None
    interactive_clarifications: Annotated[
        bool | None,
        Field(
            description="Whether the agents may ask the person, before the first round, what they must know. Needs a "
            "terminal. Default: false."
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


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """An endpoint that serves models."""

    name: Annotated[Id, Field(description="What agents and routes call it.")]
    kind: Annotated[
        Id,
        Field(
            description="A kind that the gateway knows: `openai`, `openrouter`, `azure-openai` or `openai-compatible`. "
            "Default: `openai-compatible`.",
            examples=["openai", "openrouter", "azure-openai", "openai-compatible"],
        ),
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
            "`OPENROUTER_API_KEY` for openrouter, `AZURE_OPENAI_API_KEY` for azure-openai, none otherwise. These three are "
            "sent to their own hosts alone.",
        ),
    ] = None
    api_key_file: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=4096,
            description="In place of `api_key_env`: a file that holds the key and nothing else, from this file's folder. It is read "
            "again when it changes.",
        ),
    ] = None
    models: Annotated[
        tuple[Line, ...],
        Field(max_length=256, description="The models that may be asked for there. Default: any."),
    ] = ()
    api: Annotated[
        Literal["auto", "responses", "chat"],
        Field(
            description="How texts are asked for: by the Responses API or by Chat Completions. Default: `auto`, Responses "
            "on OpenAI's own hosts; elsewhere Chat Completions first, and Responses where that does not serve.",
        ),
    ] = "auto"
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
    stronger: Annotated[
        bool,
        Field(
            description="Whether its model is stronger than those of other routes: it is preferred for the judge. Default: false."
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Agents, judge, debate, providers and routes of Parley."""

    agents: Annotated[
        tuple[AgentEntry, ...] | None,
        Field(max_length=32, description="Default: an architect and a performance agent."),
    ] = None
    judge: Annotated[JudgeEntry | None, Field(description="Default: a generalist.")] = None
    evaluators: Annotated[
        tuple[EvaluatorEntry, ...] | None,
        Field(max_length=32, description="Who judges in `parley eval`. Default: the agents."),
    ] = None
    debate: DebateEntry | None = None
    providers: Annotated[
        tuple[ProviderEntry, ...],
        Field(max_length=64, description="`openai` and `openrouter` are there without."),
    ] = ()
    roles: Annotated[
        dict[str, Annotated[Any, WithJsonSchema(_ROLE_SCHEMA)]],
        Field(
            max_length=64,
            description="Roles of one's own by name: the path of a role's file, or its prompts by section. Files in the folder "
            "`roles` next to this file are roles too.",
        ),
    ] = field(default_factory=dict)
    routes: Annotated[
        tuple[RouteEntry, ...],
        Field(max_length=256, description="Only needed to say more of a route than `provider/model`."),
    ] = ()


PASSED_OVER: Final[Mapping[type, tuple[str, ...]]] = {
    FileEntry: ("trace", "orchestrator_type"),
    DebateEntry: ("trace", "orchestrator_type"),
}
"""Keys of other tools' files that have no effect here: a file that holds them can be used, with a notice."""

RENAMED: Final[Mapping[type, Mapping[str, str]]] = {
    DebateEntry: {key: ours for each in FORMATS for key, ours in each.renamed.items()},
    entry_of(Termination.DESCRIPTOR): {"type": "rule"},
}
"""Keys of other tools' files that mean what another key means here."""

BY_WORD: Final[Mapping[type, str]] = {entry_of(Termination.DESCRIPTOR): "rule"}
"""Entries for which a word may stand, the value of this key alone: `termination: fixed`."""
