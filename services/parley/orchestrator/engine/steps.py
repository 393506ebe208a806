"""Steps: the request with its digest, the attempt that a limit can end, and the answer as it is recorded."""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from google.protobuf import descriptor_pool
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from pydantic import BaseModel, ValidationError

from parley.orchestrator.engine.budget import Estimate
from parley.orchestrator.log.replay import Outcome
from parley.orchestrator.model.conversion import agent_to_proto
from parley.orchestrator.model.digest import digest
from parley.orchestrator.model.errors import ReplayError, StepError
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import AnswerShape, Task
from parley.runtime.clock import Clock
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import Reply, Work
from parley.v1.event_pb2 import StepFailed, StepSucceeded
from parley.v1.gateway_pb2 import PROMPT_ROLE_ASSISTANT, PROMPT_ROLE_SYSTEM, PROMPT_ROLE_USER, PromptPart

__all__ = [
    "StepAttempt",
    "StepRequest",
    "digest_of_ask",
    "digest_of_step",
    "render_answer",
    "shorten_answer",
    "unpack_answer",
    "wait_or_timeout",
]


@dataclass(frozen=True, slots=True)
class StepRequest:
    """What a step asks.

    Attributes:
        estimate: What its call may take; None where a service is asked, which costs nothing.
        is_answer: Whether it makes the debate's answer, which is asked for in spite of limits.
        is_structured: Whether a structured answer is asked for.
        concurrency: The label of its limit; empty for none.
        retry_once: Whether it is asked once more where it failed for a reason that may soon have passed.
        scopes: The groups of steps that are settled together and that it belongs to.
    """

    key: str
    work: Work
    digest: str
    estimate: Estimate | None = None
    is_answer: bool = False
    is_structured: bool = False
    concurrency: str = ""
    scopes: frozenset[str] = frozenset()
    retry_once: bool = False


@dataclass(slots=True, eq=False)
class StepAttempt:
    """One attempt at a step.

    Attributes:
        number: From 1.
        started: Whether the log says, or is about to say, that it was begun.
        usage: What its latest call used; `partial_text`: what it had written where it was stopped.
        recorded: Set once its failure is durable.
        bound: Tokens that its answer may have, by what is left of the budgets; 0: as many as it likes.
        exceeds: The budget that has no room for it; empty for none.
    """

    request: StepRequest
    number: int
    started: bool
    usage: Usage = field(default_factory=Usage)
    partial_text: str = ""
    recorded: asyncio.Event = field(default_factory=asyncio.Event)
    bound: int = 0
    exceeds: str = ""
    _late: bool = False
    _failed: StepFailed | None = None
    _call: asyncio.Event | None = None
    _scope: asyncio.Timeout | None = None

    @property
    def is_calling(self) -> bool:
        """Whether a call is being made now, rather than waited with for a service that is away."""
        return self._call is not None

    @contextmanager
    def track_call(self) -> Iterator[None]:
        """Make the step's call in the block."""
        self._call = ended = asyncio.Event()
        try:
            yield
        finally:
            self._call = None
            ended.set()

    async def wait_for_call_end(self, seconds: float) -> None:
        """Wait until no call is being made, but only so long."""
        if self._call is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._call.wait()

    async def run_with_limits(self, making: Awaitable[Outcome]) -> Outcome:
        """Return the outcome, or the failure that a limit makes of it first."""
        try:
            async with asyncio.timeout(None) as self._scope:
                return await making
        except TimeoutError:
            if self._failed is None:
                raise
            return await self.wait_for_failure()
        finally:
            self._scope = None

    def is_late(self) -> bool:
        """Tell whether it fails for a limit that was reached, whatever its call comes to."""
        return self._late

    def mark_late(self) -> None:
        """Take the step out of its call's hands; what is left is to `fail` it."""
        self._late = True

    async def wait_for_failure(self) -> StepFailed:
        """Return what a limit makes of a step that is late, once that is recorded."""
        await self.recorded.wait()
        assert self._failed is not None
        return self._failed

    def fail(self, failed: StepFailed) -> None:
        """Stop the attempt at once. Its failure is returned once `recorded` is set."""
        self._failed = failed
        if self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())


async def wait_or_timeout(event: asyncio.Event, clock: Clock, seconds: float) -> bool:
    """Wait for an event, but only so long by this clock; return whether it came."""
    waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(clock.sleep(seconds))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    return event.is_set()


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
