"""What an agent is asked to do in one step."""

from dataclasses import dataclass, field

from parley.orchestrator.canonical import ADDED_LATER
from parley.orchestrator.events import Work

__all__ = ["AnswerShape", "PromptPart", "Task"]


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One piece of a prompt.

    Attributes:
        role: `system`, `user` or `assistant`.
        give: How readily it is shortened where a route's context is too small; larger first, 0 never.
        document: Path of the context document that the text is, as it is, for the gateway to quote or to serve through
            tools; empty for an ordinary part.
    """

    role: str
    text: str
    give: int = 0
    document: str = field(default="", metadata=ADDED_LATER)


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """The JSON shape of a structured answer: a short name and a JSON Schema as text."""

    name: str
    json_schema: str


@dataclass(frozen=True, slots=True)
class Task:
    """A prompt, and what the answer is for.

    Attributes:
        shape: The shape of a structured answer, or None for plain text.
        max_output_tokens: Upper bound on the answer; 0 for the route's default.
    """

    work: Work
    prompt: tuple[PromptPart, ...]
    shape: AnswerShape | None = None
    max_output_tokens: int = 0
