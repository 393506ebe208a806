"""What a debate is about and how it is run, as frozen in its first event."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from parley.orchestrator.canonical import ADDED_LATER

__all__ = [
    "AgentSpec",
    "Concurrency",
    "ContextDocument",
    "DebateSpec",
    "Limits",
    "Prompt",
    "SummarySettings",
    "Termination",
    "quorum",
]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that replaces a built-in one, and where it was read from."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class SummarySettings:
    """When an agent's own history is summarized. Lengths are in characters."""

    enabled: bool = True
    threshold: int = 5000
    max_length: int = 2500


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent of a debate: a configured model with a role.

    Attributes:
        routes: Gateway routes in the order they are tried; empty for the gateway's default ones.
        temperature: 0 to 2, or None for the endpoint's default.
        summaries: The agent's own settings, or None for the debate's.
        instructions: The role's prompts by section, as they were when the debate was accepted: a debate ends with the
            words it began with.
        tools: What it may look at the context documents with: `context_search`, `file_read`, `list_files`.
        tool_call_limit: Calls of tools in one contribution, at most 100; 0 for the default, 10.
    """

    id: str
    name: str
    role: str
    routes: tuple[str, ...] = ()
    temperature: float | None = None
    system_prompt: Prompt | None = None
    summary_prompt: Prompt | None = None
    summaries: SummarySettings | None = None
    instructions: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = field(default=(), metadata=ADDED_LATER)
    tool_call_limit: int = field(default=0, metadata=ADDED_LATER)


@dataclass(frozen=True, slots=True)
class ContextDocument:
    """A document that travels with the debate."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Termination:
    """When the rounds end: `fixed`, `convergence` or `quality`, with a threshold in percent."""

    rule: str = "fixed"
    threshold_percent: int = 90


@dataclass(frozen=True, slots=True)
class Limits:
    """What a debate may take. Only time in which an owner works on it counts.

    Attributes:
        round_seconds: After so long, a round goes on without whoever is late.
        total_seconds: After so long, the debate ends with what it has; waits for providers count. 0: no limit.
        checkpoint_seconds: How long a person is waited for before the debate pauses.
        waiting_seconds: How long one phase waits in all for providers that may come back. 0: not at all.
        max_tokens: Tokens read and written; 0: no limit.
        max_cost_micros: Millionths of a US dollar; 0: no limit. Calls whose price is unknown count as nothing.
    """

    round_seconds: float = 300.0
    total_seconds: float = 0.0
    checkpoint_seconds: float = 1800.0
    waiting_seconds: float = 600.0
    max_tokens: int = 0
    max_cost_micros: int = 0


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Calls at a time, by what they are for; 0: no limit."""

    proposals: int = 0
    critiques: int = 0
    revisions: int = 0


@dataclass(frozen=True, slots=True)
class DebateSpec:
    """A debate's specification: agents resolved, defaults filled in.

    Attributes:
        format: `name@version`.
        call_seconds: Time limit of one agent call, fallback included.
        max_output_tokens: Upper bound on one contribution; 0 for the route's default.
        history_limit: Past debates shown before the first proposal.
        domain: The label ratings are kept by.
    """

    question: str
    format: str
    agents: tuple[AgentSpec, ...]
    judge: AgentSpec
    rounds: int = 3
    context: tuple[ContextDocument, ...] = ()
    include_full_history: bool = True
    carry_forward: bool = False
    summaries: SummarySettings = field(default_factory=SummarySettings)
    call_seconds: float = 90.0
    limits: Limits = field(default_factory=Limits)
    concurrency: Concurrency = field(default_factory=Concurrency)
    max_output_tokens: int = 0
    termination: Termination = field(default_factory=Termination)
    synthesis_method: str = "judge"
    history_limit: int = 5
    domain: str = "general"


def quorum(count: int) -> int:
    """Return how many of `count` agents are enough: half rounded up, and at least two where there are two."""
    return min(count, max(2, (count + 1) // 2))
