"""Whatever models answer, a debate ends, says why if it fails, and completes when it is resumed with models that answer well.

The answers are the same every time: those of 2,000 debates a format by `make chaos`, of some by `make test`.
`PARLEY_TEST_ODD_SEED=n` makes others, and `PARLEY_TEST_ODD_ANSWERS=n` so many.
"""

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log.envelope import Envelope
from parley.v1.agent_pb2 import ToolCall
from parley.v1.event_pb2 import CheckpointClosed, CheckpointOpened, DebateFailed
from tests.chaos.odd_answers import OddModels
from tests.chaos.odd_debates import SHAPES, SPECS, assess, make_odd_debate
from tests.support.orchestration import Backstage, Replica, backstage, until

_SEED, _COUNT = "PARLEY_TEST_ODD_SEED", "PARLEY_TEST_ODD_ANSWERS"
_SAMPLE: Final = {"panel": 36, "arena": 32, "moderated": 20, "evaluation": 24}
_AT_ONCE: Final = 8
_WITHIN: Final = 120.0
_FAULTS: Final = frozenset({"INTERNAL", "REPLAY_MISMATCH", "NO_PROGRESS", "UNRECORDABLE", ""})
"""Reasons that no answer of a model may lead to."""
_LAST_PHASES: Final = frozenset({"synthesis", "decision", "merge", "vote", "judgement"})
"""Phases that no answer of a model may fail a debate in: what was contributed before stands."""

ODD_TOOL_CALLS: Final = tuple(
    ToolCall(name="file_read", arguments=each)
    for each in ('{"path": "\\ud800"}', "[" * 500, '{"path": ' + "9" * 309 + "}", '"', "", '{"path": null}')
)
"""What a model may give a tool; the report names it."""

pytestmark = pytest.mark.timeout(7200 if os.environ.get(_COUNT) else 240)


async def test_a_panel_ends_whatever_its_models_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await run_odd_debates("panel", tmp_path, capsys)


async def test_an_arena_ends_whatever_its_models_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await run_odd_debates("arena", tmp_path, capsys)


async def test_a_moderated_debate_ends_whatever_its_models_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await run_odd_debates("moderated", tmp_path, capsys)


async def test_an_evaluation_ends_whatever_its_models_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await run_odd_debates("evaluation", tmp_path, capsys)


async def run_odd_debates(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed, count = int(os.environ.get(_SEED) or 7), int(os.environ.get(_COUNT) or _SAMPLE[name])
    models = OddModels(seed)
    gateway = models.gateway()
    gateway.assess = assess
    gateway.tool_calls = dict.fromkeys(("ada", "bo"), ODD_TOOL_CALLS)
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    begun = time.monotonic()

    async def run(cases: Iterator[int]) -> None:
        for case in cases:
            try:
                end, problem = await run_to_completion(stage, replica, models, name, case)
            except Exception as error:  # noqa: BLE001 - one wrong case must not end the others
                end, problem = "stuck", repr(error)
            ends[end] += 1
            if problem:
                wrong.append(f"case {case}: {problem}")
            if case % 50 == 0:
                gateway.calls.clear()

    async with backstage(folder, gateway) as stage, stage.replica() as replica:
        cases = iter(range(count))
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_AT_ONCE):
                tasks.create_task(run(cases))
    took = time.monotonic() - begun
    with capsys.disabled():
        sys.stdout.write(
            f"\nodd answers: {name} {_SEED}={seed} {_COUNT}={count}: {dict(ends)}, {took:.0f} s\n"
        )
    assert not wrong, f"{_SEED}={seed}: {len(wrong)} wrong\n" + "\n".join(wrong[:40])
    assert models.shapes >= SHAPES[name], "every kind of answer was odd at least once"


async def run_to_completion(
    stage: Backstage, replica: Replica, models: OddModels, name: str, case: int
) -> tuple[str, str]:
    """Return how the debate of a case ended at first, and what is wrong with how it ended, or went on; empty for nothing."""
    debate = await replica.create(make_odd_debate(name, case))
    status = await wait_for_end(stage, replica, debate)
    events = await stage.events(debate)
    write_report(events)
    if status == "COMPLETED":
        return status, ""
    reason = find_reason(events)
    phase = find_phase(events)
    is_wrong = status != "FAILED" or reason in _FAULTS or phase in _LAST_PHASES
    problem = f"{status} {reason} {phase}" if is_wrong else ""
    models.mended.add(case)
    await replica.intervene(debate, "resume")
    resumed = await wait_for_end(stage, replica, debate)
    if resumed != "COMPLETED":
        problem += f" {resumed} after it was resumed: {find_reason(await stage.events(debate))}"
    return f"{status} {reason}", problem


def write_report(events: Sequence[Envelope]) -> None:
    """Check that the state and the report of a debate can be read and sent."""
    debate = fold(events)
    report = render_report(debate, all_formats().find(debate.spec.format))
    assert report.encode()


async def wait_for_end(stage: Backstage, replica: Replica, debate: str) -> str:
    """Return the status with which a debate rests; what it asks a person is answered."""

    async def rest() -> str:
        record = await stage.record(debate)
        if record.status == "WAITING":
            await answer_checkpoint(replica, debate, await stage.events(debate))
        return "" if record.open or record.status == "WAITING" else record.status

    found = await until(rest, f"{debate} rests", _WITHIN)
    return str(found)


async def answer_checkpoint(replica: Replica, debate: str, events: Sequence[Envelope]) -> None:
    opened = {each.key: each.payload for each in events if isinstance(each.payload, CheckpointOpened)}
    closed = {each.key for each in events if isinstance(each.payload, CheckpointClosed)}
    for key, checkpoint in opened.items():
        if key not in closed:
            act = {"questions": "answer", "direction": "continue_debate", "approval": "approve"}[
                checkpoint.WhichOneof("request") or ""
            ]
            await replica.intervene(debate, act, key.replace("/", "-"), text="fine", approved=True)


def find_reason(events: Sequence[Envelope]) -> str:
    failures = [each.payload.failure for each in events if isinstance(each.payload, DebateFailed)]
    return failures[-1].reason if failures else ""


def find_phase(events: Sequence[Envelope]) -> str:
    failures = [each.payload.failure for each in events if isinstance(each.payload, DebateFailed)]
    return failures[-1].phase if failures else ""


def test_there_is_a_debate_for_every_format() -> None:
    assert SHAPES.keys() == SPECS.keys()
