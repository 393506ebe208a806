"""Steps: the request with its digest, the attempt that a limit can end, and the answer as it is recorded."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec
from google.protobuf import descriptor_pool
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from msgspec import Struct
from pydantic import BaseModel, ValidationError

from parley.orchestrator.engine.budget import Estimate
from parley.orchestrator.log.replay import Outcome
from parley.orchestrator.model.digest import digest
from parley.orchestrator.model.errors import ReplayError, StepError, UnusableAnswerError
from parley.orchestrator.model.tasks import AnswerShape, Task
from parley.runtime.logs import get_logger
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import Reply, Work
from parley.v1.event_pb2 import StepFailed, StepSucceeded

_logger = get_logger(__name__)

INVALID_ANSWER: Final = "INVALID_STRUCTURED_ANSWER"
UNUSABLE_ANSWER: Final = "UNUSABLE_ANSWER"
"""Reasons for which an answer that was written counts for nothing."""


@dataclass(frozen=True, slots=True)
class StepRequest:
    """What a step asks.

    Attributes:
        estimate: Returns what its call may use, which only a debate with a budget needs; None for a service, which costs nothing.
        is_answer: Whether it creates the debate's answer, which limits do not stop.
        shape: The shape of a structured answer; None: it is a text, or the answer of a service.
        concurrency: The label of its concurrency limit; empty for none.
        retry_once: Whether it is tried once more if it fails for a reason that may pass soon.
        scopes: The groups of parallel steps that it belongs to.
    """

    key: str
    work: Work
    digest: str
    estimate: Callable[[], Awaitable[Estimate]] | None = None
    is_answer: bool = False
    shape: AnswerShape[Any] | None = None
    concurrency: str = ""
    scopes: frozenset[str] = frozenset()
    retry_once: bool = False
    _read: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def asks_agent(self) -> bool:
        """Whether it asks an agent, which has to be paid for."""
        return self.estimate is not None

    def read(self, text: str) -> Any:
        """Return an answer as its shape parses it, once. Raises what `AnswerShape.parse` does."""
        assert self.shape is not None
        if text not in self._read:
            self._read[text] = self.shape.parse(text)
        return self._read[text]

    def can_read(self, text: str) -> bool:
        """Return whether this version reads the text of an answer."""
        try:
            self.read(text)
        except Exception:  # noqa: BLE001 - what stands in a log must not fail its debate for ever
            return False
        return True


class StepAttempt(Struct, eq=False):
    """One attempt at a step.

    Attributes:
        number: From 1.
        started: Whether the log records its start, or soon will.
        usage: What its latest call used; `partial_text`: the text of a stopped call.
        recorded: Set once its failure is durable.
        bound: The most tokens of its answer, by what is left of the budgets; 0: no bound.
        read_bound: The most tokens that all requests of its call read, if it may use tools and there is a budget; else 0.
        prompt_share: The share of its prompt that is left of the budgets: 1, but for calls that make the answer.
        exceeds: The budget that it would exceed; empty for none.
    """

    request: StepRequest
    number: int
    started: bool
    usage: Usage = msgspec.field(default_factory=Usage)
    partial_text: str = ""
    recorded: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    bound: int = 0
    read_bound: int = 0
    prompt_share: float = 1.0
    exceeds: str = ""
    _late: bool = False
    _failed: StepFailed | None = None
    _call: asyncio.Event | None = None
    _scope: asyncio.Timeout | None = None

    @property
    def is_calling(self) -> bool:
        """Whether a call is in flight now, rather than a wait for an unavailable service."""
        return self._call is not None

    @contextmanager
    def track_call(self) -> Iterator[None]:
        """Note that the block makes the step's call."""
        self._call = ended = asyncio.Event()
        try:
            yield
        finally:
            self._call = None
            ended.set()

    async def wait_for_call_end(self, seconds: float) -> None:
        """Wait until no call is in flight, at most so long."""
        if self._call is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._call.wait()

    async def run_with_limits(self, making: Awaitable[Outcome]) -> Outcome:
        """Return the outcome, or the failure if a limit ends the attempt first."""
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
        """Return whether the attempt fails because of a limit, whatever its call returns."""
        return self._late

    def mark_late(self) -> None:
        """Mark the attempt as late: its call cannot end it any more. Call `fail` next."""
        self._late = True

    async def wait_for_failure(self) -> StepFailed:
        """Return the failure of a late step once it is recorded."""
        await self.recorded.wait()
        assert self._failed is not None
        return self._failed

    def fail(self, failed: StepFailed) -> None:
        """Stop the attempt at once. `run_with_limits` returns the failure once `recorded` is set."""
        self._failed = failed
        if self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())


def digest_of_step(request: Message) -> str:
    """Return the digest of what a service is asked, 32 hex digits."""
    fields = MessageToDict(request, preserving_proto_field_name=True)
    return digest({"request": fields, "type": request.DESCRIPTOR.full_name})


M = TypeVar("M", bound=BaseModel)


def complete_reply(task: Task, step: StepRequest, reply: Reply) -> None:
    """Add to the reply of a step what is recorded of its text. Raise StepError if the text cannot be read, whatever a model has written."""
    try:
        if step.shape is not None:
            _annotate(step.shape, step.read(reply.text), reply)
        elif task.max_characters:
            _shorten_answer(reply, task.max_characters)
        if task.check is not None:
            task.check(reply)
        if task.annotate is not None:
            task.annotate(reply)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"]) or "its root"
        message = f"the answer does not match its shape at {path}: {first['msg']}"
        raise StepError(INVALID_ANSWER, message, reply.usage, reply.text) from error
    except UnusableAnswerError as error:
        message = f"the answer cannot be used: {error}"
        raise StepError(UNUSABLE_ANSWER, message, reply.usage, reply.rendered or reply.text) from error
    except Exception as error:
        _logger.exception("an answer could not be read")
        message = f"the answer could not be read: {type(error).__name__}"
        raise StepError("UNREADABLE_ANSWER", message, reply.usage) from error


def _annotate(shape: AnswerShape[M], answer: M, reply: Reply) -> None:
    """Add to a reply what is recorded of the structured answer that its text is."""
    reply.rendered = shape.render(answer)
    if shape.annotate is not None:
        shape.annotate(answer, reply)


def _shorten_answer(reply: Reply, characters: int) -> None:
    """Shorten an answer to so many characters, at a space if one is near the end."""
    text = reply.text.strip()
    if len(text) > characters:
        end = text.rfind(" ", characters * 9 // 10, characters)
        text = text[: end if end > 0 else characters].rstrip()
    reply.characters_cut = len(reply.text.strip()) - len(text)
    reply.text = text


def unpack_answer(key: str, outcome: StepSucceeded) -> Message:
    """Return the recorded answer of a service as a message. Raise ReplayError if its type is unknown."""
    try:
        kind = descriptor_pool.Default().FindMessageTypeByName(outcome.value.TypeName())
    except KeyError as error:
        raise ReplayError(f"step {key} was recorded with an answer of an unknown type") from error
    answer: Message = GetMessageClass(kind)()
    outcome.value.Unpack(answer)
    return answer
