"""Two versions over one store: releases are rolled out and back while debates run, and no debate fails for it.

The older version is a replica that knows fewer formats, one whose format does something else, or one before a log with events
that only a newer version knows.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from parley.orchestrator.engine import debate as engine
from parley.orchestrator.engine.agent_steps import create_agent_step
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format, Formats
from parley.orchestrator.engine.steps import StepRequest
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log.reading import log_name
from parley.orchestrator.model.tasks import Activity, Task, user_part
from parley.storage.ports import Record
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import DebateCreated
from tests.support.debate_logs import check_log, leave_log
from tests.support.orchestration import TENANT, Backstage, Replica, make_debate, until
from tests.support.other_code import run_other_code
from tests.unit.orchestrator.made_logs import CREATED, DEBATE, foreign_entry, log

SAYING = Activity("saying", "says something")


def make_format(*words: str, version: int = 1) -> Format:
    """A format whose agents say these words one after another."""

    async def run(debate: Debate) -> Outcome:
        for number, word in enumerate(words):
            agent = debate.agents[0]
            task = Task(SAYING.create_work(agent.id), (user_part(word),), 20)
            await debate.ask(f"say/{number}", agent, task)
        return Outcome(description=" ".join(words))

    return Format("saying", version, run)


def make_formats(*formats: Format) -> Formats:
    return Formats([*formats, *all_formats().all()])


ONE, TWO = make_format("a", "b"), make_format("a", "b", "c", version=2)
OLD, NEW = make_formats(ONE), make_formats(ONE, TWO)


def make_said_debate(version: int) -> DebateCreated:
    return make_debate(1, format=f"saying@{version}", settings=None)


async def test_a_release_is_rolled_out_and_back_and_every_debate_completes(stage: Backstage) -> None:
    """Old alone, both, new alone, both, old alone, and new again for what only it knows."""
    hold = stage.gateway.hold("say/1")
    debates: list[str] = []

    async def begin(replica: Replica, version: int) -> None:
        debates.append(await replica.create(make_said_debate(version)))
        await stage.has(debates[-1], "step_succeeded")

    def make_replica(owner: str, formats: Formats) -> Replica:
        return stage.replica(owner, formats=formats, exclusive=False, lease_seconds=0.3)

    async with make_replica("old", OLD) as old:
        await begin(old, 1)
        async with make_replica("new", NEW) as new:
            await begin(new, 1)
            await begin(new, 2)
            await old.runner.drain()
            await stage.has(debates[0], "claimed", 2)
            async with make_replica("old-again", OLD):
                await new.runner.drain()
                await stage.has(debates[0], "claimed", 3)
                await stage.has(debates[1], "claimed", 2)
                hold.release()
                for debate in debates[:2]:
                    check_log(await stage.comes_to(debate, "COMPLETED"))
                assert (await stage.kinds(debates[2])).count("claimed") == 1, (
                    "the old one knows no such format"
                )
                assert (await stage.record(debates[2])).status == "RUNNING"
    async with make_replica("newest", NEW):
        check_log(await stage.comes_to(debates[2], "COMPLETED"))


@pytest.mark.parametrize("broken", ["another word", "a fault"])
async def test_what_a_replica_took_over_and_cannot_go_on_with_is_given_up_for_one_that_can(
    stage: Backstage, broken: str
) -> None:
    async def fails(_: Debate) -> Outcome:
        raise KeyError("something that this version lacks")

    other = make_format("x", "b") if broken == "another word" else replace(ONE, run=fails)
    hold = stage.gateway.hold("say/1")
    async with stage.replica("one", formats=OLD) as one:
        debate = await one.create(make_said_debate(1))
        await hold.reached.wait()
    async with stage.replica("other", formats=make_formats(other), exclusive=True):
        await stage.has(debate, "claimed", 2)

        async def is_given_up() -> bool:
            return (await stage.record(debate)).owner is None

        await stage.has(debate, "claimed", 2)
        await until(is_given_up, "it is given up")
        assert (await stage.record(debate)).status == "RUNNING"
        hold.release()
        async with stage.replica("able", formats=OLD, exclusive=False):
            events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert "debate_failed" not in [event.kind for event in events]


async def test_a_log_with_events_of_a_newer_version_is_not_claimed_and_others_go_on(stage: Backstage) -> None:
    spec = make_debate(1, format="saying@1", settings=None)
    events = log(CREATED)
    left = await leave_log(stage, events)
    entry = foreign_entry(events[-1].hash, 2, ignorable=False)
    await stage.store.log.append(log_name(TENANT, DEBATE), Record(2, "newer", (entry,)))
    async with stage.replica("old", formats=OLD) as old:
        other = await old.create(spec)
        await stage.comes_to(other, "COMPLETED")
    record = await stage.record(left)
    assert (record.epoch, record.status, record.open) == (1, "RUNNING", True)
    assert [event.kind for event in await stage.events(left)] == ["debate_created", ""]


@pytest.mark.parametrize("code", ["the same", "another"])
async def test_rounds_that_are_over_are_asked_again_by_other_code_only(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """Other code finds out so whether it asks what was asked; the same code would, and spares itself the prompts."""
    hold, asked = stage.gateway.hold("round/2/refine/bo"), list[str]()

    async def create_step(key: str, *given: Any, **named: Any) -> StepRequest:
        asked.append(key)
        return await create_agent_step(key, *given, **named)

    async with stage.replica("one") as one:
        debate = await one.create(make_debate(2, 2))
        await hold.reached.wait()
    monkeypatch.setattr(engine, "create_agent_step", create_step)
    if code == "another":
        run_other_code(monkeypatch)
    async with stage.replica("two"):
        hold.release()
        check_log(await stage.comes_to(debate, "COMPLETED"))
    rounds = sorted({key.split("/")[1] for key in asked if key.startswith("round/")})
    assert rounds == (["2"] if code == "the same" else ["1", "2"])
