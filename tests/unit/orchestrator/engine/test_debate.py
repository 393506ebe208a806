"""The handle that formats are written against, and the rules that make running again the same as resuming."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from parley.orchestrator.engine import agent_steps
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.log import journal as journal_module
from parley.orchestrator.log.envelope import Envelope, create_event
from parley.orchestrator.log.events import UnknownEventError
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.log.reading import read_events
from parley.orchestrator.model.errors import ReplayError, ServiceUnavailableError, StepError
from parley.orchestrator.model.tasks import AnswerShape, Task, user_part
from parley.orchestrator.peers.agents import Agents, Call
from parley.runtime.clock import Clock, SystemClock
from parley.storage.ports import Record
from parley.v1.debate_pb2 import DebateFailure, Reply, Work
from parley.v1.event_pb2 import (
    DebateFailed,
    Event,
    PastDebates,
    Resumed,
    StepFailed,
    StepStarted,
    StepSucceeded,
    Warned,
)
from parley.v1.memory_pb2 import PastDebate, RecallRequest
from tests.support.interventions import intervention
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import Backstage, agent, backstage, make_debate, until
from tests.support.scripted_faults import away, refusal
from tests.unit.orchestrator.made_logs import foreign_entry

WORK = Work(activity="proposal", agent_id="ada", round=1)
SPEC = make_debate()


def task(prompt: str = "Well?") -> Task:
    return Task(WORK, (user_part(prompt),))


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Backstage]:
    async with backstage(tmp_path) as behind:
        yield behind


@asynccontextmanager
async def own_debate(stage: Backstage, clock: Clock | None = None) -> AsyncIterator[tuple[Debate, Journal]]:
    """The next owner's handle on one and the same debate."""
    events = await read_events(stage.store.log, "t", "deb")
    journal = Journal(stage.store.log, SystemClock(), "t", "deb", events)
    await journal.claim("me")
    dependencies = stage.replica().dependencies
    writing = asyncio.create_task(journal.run_writer())
    try:
        clock = clock or dependencies.clock
        yield Debate(SPEC, journal, dependencies.agents, dependencies.services, clock), journal
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await journal.write_rest()


async def list_recorded(stage: Backstage, kind: type) -> list[Envelope]:
    events = await read_events(stage.store.log, "t", "deb")
    return [event for event in events if isinstance(event.payload, kind)]


async def ask(debate: Debate, key: str = "a", prompt: str = "Well?") -> Reply | StepFailed:
    return await asyncio.wait_for(debate.ask(key, agent("ada"), task(prompt)), 30)


class Verdict(BaseModel):
    yes: bool


class StrictVerdict(Verdict):
    """The same answer, for a version that fails at what the other one has recorded."""

    @field_validator("yes", mode="before")
    @classmethod
    def _overflow(cls, given: object) -> object:
        return float(10**400) if given is True else given


def verdict(model: type[Verdict]) -> AnswerShape[Verdict]:
    return AnswerShape("verdict", model, '{"properties": {}}', lambda answer: f"yes: {answer.yes}")


async def ask_verdict(debate: Debate, model: type[Verdict]) -> Verdict | StepFailed:
    made = debate.ask_structured("a", agent("ada"), task(), verdict(model))
    return await asyncio.wait_for(made, 30)


async def test_an_answer_that_cannot_be_read_is_the_failure_of_its_step(stage: Backstage) -> None:
    stage.gateway.judge = lambda _: '{"yes": true}'
    async with own_debate(stage) as (debate, _):
        failed = await ask_verdict(debate, StrictVerdict)
    assert isinstance(failed, StepFailed)
    assert (failed.reason, failed.usage.output_tokens) == ("UNREADABLE_ANSWER", 10)
    (event,) = await list_recorded(stage, StepFailed)
    assert event.payload == failed


