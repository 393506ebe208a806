"""What stands for all that a step asks, so that a replay that asks something else is noticed."""

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from parley.orchestrator.model.conversion import agent_to_proto
from parley.orchestrator.model.digest import digest
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import AnswerShape, Task
from parley.v1.gateway_pb2 import PROMPT_ROLE_ASSISTANT, PROMPT_ROLE_SYSTEM, PROMPT_ROLE_USER, PromptPart

__all__ = ["digest_of_ask", "digest_of_step"]

_ROLES: Final[Mapping[int, str]] = {
    PROMPT_ROLE_SYSTEM: "system",
    PROMPT_ROLE_USER: "user",
    PROMPT_ROLE_ASSISTANT: "assistant",
}


def digest_of_ask(
    agent: AgentSpec,
    task: Task,
    shape: AnswerShape[Any] | None,
    seconds: float,
    documents: Mapping[str, str],
) -> str:
    """Return 32 hex digits that stand for what an agent is asked.

    What is left at its default is left out, so that a setting which is added later changes no digest of before.
    """
    asked = {
        "agent": _dict(agent_to_proto(agent)),
        "prompt": [_part(each, documents) for each in task.prompt],
        "seconds": seconds,
        "max_output_tokens": task.max_output_tokens,
        "answer_start": task.answer_start,
        "schema": [shape.name, shape.json_schema] if shape else None,
    }
    return digest({name: value for name, value in asked.items() if value})


def digest_of_step(request: Message) -> str:
    """Return 32 hex digits that stand for what a service is asked."""
    return digest({"request": _dict(request), "type": request.DESCRIPTOR.full_name})


def _part(part: PromptPart, documents: Mapping[str, str]) -> dict[str, Any]:
    text = {"digest": documents[part.document]} if part.document in documents else {"text": part.text}
    held = {"role": _ROLES[part.role], "give": part.shrink_priority, "document": part.document, **text}
    return {name: value for name, value in held.items() if value}


def _dict(message: Message) -> dict[str, Any]:
    held: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return held
