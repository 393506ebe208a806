"""What a debate is about and how it is run, as frozen in its first event."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["AgentSpec", "ContextDocument", "DebateSpec", "Prompt", "SummarySettings", "Termination", "quorum"]


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
    max_output_tokens: int = 0
    termination: Termination = field(default_factory=Termination)
    synthesis_method: str = "judge"
    history_limit: int = 5
    domain: str = "general"


def quorum(count: int) -> int:
    """Return how many of `count` agents are enough: half rounded up, and at least two where there are two."""
    return min(count, max(2, (count + 1) // 2))
