"""Panels with a person at both ends of them, as formats for tests alone."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from types import MappingProxyType
from typing import Any

from parley.orchestrator.engine.checkpoints import CheckpointRequest
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format, Formats
from parley.orchestrator.formats import panel
from parley.orchestrator.formats.panel.outcome import answer_parts
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log.envelope import Envelope
from parley.runtime.errors import ParleyError
from parley.v1.debate_pb2 import Approval, Direction, Outcome, Questions
from parley.v1.event_pb2 import CheckpointClosed, CheckpointOpened, Concluded, DebateCreated
from tests.support.debate_logs import check_log
from tests.support.log_reader import LogReader
from tests.support.orchestration import Backstage, Replica, make_debate

BEFORE, AFTER = "checkpoint/before", "checkpoint/after"
_GO_ON = {"questions": "continue_debate", "direction": "continue_debate", "approval": "approve"}
"""The act that closes a checkpoint of a kind without saying anything else."""


_FIRST_LOOK, _LAST_LOOK = 0.01, 0.05
"""Seconds between looks for what is asked: the longer nothing is, the fewer."""


def create_panel(name: str, run: Callable[[Debate], Awaitable[Outcome]]) -> Format:
    """Return a format that runs in its own way, and has the settings, roles, phases and answer of a panel."""
    return Format(
        name=name,
        version=1,
        run=run,
        settings=panel.V1.settings,
        debater_sections=panel.V1.debater_sections,
        judge_sections=panel.V1.judge_sections,
        activities=panel.V1.activities,
        answer=answer_parts,
    )


def _make_format(name: str, request: CheckpointRequest) -> Format:
    """A format that makes a request, holds a panel, and has its answer approved; what was said is in the answer."""

    async def run(debate: Debate) -> Outcome:
        before = await debate.run_checkpoint(BEFORE, request)
        outcome = await panel.V1.run(debate)
        after = await debate.run_checkpoint(AFTER, Approval(text=outcome.description))
        del outcome.details.recommendations[:]
        outcome.details.recommendations.extend(map(_describe_act, (before, after)))
        return outcome

    return create_panel(name, run)


def _describe_act(closed: CheckpointClosed) -> str:
    """What a person did, and what they said to it."""
    intervention = closed.intervention
    act = intervention.WhichOneof("act") or ""
    told = getattr(intervention, act)
    approved = f" {told.approved}" if act == "approve" else ""
    return f"{act}: {getattr(told, 'text', '')}{approved}"


CHECKED = _make_format("checked", Direction(text="Shall we begin?"))
"""Asks for a direction before the panel, and for an approval after it."""
QUESTIONED = _make_format("questioned", Questions(text="Shall we begin?"))
"""Puts questions before the panel, and asks for an approval after it."""
CHECKED_FORMATS = Formats([*all_formats().all(), CHECKED, QUESTIONED])


def make_checked_debate(debate_format: Format = CHECKED, **fields: Any) -> DebateCreated:
    """Two agents, one round, and a person at both ends."""
    return make_debate(2, 1, format=debate_format.id, **fields)


async def approve_answer(stage: Backstage, replica: Replica, debate: str) -> None:
    """Approve the answer of a checked debate at its second checkpoint, and check its log."""
    await stage.has(debate, "checkpoint_opened", 2)
    await replica.intervene(debate, "approve", approved=True, checkpoint=AFTER)
    check_log(await stage.comes_to(debate, "COMPLETED"))


def list_said(outcome: Outcome) -> tuple[str, ...]:
    """What was said at the checkpoints, in order."""
    return tuple(outcome.details.recommendations)


def list_said_in(events: Iterable[Envelope]) -> tuple[str, ...]:
    """What was said at the checkpoints of a debate that came to its answer."""
    (outcome,) = [event.payload.outcome for event in events if isinstance(event.payload, Concluded)]
    return list_said(outcome)


def go_on(checkpoint: CheckpointOpened) -> str:
    """The act that lets a debate go on from a checkpoint."""
    return _GO_ON[checkpoint.WhichOneof("request") or ""]


@asynccontextmanager
async def person(
    stage: Backstage, replica: Replica, acts: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[None]:
    """Somebody who lets every debate go on from whatever it asks while the block runs, and says so once.

    Of questions that can be answered one by one, they answer the first, and say a word on all. `acts` are what they do at
    checkpoints with these keys instead; `refuse` is not to approve.
    """
    asking = asyncio.create_task(_go_on_everywhere(stage, replica, acts))
    try:
        yield
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def _go_on_everywhere(stage: Backstage, replica: Replica, acts: Mapping[str, str]) -> None:
    asked: set[tuple[str, str]] = set()
    reader = LogReader(stage)
    seconds = _FIRST_LOOK
    async with asyncio.TaskGroup() as tasks:
        while True:
            seconds = min(seconds * 1.3, _LAST_LOOK)  # most debates ask nothing for long
            for record in await replica.dependencies.index.list_owned():
                recorded = await reader.recorded(record.debate)
                for key, checkpoint in recorded.open_checkpoints.items():
                    if (record.debate, key) not in asked:
                        asked.add((record.debate, key))
                        seconds = _FIRST_LOOK
                        tasks.create_task(_go_on(replica, record.debate, key, checkpoint, acts.get(key, "")))
            await asyncio.sleep(seconds)


async def _go_on(replica: Replica, debate: str, key: str, checkpoint: CheckpointOpened, wanted: str) -> None:
    asked = checkpoint.questions.questions
    act, answers = ("answer", {asked[0].id: "fine"}) if asked else (wanted or go_on(checkpoint), None)
    approved = act != "refuse"
    act = act if approved else "approve"
    with suppress(ParleyError, TimeoutError):  # it was taken up by another, and the debate has ended
        request_id = key.replace("/", "-")
        await replica.intervene(
            debate, act, request_id, text="fine", approved=approved, checkpoint=key, answers=answers
        )
