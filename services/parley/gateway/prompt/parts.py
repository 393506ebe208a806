"""A prompt in pieces, and as the messages that an endpoint is sent."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Message", "PromptPart", "join"]


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One piece of a prompt: who says it (`system`, `user`, `assistant`), and how readily it is shortened.

    `document` is the path of the context document that the text is; empty: it is none.
    """

    role: str
    text: str
    give: int = 0
    document: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """What an endpoint is sent as one message."""

    role: str
    text: str


def join(parts: Sequence[PromptPart]) -> tuple[Message, ...]:
    """Return the parts as messages; neighbours of one role become one, with a blank line between them."""
    messages: list[Message] = []
    run: list[str] = []
    for index, part in enumerate(parts):
        run.append(part.text)
        if index + 1 == len(parts) or parts[index + 1].role != part.role:
            messages.append(Message(part.role, "\n\n".join(run)))
            run = []
    return tuple(messages)