async def test_a_recorded_step_is_not_estimated_again_and_its_answer_is_read_once(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.gateway.judge = lambda _: '{"yes": true}'
    async with own_debate(stage) as (debate, _):
        assert await ask_verdict(debate, Verdict) == Verdict(yes=True)
    read = list[str]()

    class CountedVerdict(Verdict):
        @classmethod
        def model_validate_json(cls, json_data: str, **_: object) -> "CountedVerdict":  # type: ignore[override]
            read.append(json_data)
            return cls(yes=True)

    monkeypatch.setattr(agent_steps, "estimate", None)  # a call of it would fail
    async with own_debate(stage) as (debate, _):
        assert await ask_verdict(debate, CountedVerdict) == CountedVerdict(yes=True)
    assert len(read) == 1


async def test_a_recorded_answer_that_cannot_be_read_is_asked_again_as_a_new_attempt(
    stage: Backstage,
) -> None:
    stage.gateway.judge = lambda _: '{"yes": true}'
    async with own_debate(stage) as (debate, _):
        assert await ask_verdict(debate, Verdict) == Verdict(yes=True)
    stage.gateway.judge = lambda _: '{"yes": false}'
    async with own_debate(stage) as (debate, journal):
        failure = DebateFailed(failure=DebateFailure(reason="INTERNAL"))
        await journal.append(create_event("failed", failure, 1), create_event("resumed", Resumed(), 2))
        assert await ask_verdict(debate, StrictVerdict) == StrictVerdict(yes=False)
    async with own_debate(stage) as (debate, _):
        assert await ask_verdict(debate, StrictVerdict) == StrictVerdict(yes=False)
    assert [event.attempt for event in await list_recorded(stage, StepSucceeded)] == [1, 2]
    assert [call.attempt for call in stage.gateway.calls] == [1, 2]


async def test_a_recorded_answer_that_cannot_be_read_is_left_to_the_version_that_recorded_it(
    stage: Backstage,
) -> None:
    stage.gateway.judge = lambda _: '{"yes": true}'
    async with own_debate(stage) as (debate, _):
        await ask_verdict(debate, Verdict)
    async with own_debate(stage) as (debate, _):
        with pytest.raises(ReplayError, match="the recorded answer of step a cannot be read by this version"):
            await ask_verdict(debate, StrictVerdict)


async def test_what_the_log_has_is_not_asked_again(stage: Backstage) -> None:
    async with own_debate(stage) as (debate, _):
        first = await ask(debate)
    async with own_debate(stage) as (debate, _):
        again = await ask(debate)
    assert first == again
    assert isinstance(first, Reply)
    assert (first.text, first.position) == ("ada answers a.\nPosition: ada stands by a", "ada stands by a")
    assert len(stage.gateway.calls) == 1


async def test_another_request_under_the_same_key_stops_loudly(stage: Backstage) -> None:
    async with own_debate(stage) as (debate, _):
        await ask(debate)
    async with own_debate(stage) as (debate, _):
        with pytest.raises(ReplayError, match="step a asks something else"):
            await ask(debate, prompt="And now?")


async def test_another_request_than_the_one_that_was_begun_stops_loudly(stage: Backstage) -> None:
    hold = stage.gateway.hold("a")
    async with own_debate(stage) as (debate, journal):
        asking = asyncio.create_task(debate.ask("a", agent("ada"), task()))
        await hold.reached.wait()
        await journal.append(create_event("note", Warned(message="begun")))
        asking.cancel()
    hold.release()
    async with own_debate(stage) as (debate, _):
        with pytest.raises(ReplayError):
            await ask(debate, prompt="And now?")
        assert len(stage.gateway.calls) == 1


async def test_a_key_stands_once_in_a_run(stage: Backstage) -> None:
    async with own_debate(stage) as (debate, _):
        await ask(debate)
        with pytest.raises(ReplayError, match="used twice"):
            await ask(debate)
        with pytest.raises(ReplayError, match="used twice"):
            debate.record_event("a", Warned(message="no"))


async def test_a_step_of_a_service_cannot_become_an_agents(stage: Backstage) -> None:
    past = PastDebates(debates=[PastDebate(debate_id="deb-1", question="Why?"), PastDebate()])

    async def call() -> PastDebates:
        return past

    async with own_debate(stage) as (debate, _):
        value = await debate.call_service("s", WORK, RecallRequest(text="1"), call)
    assert value == past
    async with own_debate(stage) as (debate, _):
        assert await debate.call_service("s", WORK, RecallRequest(text="1"), _must_not_be_called) == value
    async with own_debate(stage) as (debate, _):
        with pytest.raises(ReplayError):
            await debate.call_service("s", WORK, RecallRequest(text="2"), _must_not_be_called)
    async with own_debate(stage) as (debate, _):
        with pytest.raises(ReplayError):
            await ask(debate, "s")


async def test_a_gateway_that_holds_answers_is_told_at_once_of_those_that_were_recorded_within_a_moment(
    stage: Backstage,
) -> None:
    stage.gateway.holds_answers = True
    clock = ManualClock()
    async with own_debate(stage, clock) as (debate, _):
        telling = asyncio.create_task(debate.confirm_recorded())
        for key in "abc":
            await ask(debate, key)
        assert not stage.gateway.unkept
        await clock.sleeping()
        clock.advance(1)
        await until(lambda: _is_told(stage, 1), "the gateway is told")
        await ask(debate, "d")
        await clock.sleeping()
        clock.advance(1)
        await until(lambda: _is_told(stage, 2), "it is told again")
        telling.cancel()
    assert stage.gateway.unkept == [[("a", 1), ("b", 1), ("c", 1)], [("d", 1)]]


async def test_a_gateway_that_holds_an_answer_is_told_once_its_outcome_is_durable(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    async def forget(_: Agents, calls: Sequence[Call]) -> bool:
        order.append("told")
        return bool(calls)

    monkeypatch.setattr(Agents, "forget", forget)
    stage.gateway.holds_answers = True
    clock = ManualClock()
    async with own_debate(stage, clock) as (debate, journal), hold_log(journal) as release:
        telling = asyncio.create_task(debate.confirm_recorded())
        await ask(debate)
        await clock.sleeping()
        clock.advance(1)
        for _ in range(10):
            await asyncio.sleep(0)
        order.append("durable")
        release.set()
        await until(lambda: _has(order, 2), "the gateway is told")
        telling.cancel()
    assert order == ["durable", "told"]


async def _has(order: Sequence[str], count: int) -> bool:
    return len(order) == count


@asynccontextmanager
async def hold_log(journal: Journal) -> AsyncIterator[asyncio.Event]:
    """Hold all appends of a journal until the event is set."""
    released, append = asyncio.Event(), journal._log.append

    async def append_later(log: str, record: Record, **beside: Any) -> None:
        await released.wait()
        await append(log, record, **beside)

    journal._log = SimpleNamespace(append=append_later)
    try:
        yield released
    finally:
        released.set()


async def test_the_gateway_is_told_in_the_end_of_answers_of_which_it_could_not_be_told_just_before(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[list[str]] = []
    asked, fails = asyncio.Event(), asyncio.Event()

    async def forget(_: Agents, calls: Sequence[Call]) -> bool:
        told.append([each.step for each in calls])
        if asked.is_set():
            return True
        asked.set()
        await fails.wait()
        return False

    monkeypatch.setattr(Agents, "forget", forget)
    stage.gateway.holds_answers = True
    clock = ManualClock()
    async with own_debate(stage, clock) as (debate, _):
        telling = asyncio.create_task(debate.confirm_recorded())
        await ask(debate, "a")
        await clock.sleeping()
        clock.advance(1)
        await asked.wait()
        ending = asyncio.create_task(debate.forget_answers())
        await asyncio.sleep(0)
        fails.set()
        await ending
        telling.cancel()
    assert told == [["a"], ["a"]]


async def test_an_answer_that_cannot_be_read_is_forgotten_too_in_the_end(stage: Backstage) -> None:
    stage.gateway.holds_answers = True
    stage.gateway.judge = lambda _: '{"yes": true}'
    async with own_debate(stage) as (debate, _):
        assert isinstance(await ask_verdict(debate, StrictVerdict), StepFailed)
        await debate.forget_answers()
        await debate.forget_answers()
    assert stage.gateway.unkept == [[("a", 1)]]


async def _is_told(stage: Backstage, times: int) -> bool:
    return len(stage.gateway.unkept) == times


async def test_the_outcome_of_a_service_is_recorded_with_what_follows_it(stage: Backstage) -> None:
    async def call() -> PastDebates:
        return PastDebates()

    async with own_debate(stage) as (debate, journal):
        await debate.call_service("s", WORK, RecallRequest(text="1"), call)
        await journal.append(create_event("next", Warned(message="next")))
    last = (await stage.store.log.read("t/deb"))[-1]
    assert [Event.FromString(each).WhichOneof("payload") for each in last.entries] == [
        "step_started",
        "step_succeeded",
        "warned",
    ]


async def test_an_agent_is_asked_only_once_all_outcomes_before_are_durable(stage: Backstage) -> None:
    async def call() -> PastDebates:
        return PastDebates()

    async with own_debate(stage) as (debate, journal), hold_log(journal) as release:
        await asyncio.wait_for(debate.call_service("s", WORK, RecallRequest(text="1"), call), 30)
        asked = asyncio.create_task(ask(debate))
        await until(lambda: _are_in_flight(debate, 1), "the agent's step begins")
        assert not debate.limiter.is_calling
        release.set()
        assert isinstance(await asked, Reply)
    assert [each.call for each in stage.gateway.calls] == [("a", 1)]


async def _are_in_flight(debate: Debate, count: int) -> bool:
    return len(debate.limiter.in_flight) == count


async def test_outcomes_of_agents_side_by_side_are_recorded_with_what_follows_them(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with own_debate(stage) as (debate, _):
        monkeypatch.setattr(journal_module, "_COMPANY_SECONDS", 3600)
        hold = stage.gateway.hold("second")
        first, second = asyncio.create_task(ask(debate, "first")), asyncio.create_task(ask(debate, "second"))
        await first
        following = asyncio.create_task(ask(debate, "following"))
        await stage.gateway.wait_for("second")
        await until(lambda: _are_in_flight(debate, 2), "what follows the first begins")
        assert stage.gateway.steps("following") == []
        hold.release()
        await second
        await ask(debate, "last")
        await following
    _, written, _ = await stage.store.log.read("t/deb")
    keys = [Event.FromString(each).key for each in written.entries]
    assert keys == ["first", "second", "first", "following", "second", "last"]


async def test_an_agents_step_cannot_become_a_services(stage: Backstage) -> None:
    async with own_debate(stage) as (debate, _):
        await ask(debate, "s")
    async with own_debate(stage) as (debate, _):
        with pytest.raises(ReplayError):
            await debate.call_service("s", WORK, RecallRequest(text="1"), _must_not_be_called)


async def test_an_agents_failure_is_an_outcome_and_is_not_asked_again(stage: Backstage) -> None:
    stage.gateway.fail("a", refusal("CONTEXT_OVERFLOW", "too long"))
    async with own_debate(stage) as (debate, _):
        failed = await ask(debate)
    stage.gateway.mend()
    async with own_debate(stage) as (debate, _):
        assert await ask(debate) == failed
    assert isinstance(failed, StepFailed)
    assert (failed.reason, failed.message) == ("CONTEXT_OVERFLOW", "too long")
    assert (failed.usage.input_tokens, failed.usage.requests) == (3, 2)
    assert len(stage.gateway.calls) == 1


async def test_our_own_trouble_is_no_outcome_and_the_step_is_made_again(stage: Backstage) -> None:
    stage.gateway.fail("a", away(), times=2)
    async with own_debate(stage) as (debate, _):
        assert isinstance(await ask(debate), Reply)
    assert [each.call for each in stage.gateway.calls] == [("a", 1)] * 3
    assert len(await list_recorded(stage, StepStarted)) == 1
    assert [event.attempt for event in await list_recorded(stage, StepSucceeded)] == [1]
    assert not await list_recorded(stage, StepFailed)


async def test_a_services_own_trouble_and_its_failures_are_told_apart(stage: Backstage) -> None:
    errors: list[Exception] = [ServiceUnavailableError("away"), StepError("NO", "no")]

    async def call() -> PastDebates:
        raise errors.pop(0)

    async with own_debate(stage) as (debate, _):
        failed = await debate.call_service("s", WORK, RecallRequest(), call)
    assert isinstance(failed, StepFailed)
    assert failed.reason == "NO"


async def test_a_resumed_debate_tries_what_it_failed_on_as_a_new_attempt(stage: Backstage) -> None:
    stage.gateway.fail("*", attempt=1)
    async with own_debate(stage) as (debate, journal):
        await ask(debate, "a")
        await ask(debate, "b")
        failure = DebateFailed(failure=DebateFailure(reason="PROVIDER_AUTH", message="no", steps=["a"]))
        await journal.append(create_event("failed", failure, 1), create_event("resumed", Resumed(), 2))
    async with own_debate(stage) as (debate, _):
        assert isinstance(await ask(debate, "a"), Reply)
        assert isinstance(await ask(debate, "b"), StepFailed)
    assert [each.call for each in stage.gateway.calls] == [("a", 1), ("b", 1), ("a", 2)]


async def test_interventions_are_seen_the_same_on_every_replay(stage: Backstage) -> None:
    async with own_debate(stage) as (debate, journal):
        await journal.append(create_event("intervention/1", intervention("guide", "1", text="be brief")))
        seen = await debate.read_steering("round/1/control")
        await journal.append(create_event("intervention/2", intervention("guide", "2", text="be long")))
    async with own_debate(stage) as (debate, _):
        assert await debate.read_steering("round/1/control") == seen
        assert (await debate.read_steering("round/2/control")).guidance == ("be brief", "be long")
    assert seen.guidance == ("be brief",)


async def test_notes_are_recorded_once(stage: Backstage) -> None:
    for _ in range(2):
        async with own_debate(stage) as (debate, journal):
            debate.record_event("n", Warned(message="careful"))
            await journal.append(create_event(f"fence/{journal.epoch}", Warned(message="")))
    assert [event.key for event in await list_recorded(stage, Warned)].count("n") == 1


async def test_dice_fall_the_same_for_a_debate_and_key(stage: Backstage) -> None:
    async with own_debate(stage) as (debate, _):
        first = [debate.random("x").random(), debate.random("y").random()]
    random.seed(1)
    async with own_debate(stage) as (debate, _):
        assert [debate.random("x").random(), debate.random("y").random()] == first
    assert first == [0.0806626161529933, 0.19492920245022394], "and on every machine, in every version"


async def test_a_marked_kind_that_is_not_known_is_passed_over_and_any_other_stops_the_owner(
    stage: Backstage,
) -> None:
    async with own_debate(stage) as (debate, _):
        first = await ask(debate)
    await _append_foreign(stage, ignorable=True)
    async with own_debate(stage) as (debate, _):
        assert await ask(debate) == first
    await _append_foreign(stage, ignorable=False)
    with pytest.raises(UnknownEventError):
        async with own_debate(stage):
            pass
    assert (await read_events(stage.store.log, "t", "deb"))[-1].payload is None, "and it has written nothing"


async def test_a_call_waits_at_the_gate_and_one_whose_gateway_is_away_does_not_hold_it(
    stage: Backstage,
) -> None:
    stage.gateway.fail("a", away())
    async with own_debate(stage) as (debate, _):
        asking = asyncio.create_task(debate.ask("a", agent("ada"), task()))
        await stage.gateway.wait_for("a")
        debate.gate.close()
        await asyncio.wait_for(debate.gate.wait_until_empty(), 30)
        asking.cancel()


async def _must_not_be_called() -> PastDebates:
    raise AssertionError("it is recorded")


async def _append_foreign(stage: Backstage, *, ignorable: bool) -> None:
    """Write an event of a kind that only a later version knows."""
    last = (await read_events(stage.store.log, "t", "deb"))[-1]
    entry = foreign_entry(
        last.hash,
        last.sequence + 1,
        ignorable=ignorable,
        tenant="t",
        debate="deb",
        epoch=last.epoch,
    )
    await stage.store.log.append("t/deb", Record(last.sequence + 1, "x", (entry,)))
