"""What a debate asks now that it did not ask when its log was recorded."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

from msgspec.structs import replace

from parley.orchestrator.engine import debate as engine
from parley.orchestrator.engine.agent_steps import create_agent_step
from parley.orchestrator.engine.execution import Execution
from parley.orchestrator.engine.prompt_digests import PromptDigests
from parley.orchestrator.engine.steps import StepRequest
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.tasks import AnswerShape, Prompt, Task
from parley.v1.agent_pb2 import Agent
from parley.v1.event_pb2 import StepStarted
from tests.support.orchestration import with_fields

_BEFORE_A_PIECE: Final = re.compile(r"(?<=[.!?:])(?=\s)|(?=\n)")
_MOST_PIECES: Final = 4
"""Sentences and line ends that one addition may have."""
_FAULTS: Final = frozenset({"REPLAY_MISMATCH", "INTERNAL"})
_OTHERWISE: Final = (
    "words were changed or removed, or added in several places; a log keeps no prompt to compare with"
)
_ADVICE: Final = """\
- A new setting: say nothing where it is unset, for it is unset in this log.
- Words that shall change, of a format that no release has: `python -m tests.support.kept_logs --again FORMAT`.
- Words of a released version: make them a new version of the format (docs/guides/add-a-format.md#versions)."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What a step asks an agent now."""

    agent: Agent
    task: Task
    shape: AnswerShape[Any] | None
    seconds: float
    documents: Mapping[str, str]

    def find_addition(self, recorded: str) -> str:
        """Return the words without which it is what was recorded; empty if more has changed than that."""
        prompt = self.task.prompt
        for place, part in enumerate(prompt):
            for added, rest in _additions(part.text):
                kept = (with_fields(part, text=rest),) if rest else ()
                if self._digest_of((*prompt[:place], *kept, *prompt[place + 1 :])) == recorded:
                    return added.strip()
        return ""

    def _digest_of(self, prompt: Prompt) -> str:
        digests, task = PromptDigests(), replace(self.task, prompt=prompt)
        start = digests.find_start(self.agent, task, self.documents)
        return digests.digest(start, task, self.shape, self.seconds)


def _additions(text: str) -> Iterator[tuple[str, str]]:
    """Yield what may have been added to a text, a few sentences at most, and the text without it."""
    yield text, ""
    pieces = _BEFORE_A_PIECE.split(text)
    for count in range(1, _MOST_PIECES + 1):
        for first in range(len(pieces) - count + 1):
            rest = "".join((*pieces[:first], *pieces[first + count :]))
            yield "".join(pieces[first : first + count]), rest if first else rest.lstrip()


@asynccontextmanager
async def watch_replay(events: Sequence[Envelope]) -> AsyncIterator[asyncio.Future[str]]:
    """Give what becomes the reason, in words, as soon as a debate with these events does not go on as it began."""
    recorded = {each.key: each.payload.digest for each in events if isinstance(each.payload, StepStarted)}
    changed: dict[str, _Question] = {}
    stopped: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    explain = Execution._explain_failure

    async def note_question(
        key: str, agent: Agent, task: Task, shape: Any, seconds: float, **given: Any
    ) -> StepRequest:
        step = await create_agent_step(key, agent, task, shape, seconds, **given)
        if step.digest != recorded.get(key, step.digest):
            changed[key] = _Question(agent, task, shape, seconds, given["documents"])
        return step

    def note_failure(self: Execution, error: Exception) -> DebateFailedError:
        failed = explain(self, error)
        if failed.reason in _FAULTS and not stopped.done():
            stopped.set_result("\n".join((f"{failed.reason}: {failed}", *_describe(changed, recorded))))
        return failed

    with (
        patch.object(engine, "create_agent_step", note_question),
        patch.object(Execution, "_explain_failure", note_failure),
    ):
        yield stopped


def _describe(changed: Mapping[str, _Question], recorded: Mapping[str, str]) -> Iterator[str]:
    """Yield what the first changed step says more than its log, and what to do."""
    for key, question in list(changed.items())[:1]:
        added = question.find_addition(recorded[key])
        yield f"{key} says what its log does not: {added!r}" if added else f"{key}: {_OTHERWISE}"
    yield _ADVICE
