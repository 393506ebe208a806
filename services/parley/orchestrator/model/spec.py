"""What a debate is about and how it is run, as frozen in its first event."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import Message

__all__ = [
    "DEFAULT_DOMAIN",
    "DEFAULT_HISTORY_LIMIT",
    "AgentSpec",
    "Clarifications",
    "ContextDocument",
    "DebateSpec",
    "Limits",
    "OwnRole",
    "Price",
    "Prompt",
    "SummarySettings",
]

DEFAULT_HISTORY_LIMIT: Final = 5
DEFAULT_DOMAIN: Final = "general"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that replaces a built-in one, and where it was read from."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class SummarySettings:
    """When an agent's own history is summarized. Lengths are in characters; 0: as the version of the format has it."""

    enabled: bool = True
    threshold: int = 0
    max_length: int = 0


@dataclass(frozen=True, slots=True)
class OwnRole:
    """A role that came with the request: its prompts by section, empty once they are the agent's instructions."""

    sections: Mapping[str, str]
    source: str


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, in millionths of a US dollar."""

    read: int
    written: int


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent of a debate: a configured model with a role.

    Attributes:
        routes: Gateway routes in the order they are tried; empty for the gateway's default ones.
        temperature: 0 to 2, or None for the endpoint's default.
        summaries: The agent's own settings, or None for the debate's.
        own_role: Where its role is none that Parley ships.
        instructions: The role's prompts by section, as they were when the debate was accepted: a debate ends with the
            words it began with.
        tools: What it may look at the context documents with: `context_search`, `file_read`, `list_files`.
        tool_call_limit: Calls of tools in one contribution, at most 100; 0 for the default, 10.
        context_tokens: Tokens that prompt and answer may have together on any of its routes; 0: not known.
        price: What tokens cost on the dearest of its routes; None: not known.
    """

    id: str
    name: str
    role: str
    routes: tuple[str, ...] = ()
    temperature: float | None = None
    system_prompt: Prompt | None = None
    summary_prompt: Prompt | None = None
    clarification_prompt: Prompt | None = None
    evaluation_prompt: Prompt | None = None
    summaries: SummarySettings | None = None
    instructions: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    tool_call_limit: int = 0
    context_tokens: int = 0
    own_role: OwnRole | None = None
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class ContextDocument:
    """A document that travels with the debate."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What a debate may take. Only time in which an owner works on it counts.

    Attributes:
        call_seconds: One agent call, fallback included.
        round_seconds: After so long, a round goes on without whoever is late.
        total_seconds: After so long, the debate ends with what it has; waits for providers count. 0: no limit.
        checkpoint_seconds: How long a person is waited for before the debate pauses.
        waiting_seconds: How long one phase waits in all for providers that may come back. 0: not at all.
        max_tokens: Tokens read and written; 0: no limit.
        max_cost_micros: Millionths of a US dollar; 0: no limit. Calls whose price is unknown count as nothing.
    """

    call_seconds: float = 90.0
    round_seconds: float = 300.0
    total_seconds: float = 0.0
    checkpoint_seconds: float = 1800.0
    waiting_seconds: float = 600.0
    max_tokens: int = 0
    max_cost_micros: int = 0


@dataclass(frozen=True, slots=True)
class Clarifications:
    """What agents may ask before a debate: so many questions each, so many times."""

    max_per_agent: int = 5
    max_times: int = 3


@dataclass(frozen=True, slots=True)
class DebateSpec:
    """A debate's specification: agents resolved, defaults filled in.

    Attributes:
        format: `name@version`.
        concurrency: Calls at a time, by the labels of the format; one that is absent has no limit.
        max_output_tokens: Upper bound on one contribution; 0 for the route's default.
        history_limit: Past debates shown before the first proposal.
        domain: The label ratings are kept by.
        labels: What the one who asks finds it by; no agent is told.
        clarifications: None where the agents ask nothing before they begin.
        settings: The format's own, a message of `DebateSpec.format_settings`; None for a format that has none.
        demonstration: Whether agents of it are answered by a model that is too small to be relied on. They are asked for
            prose alone then, and what it comes to is neither remembered nor rated.
    """

    question: str
    format: str
    agents: tuple[AgentSpec, ...]
    judge: AgentSpec
    context: tuple[ContextDocument, ...] = ()
    limits: Limits = field(default_factory=Limits)
    concurrency: Mapping[str, int] = field(default_factory=dict)
    max_output_tokens: int = 0
    history_limit: int = DEFAULT_HISTORY_LIMIT
    domain: str = DEFAULT_DOMAIN
    labels: Mapping[str, str] = field(default_factory=dict)
    settings: Message | None = None
    clarifications: Clarifications | None = None
    demonstration: bool = False
