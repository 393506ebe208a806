"""A debate keeps its words: whatever has changed since, it goes on as it began, on the version it began with."""

import asyncio
import dataclasses
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import structs

from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Formats
from parley.orchestrator.formats.panel import V1
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.model.positions import POSITION_INSTRUCTION
from parley.orchestrator.phases import propose
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED, Outcome
from parley.v1.event_pb2 import Concluded, DebateCreated
from tests.support.debate_logs import check_log, find_concluded, leave_log
from tests.support.kept_debates.kept_debate import FOLDER, KeptDebate, Person
from tests.support.kept_logs import KEPT, read_log
from tests.support.kept_words import watch_replay
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import Backstage, backstage, make_debate, with_fields
from tests.support.prompt_settings import find_debates_with, find_prompt_settings, without_setting
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.small_format import formats_with_small

CUTS = 12
"""Places, about, that a kept log is gone on with from: the middle with every change, the others with the long tests."""
MIDDLE = CUTS // 2


class Ended(NamedTuple):
    """How a debate ended, and the gateway that was asked."""

    events: Sequence[Envelope]
    gateway: ScriptedGateway


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Backstage]:
    async with backstage(tmp_path) as behind:
        yield behind


async def go_on_with(kept: KeptDebate, events: Sequence[Envelope], folder: Path) -> Ended:
    """Go on with a log as a new owner would, while the person does what is not in it."""
    clock, gateway = ManualClock(events[-1].time), kept.gateway()
    async with (
        watch_replay(events) as stopped,
        backstage(folder, gateway, formats_with_small()) as stage,
        stage.replica(clock=clock) as replica,
    ):
        debate = await leave_log(stage, events)

        async def go_on() -> Sequence[Envelope]:
            await kept.steer(Person(stage, replica, debate, clock))
            return await stage.comes_to(debate, "COMPLETED")

        async with asyncio.TaskGroup() as tasks:
            going_on = tasks.create_task(go_on())
            await asyncio.wait((going_on, stopped), return_when=asyncio.FIRST_COMPLETED)
            if stopped.done():
                going_on.cancel()
        if stopped.done():
            pytest.fail(f"{kept.id}: {stopped.result()}", pytrace=False)
        return Ended(going_on.result(), gateway)


def place_of(kind: str, events: Sequence[Envelope]) -> int:
    """How many events stand before the first of a kind."""
    return next(place for place, event in enumerate(events) if event.kind == kind)


def test_logs_are_kept_of_every_version_of_every_format() -> None:
    assert {each.format for each in KEPT.values()} == {each.id for each in formats_with_small().all()}
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.log" for name in KEPT}


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT)
def test_a_kept_log_is_of_the_debate_that_is_said_to_be_in_it(kept: KeptDebate) -> None:
    first = read_log(kept)[0].payload
    assert isinstance(first, DebateCreated)
    # The texts of roles are as they were then.
    begun = with_fields(first, request_id=None, roles=None)
    assert begun == with_fields(kept.spec(kept.format), roles=None), (
        f"record it: python -m tests.support.kept_logs --again {kept.format}; if that version is released, "
        "leave this KeptDebate as it was and add another one"
    )


@pytest.mark.parametrize("last", ["concluded", "closed"])
@pytest.mark.parametrize("name", KEPT)
async def test_a_kept_log_is_gone_on_with_to_the_same_end_and_nothing_is_asked_again(
    name: str, last: str, tmp_path: Path
) -> None:
    events = read_log(KEPT[name])
    replayed, gateway = await go_on_with(KEPT[name], events[: place_of(last, events)], tmp_path)
    check_log(replayed)
    # What follows an answer is asked after it.
    assert all(each.step.startswith("after/") and last == "concluded" for each in gateway.calls)
    assert find_concluded(replayed) == find_concluded(events)


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[] if part == MIDDLE else [pytest.mark.long]) for part in range(CUTS)]
)
@pytest.mark.parametrize("name", KEPT)
async def test_a_kept_log_is_gone_on_with_from_anywhere(name: str, part: int, tmp_path: Path) -> None:
    """The gateway of the tests answers the same as when the log was kept, so that the end is the same too."""
    events = read_log(KEPT[name])
    end = place_of("concluded", events)
    for place in range(2, end, max(end // CUTS, 1))[part::CUTS]:
        cut = place + (
            events[place].kind == "checkpoint_closed"
        )  # it is one record with the act that closes it
        replayed, _ = await go_on_with(KEPT[name], events[:cut], tmp_path / str(cut))
        assert _remove_ballots(find_concluded(replayed)) == _remove_ballots(find_concluded(events)), (
            f"cut after {cut}"
        )


def _remove_ballots(found: Concluded) -> Concluded:
    """An end without the ballots: which ones are in when a vote ends early is a matter of time, who wins is not."""
    told = Concluded()
    told.CopyFrom(found)
    for vote in told.outcome.arena.votes:
        for name in ("options", "ballots", "groups", "left_out_agent_ids", "left_out_weight"):
            vote.ClearField(name)
    return told


async def test_a_sentence_that_a_kept_log_does_not_have_is_quoted_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(propose, "POSITION_INSTRUCTION", f"{POSITION_INSTRUCTION} Then sing.")
    kept = KEPT["arena@1-alone"]
    events = read_log(kept)
    said = "round/1/propose/ada says what its log does not: 'Then sing.'"
    with pytest.raises(pytest.fail.Exception, match=re.escape(said)):
        await go_on_with(kept, events[: place_of("concluded", events)], tmp_path)


async def find_stop(kept: KeptDebate, folder: Path) -> str:
    """Say why a log is not gone on with to its end; empty if it is."""
    events = read_log(kept)
    try:
        await go_on_with(kept, events[: place_of("concluded", events)], folder)
    except pytest.fail.Exception as stopped:
        return str(stopped)
    return ""


@pytest.mark.parametrize("setting", find_prompt_settings())
async def test_a_setting_that_a_phase_reads_has_words_in_a_kept_log(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it is left unset, a debate that has it does not ask what its log has."""
    begin = Debate.__init__

    def begin_without(self: Debate, created: DebateCreated, *rest: Any, **given: Any) -> None:
        begin(self, with_fields(created, spec=without_setting(created.spec, setting)), *rest, **given)

    monkeypatch.setattr(Debate, "__init__", begin_without)
    for kept in find_debates_with(setting):
        if "words were changed or removed" in await find_stop(kept, tmp_path / kept.name):
            return
    pytest.fail(
        f"no kept log says what hangs on {setting}: let a debate of tests/support/kept_logs.py come to it"
    )


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_log_can_be_read(name: str) -> None:
    events, kept = read_log(KEPT[name]), KEPT[name].format
    folded = fold(events)
    assert folded.status == DEBATE_STATUS_COMPLETED
    assert f"Format: {kept}" in render_report(folded, formats_with_small().find(kept))


async def test_an_open_debate_finishes_on_its_version_while_new_ones_begin_with_the_latest(
    stage: Backstage,
) -> None:
    async def run_newer(debate: Debate) -> Outcome:
        raise AssertionError("an open debate of one version is none of the next")

    hold = stage.gateway.hold("round/2/propose/ada")
    async with stage.replica() as before:
        debate = await before.create(make_debate(2, 2))
        await hold.reached.wait()
        await before.crash()
    both = dataclasses.replace(stage, formats=Formats([V1, structs.replace(V1, version=2, run=run_newer)]))
    assert both.formats.get("panel").id == "panel@2"
    async with both.replica():
        hold.release()
        events = await both.comes_to(debate, "COMPLETED")
    check_log(events)
    assert fold(events).spec.format == "panel@1"
