"""A debate of 11,000 events that another owner takes over, from its claim until it asks the model for the answer; and its report."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.log.reading import log_name
from parley.runtime.entry import tune_gc_and_threads
from parley.storage.ports import Record
from tests.bench.figures import main, show_middle, table
from tests.support.debate_logs import leave_log
from tests.support.orchestration import TENANT, Backstage, agent, backstage, make_debate
from tests.support.scripted_gateway import ScriptedGateway

_AGENTS, _ROUNDS, _QUICK_ROUNDS = 10, 45, 5
_ANSWER = "synthesis"
_RECORD = 1000
_PATIENCE = 1200.0


@dataclass(frozen=True, slots=True)
class _Takeover:
    """Seconds, and seconds of CPU, until the answer was asked for."""

    seconds: float
    cpu: float


async def run(quick: bool) -> None:
    """Hold the debate once, in a process tuned as that of a service. Then leave its log behind as it was before the answer, and let new owners go on from there."""
    tune_gc_and_threads()
    events = await _hold(_QUICK_ROUNDS if quick else _ROUNDS)
    steps = sum(each.kind == "step_succeeded" for each in events)
    taken = [await _take_over(events) for _ in range(3 if quick else 5)]
    cpu = [each.cpu for each in taken]
    table(
        ["events", "steps run again", "seconds (lowest-highest)", "seconds of CPU", "ms of CPU a step"],
        [
            [
                f"{len(events):,}",
                f"{steps:,}",
                show_middle([each.seconds for each in taken], 2),
                show_middle(cpu, 2),
                show_middle([1000 * each / steps for each in cpu], 3),
            ]
        ],
    )
    print()
    shown = [_show(events) for _ in range(3 if quick else 5)]
    table(
        ["of the same debate, seconds of CPU", "lowest-highest"],
        [
            ["its state, folded from its events", show_middle([folded for folded, _ in shown])],
            ["its report, made of that", show_middle([drawn for _, drawn in shown])],
        ],
    )


def _show(events: Sequence[Envelope]) -> tuple[float, float]:
    """Return the seconds of CPU that the fold and the report take."""
    began = time.process_time()
    debate = fold(events)
    folded = time.process_time()
    render_report(debate, all_formats().find(debate.spec.format))
    return folded - began, time.process_time() - folded


async def _hold(rounds: int) -> Sequence[Envelope]:
    """Return the events of a panel before its answer was asked for."""
    agents = tuple(agent(f"agent-{number}") for number in range(1, _AGENTS + 1))
    with tempfile.TemporaryDirectory() as folder:
        async with backstage(Path(folder)) as stage, stage.replica() as replica:
            debate = await replica.create(make_debate(rounds=rounds, agents=agents))
            events = await stage.comes_to(debate, "COMPLETED", _PATIENCE)
    return events[: next(place for place, each in enumerate(events) if each.key == _ANSWER)]


async def _take_over(events: Sequence[Envelope]) -> _Takeover:
    gateway = ScriptedGateway()
    with tempfile.TemporaryDirectory() as folder:
        async with backstage(Path(folder), gateway) as stage:
            await _leave(stage, events)
            began, cpu = time.monotonic(), time.process_time()
            async with stage.replica():
                await gateway.wait_for(_ANSWER, within=_PATIENCE)
                taken = _Takeover(time.monotonic() - began, time.process_time() - cpu)
    assert gateway.calls[0].step == _ANSWER, "what was recorded is not asked again"
    return taken


async def _leave(stage: Backstage, events: Sequence[Envelope]) -> None:
    """Put the events into the store, in records that any store takes."""
    debate = await leave_log(stage, events[:_RECORD])
    for start in range(_RECORD, len(events), _RECORD):
        entries = tuple(each.entry for each in events[start : start + _RECORD])
        await stage.store.log.append(log_name(TENANT, debate), Record(start + 1, str(start), entries))


if __name__ == "__main__":
    main(__doc__, run)
