"""Parts of a prompt, briefly."""

from parley.v1.gateway_pb2 import (
    PROMPT_ROLE_ASSISTANT,
    PROMPT_ROLE_SYSTEM,
    PROMPT_ROLE_USER,
    PromptPart,
)

__all__ = ["assistant", "system", "user"]


def system(text: str, give: int = 0) -> PromptPart:
    return PromptPart(role=PROMPT_ROLE_SYSTEM, text=text, shrink_priority=give)


def user(text: str, give: int = 0, document: str = "") -> PromptPart:
    return PromptPart(role=PROMPT_ROLE_USER, text=text, shrink_priority=give, document=document)


def assistant(text: str, give: int = 0) -> PromptPart:
    return PromptPart(role=PROMPT_ROLE_ASSISTANT, text=text, shrink_priority=give)
