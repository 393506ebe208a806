"""Answers of agents and of services, from what came in to what is recorded and handed on."""

from typing import TypeVar

from google.protobuf import descriptor_pool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from pydantic import BaseModel, ValidationError

from parley.orchestrator.model.errors import ReplayError, StepError
from parley.orchestrator.model.tasks import AnswerShape
from parley.v1.debate_pb2 import Reply
from parley.v1.event_pb2 import StepSucceeded

__all__ = ["render_answer", "shorten_answer", "unpack_answer"]

M = TypeVar("M", bound=BaseModel)


def render_answer(shape: AnswerShape[M], reply: Reply) -> str:
    """Return a structured answer as a person reads it. Raises StepError where it is not of its shape."""
    try:
        return shape.render(shape.parse(reply.text))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "its root"
        message = f"the answer is not of its shape at {where}: {first['msg']}"
        raise StepError("INVALID_STRUCTURED_ANSWER", message, reply.usage) from error


def shorten_answer(reply: Reply, characters: int) -> None:
    """Cut an answer that is longer than it may be, at a blank if there is one near."""
    text = reply.text.strip()
    if len(text) > characters:
        end = text.rfind(" ", characters * 9 // 10, characters)
        text = text[: end if end > 0 else characters].rstrip()
    reply.characters_cut = len(reply.text.strip()) - len(text)
    reply.text = text


def unpack_answer(key: str, outcome: StepSucceeded) -> Message:
    """Return a service's recorded answer as the message that it is. Raises ReplayError where its kind is not known."""
    try:
        kind = descriptor_pool.Default().FindMessageTypeByName(outcome.value.TypeName())
    except KeyError as error:
        raise ReplayError(
            f"step {key} was recorded with an answer of a kind that is not known here"
        ) from error
    answer: Message = GetMessageClass(kind)()
    outcome.value.Unpack(answer)
    return answer
