"""What the engine offers to formats, shown by a small one: settling, joining, structured answers, checkpoints, timers."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.engine.format import Formats
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.model.spec import participants_of
from parley.v1 import debate_pb2
from parley.v1.event_pb2 import (
    Concluded,
    DebateCreated,
    Intervened,
    LimitReached,
    Settled,
    StepFailed,
    StepSucceeded,
)
from tests.support.debate_logs import check_log, outcome_of
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import (
    TENANT,
    Backstage,
    Replica,
    backstage,
    make_debate,
    make_limits,
    until,
    with_spec,
)
from tests.support.small_format import (
    SMALL,
    WAIT_SECONDS,
    formats_with_small,
    make_usage,
    make_voting_gateway,
)

ANSWERS = debate_pb2.Answer(
    answers=[debate_pb2.QuestionAnswer(question_id="budget", text="ten euros")], text=""
)


def spec(**fields: Any) -> DebateCreated:
    return with_spec(make_debate(2, 1, **fields), format=SMALL.id, settings=None)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Backstage]:
    async with backstage(tmp_path, make_voting_gateway()) as behind:
        yield replace(behind, formats=formats_with_small())


async def answer_questions(replica: Replica, debate: str) -> None:
    made = Intervened(request_id="answers", intervention=debate_pb2.Intervention(answer=ANSWERS))
    await replica.intake.intervene(TENANT, debate, made)


async def finish_debate(
    stage: Backstage, replica: Replica, clock: ManualClock, debate: str
) -> list[Envelope]:
    """Let a debate that waits at its first checkpoint come to its end."""
    await stage.has(debate, "checkpoint_opened")
    await answer_questions(replica, debate)
    await stage.has(debate, "timer_started")
    clock.advance(WAIT_SECONDS)
    await stage.has(debate, "checkpoint_opened", 2)
    await replica.intervene(debate, "approve", approved=True)
    return await stage.comes_to(debate, "COMPLETED")


def outcome(events: list[Envelope]) -> str:
    return outcome_of(events).description


async def test_a_vote_ends_early_and_says_who_counted_before_the_rest_is_stopped(stage: Backstage) -> None:
    hold, clock = stage.gateway.hold("vote/doubt"), ManualClock()
    async with stage.replica(clock=clock) as replica:
        debate = await replica.create(spec())
        events = await finish_debate(stage, replica, clock, debate)
    check_log(events)
    (settled,) = [event.payload for event in events if isinstance(event.payload, Settled)]
    assert sorted(settled.counted) == ["ada", "bo", "hope"]
    assert (list(settled.left_out), list(settled.late)) == (["doubt"], ["vote/doubt"])
    assert hold.reached.is_set()
    assert ("vote/doubt", 1) in stage.gateway.cancelled, "the call of whoever is left out is stopped"
    (failed,) = [event.payload for event in events if isinstance(event.payload, StepFailed)]
    assert failed.reason == "SETTLED"
    assert outcome(events) == "tea, approved; counted: ada, bo, hope; without consent: nobody"


async def test_who_was_left_out_of_a_vote_is_never_asked_again(stage: Backstage) -> None:
    stage.gateway.hold("vote/doubt")
    clock = ManualClock()
    async with stage.replica(clock=clock) as first:
        debate = await first.create(spec())
        await stage.has(debate, "checkpoint_opened")
        await answer_questions(first, debate)
        await stage.has(debate, "timer_started")
        await first.crash()
    async with stage.replica(clock=clock) as second:
        await stage.has(debate, "claimed", 2)
        clock.advance(WAIT_SECONDS)
        await stage.has(debate, "checkpoint_opened", 2)
        await second.intervene(debate, "approve", approved=True)
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert stage.gateway.steps("vote/*").count("vote/doubt") == 1
    assert "counted: ada, bo, hope" in outcome(events)


async def test_participants_that_join_have_letters_consent_and_a_place_in_the_report(
    stage: Backstage,
) -> None:
    clock = ManualClock()
    async with stage.replica(clock=clock) as replica:
        debate = await replica.create(spec())
        events = await finish_debate(stage, replica, clock, debate)
    assert "You are agent C." in stage.gateway.asked("vote/hope").prompt
    assert stage.gateway.steps("consent/*").count("consent/doubt") == 1
    folded = fold(events)
    assert [each.id for each in participants_of(folded)] == ["ada", "bo", "hope", "doubt"]
    report = render_report(folded, SMALL)
    assert "| Hope | hope |" in report
    assert "### Consent: Doubt" in report


async def test_a_participant_that_joined_can_be_muted(stage: Backstage) -> None:
    async with stage.replica(clock=ManualClock()) as replica:
        debate = await replica.create(spec())
        await stage.has(debate, "participant_joined", 2)
        await replica.intervene(debate, "mute", agent_id="hope")
        await replica.intervene(debate, "cancel")


async def test_a_structured_answer_is_recorded_as_it_was_given_and_as_people_read_it(
    stage: Backstage,
) -> None:
    clock = ManualClock()
    async with stage.replica(clock=clock) as replica:
        debate = await replica.create(spec())
        events = await finish_debate(stage, replica, clock, debate)
    # The fourth vote is left out if three are enough before it comes, and any of the four may be that one.
    ballot, *_ = [
        event.payload.reply
        for event in events
        if isinstance(event.payload, StepSucceeded) and event.key.startswith("vote/")
    ]
    assert json.loads(ballot.text)["choice"] == "tea"
    assert ballot.rendered == "votes for tea, since it is warm"
    report = render_report(fold(events), SMALL)
    assert "### Votes" not in report, "votes stand outside of rounds here"
    assert "> votes for tea, since it is warm" in report


async def test_an_answer_that_is_not_of_its_shape_is_a_failure_with_what_it_used(stage: Backstage) -> None:
    stage.gateway.judge = lambda _schema: json.dumps({"choice": "", "reason": "none"})
    clock = ManualClock()
    async with stage.replica(clock=clock) as replica:
        debate = await replica.create(spec())
        events = await finish_debate(stage, replica, clock, debate)
    failed = [event.payload for event in events if isinstance(event.payload, StepFailed)]
    assert {each.reason for each in failed} == {"INVALID_STRUCTURED_ANSWER"}
    assert len(failed) == 4
    assert all(each.usage.output_tokens for each in failed)
    assert outcome(events).startswith("nothing, approved")


async def test_answers_to_single_questions_reach_the_format(stage: Backstage) -> None:
    clock = ManualClock()
    async with stage.replica(clock=clock) as replica:
        debate = await replica.create(spec())
        await finish_debate(stage, replica, clock, debate)
    assert "the budget is ten euros" in stage.gateway.asked("answer").prompt


async def test_a_timer_goes_on_where_an_owner_before_began_it(stage: Backstage) -> None:
    clock = ManualClock()
    async with stage.replica(clock=clock) as first:
        debate = await first.create(spec())
        await stage.has(debate, "checkpoint_opened")
        await answer_questions(first, debate)
        await stage.has(debate, "timer_started")
        await first.crash()
    clock.advance(WAIT_SECONDS)
    async with stage.replica(clock=clock) as second:
        await stage.has(debate, "timer_fired")
        await second.intervene(debate, "cancel")
        kinds = [event.kind for event in await stage.comes_to(debate, "CANCELLED")]
    assert kinds.count("timer_started") == kinds.count("timer_fired") == 1


async def test_what_is_asked_after_the_answer_obeys_the_budget(stage: Backstage) -> None:
    clock = ManualClock()
    stage.gateway.usage = make_usage
    async with stage.replica(clock=clock) as replica:
        debate = await replica.create(spec(limits=make_limits(max_tokens=1800)))
        events = await finish_debate(stage, replica, clock, debate)
    check_log(events)
    assert len(stage.gateway.steps("consent/*")) == 2, "a third one could exceed it"
    (reached,) = [event.payload for event in events if isinstance(event.payload, LimitReached)]
    (concluded,) = [event.payload for event in events if isinstance(event.payload, Concluded)]
    assert (reached.limit, concluded.ended_by) == ("token_budget", "token_budget")
    assert "without consent: hope, doubt" in concluded.outcome.description


async def test_time_that_is_over_when_the_answer_is_there_stops_what_would_be_asked_after_it(
    stage: Backstage,
) -> None:
    hold, clock = stage.gateway.hold("answer"), ManualClock()
    async with stage.replica(clock=clock) as replica:
        debate = await replica.create(spec(limits=make_limits(total=WAIT_SECONDS + 10)))
        await stage.has(debate, "checkpoint_opened")
        await answer_questions(replica, debate)
        await stage.has(debate, "timer_started")
        clock.advance(WAIT_SECONDS)
        await stage.gateway.wait_for("answer")
        clock.advance(20)
        hold.release()
        await stage.has(debate, "checkpoint_opened", 2)
        await replica.intervene(debate, "approve", approved=True)
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert not stage.gateway.steps("consent/*")
    (reached,) = [event.payload for event in events if isinstance(event.payload, LimitReached)]
    assert reached.limit == "total_timeout"
    (concluded,) = [event.payload for event in events if isinstance(event.payload, Concluded)]
    assert concluded.ended_by == "total_timeout"
    assert "without consent: ada, bo, hope, doubt" in concluded.outcome.description


async def test_the_states_that_a_format_names_are_the_phase_that_people_see(stage: Backstage) -> None:
    async with stage.replica(clock=ManualClock()) as replica:
        debate = await replica.create(spec())
        events = await stage.has(debate, "checkpoint_opened")
        assert fold(events).phase == "GATHERING"
        await replica.intervene(debate, "cancel")


async def test_a_checkpoint_is_closed_by_the_acts_of_its_kind_alone(stage: Backstage) -> None:
    async with stage.replica(clock=ManualClock()) as replica:
        debate = await replica.create(spec())
        await stage.has(debate, "checkpoint_opened")
        with pytest.raises(Exception, match="no open checkpoint that approve closes"):
            await replica.intervene(debate, "approve", approved=True)
        await replica.intervene(debate, "guide", text="mind the cost")
        kinds = [event.kind for event in await stage.events(debate)]
        assert "checkpoint_closed" not in kinds
        await replica.intervene(debate, "continue_debate")
        await stage.has(debate, "checkpoint_closed")
        await replica.intervene(debate, "cancel")


async def test_a_debate_of_a_format_that_a_replica_does_not_know_waits_for_one_that_does(
    stage: Backstage, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with stage.replica(clock=clock) as first:
        debate = await first.create(spec())
        await stage.has(debate, "checkpoint_opened")
        await first.crash()
    known = [each for each in stage.formats.all() if each.id != SMALL.id]
    older = replace(stage, formats=Formats(known))
    async with older.replica("older", clock=clock) as old:
        other = await old.create(make_debate(1, 1))
        await stage.comes_to(other, "COMPLETED")  # it has looked at the store since, more than once
        assert [event.epoch for event in await stage.events(debate)][-1] == 1
    async with stage.replica(clock=clock) as newer:

        async def is_claimed() -> bool:
            return (await stage.events(debate))[-1].epoch == 2

        await until(is_claimed, "the newer replica owns it")
        await newer.intervene(debate, "cancel")
        await stage.comes_to(debate, "CANCELLED")
