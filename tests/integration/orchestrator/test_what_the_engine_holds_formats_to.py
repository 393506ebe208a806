"""What the engine holds a format to, whatever that does: its limits, its outcome, and who takes part."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from parley.orchestrator.api.folding import fold
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.execution import FollowUp
from parley.orchestrator.engine.format import Format, Formats
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.model.errors import ServiceUnavailableError
from parley.orchestrator.model.tasks import Task, user_part
from parley.v1 import debate_pb2
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED, DEBATE_STATUS_WAITING, Outcome
from parley.v1.event_pb2 import (
    DebateCreated,
    StepFailed,
    Warned,
)
from tests.support.debate_logs import check_log
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import Backstage, make_debate, make_limits, with_spec
from tests.support.small_format import VOTE


def formats_with(*runs: Callable[[Debate], Awaitable[Outcome]]) -> Formats:
    """The shipped formats, and one for each function, by its name."""
    return Formats([*all_formats().all(), *(Format(run.__name__, 1, run) for run in runs)])


def make_debate_of(run: Callable[[Debate], Awaitable[Outcome]], **fields: Any) -> DebateCreated:
    return with_spec(make_debate(2, 1, **fields), format=f"{run.__name__}@1", settings=None)


def make_task(agent: str) -> Task:
    return Task(VOTE.create_work(agent), (user_part("Say something."),), 20)


async def two_in_a_row(debate: Debate) -> Outcome:
    ada, bo = debate.agents

    async def one() -> object:
        return await debate.ask("one", ada, make_task("ada"))

    async def two() -> object:
        await debate.ask("two/first", bo, make_task("bo"))
        return await debate.ask("two/second", bo, make_task("bo"))

    await debate.run_until_enough("settled", {"one": one, "two": two}, lambda results: "one" in results)
    return Outcome(description="done")


async def test_whoever_is_left_out_begins_nothing_any_more(stage: Backstage) -> None:
    stage = replace(stage, formats=formats_with(two_in_a_row))
    async with stage.replica() as replica:
        for _ in range(20):
            events = await stage.comes_to(await replica.create(make_debate_of(two_in_a_row)), "COMPLETED")
            check_log(events)
            place = next(event.sequence for event in events if event.kind == "settled")
            begun = {event.key for event in events if event.kind == "step_started"}
            ended = {event.key for event in events if event.kind in {"step_succeeded", "step_failed"}}
            late = [event.key for event in events if event.kind == "step_started" and event.sequence > place]
            assert begun <= ended, "what was begun was answered, or stopped"
            assert all(key.startswith("after/") for key in late)


async def twins(debate: Debate) -> Outcome:
    agent = Agent(id="hope", name="Hope", role="generalist")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(debate.add_participant("join/one", agent, {}))
        tasks.create_task(debate.add_participant("join/two", agent, {}))
    return Outcome(description="done")


async def test_two_that_join_at_once_under_one_id_stop_the_debate(stage: Backstage) -> None:
    stage = replace(stage, formats=formats_with(twins))
    async with stage.replica() as replica:
        events = await stage.comes_to(await replica.create(make_debate_of(twins)), "FAILED")
    assert [event.kind for event in events].count("participant_joined") <= 1


async def return_nothing(_debate: Debate) -> Outcome:
    return None  # type: ignore[return-value]


async def test_a_format_that_returns_no_outcome_fails_its_debate(stage: Backstage) -> None:
    stage = replace(stage, formats=formats_with(return_nothing))
    async with stage.replica() as replica:
        debate = await replica.create(make_debate_of(return_nothing))
        events = await stage.comes_to(debate, "FAILED")
    folded = fold(events)
    assert folded.HasField("failure")
    assert folded.failure.reason == "INTERNAL"


async def sleeper(debate: Debate) -> Outcome:
    await debate.run_timer("long", 3600)
    return Outcome(description="woken")


async def test_a_limit_that_ends_the_debate_ends_a_timer_too(stage: Backstage) -> None:
    stage, clock = replace(stage, formats=formats_with(sleeper)), ManualClock()
    async with stage.replica(clock=clock) as replica:
        debate = await replica.create(make_debate_of(sleeper, limits=make_limits(total=10)))
        await stage.has(debate, "timer_started")
        await clock.sleeping(2)
        clock.advance(11)
        events = await stage.comes_to(debate, "COMPLETED")
    assert [event.kind for event in events].count("timer_fired") == 1


async def two_questions(debate: Debate) -> Outcome:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(debate.run_checkpoint("first", debate_pb2.Direction(text="Go on?")))
        tasks.create_task(debate.run_checkpoint("second", debate_pb2.Approval(text="Is it so?")))
    return Outcome(description="done")


async def test_a_debate_that_waits_at_two_checkpoints_goes_on_waiting_when_one_is_closed(
    stage: Backstage,
) -> None:
    stage = replace(stage, formats=formats_with(two_questions))
    async with stage.replica() as replica:
        debate = await replica.create(make_debate_of(two_questions))
        await stage.has(debate, "checkpoint_opened", 2)
        await replica.intervene(debate, "continue_debate")
        folded = fold(await stage.has(debate, "checkpoint_closed"))
        assert folded.HasField("waiting")
        assert (folded.status, folded.waiting.checkpoint) == (DEBATE_STATUS_WAITING, "second")
        assert (await stage.record(debate)).status == "WAITING"
        await replica.intervene(debate, "approve", approved=True)
        assert not fold(await stage.comes_to(debate, "COMPLETED")).HasField("waiting")


async def away_for_ever(debate: Debate, _outcome: Outcome, _at: datetime) -> None:
    async def call() -> Outcome:
        raise ServiceUnavailableError("ratings is away")

    outcome = await debate.call_service("after/ratings", VOTE.create_work(), Outcome(), call)
    assert isinstance(outcome, StepFailed)
    debate.record_event("after/ratings/warning", Warned(message=f"not recorded: {outcome.message}"))


async def test_what_follows_an_answer_is_given_up_at_its_own_limit(stage: Backstage) -> None:
    clock = ManualClock()
    limits = make_limits(total=60)
    async with stage.replica(clock=clock, follow_up=away_for_ever, follow_up_limits=limits) as replica:
        debate = await replica.create(make_debate(2, 1))
        await stage.has(debate, "concluded")
        await stage.has(debate, "step_started", 10)  # the panel's nine, and this one
        await clock.sleeping(2)
        for _ in range(7):
            clock.advance(10)
            await clock.sleeping(1)
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    (failed,) = [event.payload for event in events if isinstance(event.payload, StepFailed)]
    assert (failed.reason, failed.message) == (
        "TOTAL_TIMEOUT",
        "no answer within the follow-up's limit of 60 s",
    )
    folded = fold(events)
    assert (folded.status, folded.ended_by) == (DEBATE_STATUS_COMPLETED, "")
    assert folded.warnings == ["not recorded: no answer within the follow-up's limit of 60 s"]


async def test_a_debate_is_closed_though_another_version_had_begun_what_follows_it_otherwise(
    stage: Backstage,
) -> None:
    def asking(question: str, hang: asyncio.Event | None) -> FollowUp:
        async def follow_up(debate: Debate, _outcome: Outcome, _at: datetime) -> None:
            async def call() -> Outcome:
                if hang is not None:
                    hang.set()
                    await asyncio.Event().wait()
                return Outcome()

            await debate.call_service(
                "after/ratings", VOTE.create_work(), Outcome(description=question), call
            )

        return follow_up

    hangs = asyncio.Event()
    async with stage.replica(follow_up=asking("one", hangs)) as first:
        debate = await first.create(make_debate(2, 1))
        await hangs.wait()
        await stage.has(debate, "step_started", 10)  # the panel's nine, and this one
        await first.crash()
    async with stage.replica(follow_up=asking("other", None)):
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert "what follows the answer was not finished" in fold(events).warnings[0]
