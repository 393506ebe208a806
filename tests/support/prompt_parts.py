"""Parts of a prompt, briefly, and the documents in them."""

from collections.abc import Sequence

from parley.gateway.prompt.documents import Documents, numbers_in, quote_in_slots
from parley.runtime.held_texts import hold_text
from parley.v1.gateway_pb2 import (
    PROMPT_ROLE_ASSISTANT,
    PROMPT_ROLE_SYSTEM,
    PROMPT_ROLE_USER,
    PromptPart,
)


def system(text: str, give: int = 0) -> PromptPart:
    return PromptPart(role=PROMPT_ROLE_SYSTEM, text=text, shrink_priority=give)


def user(text: str, give: int = 0, document: str = "") -> PromptPart:
    return PromptPart(role=PROMPT_ROLE_USER, text=text, shrink_priority=give, document=document)


def assistant(text: str, give: int = 0) -> PromptPart:
    return PromptPart(role=PROMPT_ROLE_ASSISTANT, text=text, shrink_priority=give)


def documents_in(prompt: Sequence[PromptPart]) -> Documents:
    texts = {part.document: hold_text(part.text) for part in prompt if part.document}
    return Documents(texts, numbers_in(prompt))


def quote_documents(prompt: Sequence[PromptPart]) -> tuple[PromptPart, ...]:
    return quote_in_slots(prompt, {}, {})
