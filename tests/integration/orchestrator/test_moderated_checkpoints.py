"""Checkpoints of moderated debates: what a person says after a round and to the decision, and what follows from it."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.log.envelope import Envelope
from parley.v1.debate_pb2 import (
    STOP_REASON_ALL_ROUNDS_COMPLETED,
    STOP_REASON_CONVERGED,
    STOP_REASON_PERSON,
)
from parley.v1.event_pb2 import CheckpointOpened, PhaseEntered, RoundsEnded
from parley.v1.moderated_pb2 import CONFIDENCE_MEDIUM, ModeratedOutcome
from tests.support.checked_format import person
from tests.support.debate_logs import check_log, find_concluded, outcome_of, outcomes
from tests.support.manual_clock import ManualClock
from tests.support.moderated_debates import ModeratedScript, moderated_spec
from tests.support.orchestration import backstage, make_limits, with_spec
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.stopping import Play

pytestmark = pytest.mark.timeout(240)
ARGUE = "argue/simplicity-advocate"


async def hold_debate(
    folder: Path, gateway: ScriptedGateway, acts: Mapping[str, str], **settings: Any
) -> list[Envelope]:
    """Hold a moderated debate in which a person does this at the checkpoints with these keys, and return its log."""
    async with (
        backstage(folder, gateway) as stage,
        stage.replica() as replica,
        person(stage, replica, acts),
    ):
        debate = await replica.create(moderated_spec(checkpoints=True, **settings))
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    return events


def list_opened(events: list[Envelope]) -> dict[str, CheckpointOpened]:
    return {event.key: event.payload for event in events if isinstance(event.payload, CheckpointOpened)}


def outcome(events: list[Envelope]) -> ModeratedOutcome:
    return outcome_of(events).moderated


def reason(events: list[Envelope]) -> int:
    (found,) = [event.payload for event in events if isinstance(event.payload, RoundsEnded)]
    return found.reason


async def test_after_each_round_a_person_reads_the_summary_and_what_each_choice_leads_to(
    tmp_path: Path,
) -> None:
    events = await hold_debate(tmp_path, ModeratedScript().gateway(), {}, max_rounds=2)
    asked = list_opened(events)
    assert list(asked) == ["round/1/checkpoint", "round/2/checkpoint", "synthesis/approval"]
    first, last = (asked[f"round/{number}/checkpoint"].direction.text for number in (1, 2))
    assert first.startswith(
        "**Round 1 of at most 2**\n\n**Simplicity Advocate** (A): simplicity-advocate stands by its case.\n\n- A.1: "
    )
    assert "\n\n**The moderator**\n\nSimplicity Advocate (A) put A.1 at its strongest in round 1." in first
    assert "The debate goes on: round 1 says so.\n\nContinue: round 2 of at most 2 is held." in first
    assert "All 2 rounds were held.\n\nContinue or End: the moderator writes the decision." in last
    states = [event.payload.name for event in events if isinstance(event.payload, PhaseEntered)]
    assert states == [
        "analyzing",
        "in_round",
        "checkpoint",
        "in_round",
        "checkpoint",
        "synthesizing",
        "checkpoint",
        "complete",
    ]
    assert (outcome(events).approved, reason(events)) == (True, STOP_REASON_ALL_ROUNDS_COMPLETED)


async def test_at_a_checkpoint_a_person_reads_who_said_what_as_briefly_as_it_can_be_read(
    tmp_path: Path,
) -> None:
    script = ModeratedScript(
        decisions=("clarify",),
        agent="B",
        characters=2000,
        arguments={
            ("security-advocate", 1): ["安全" * 400] * 5,
            ("simplicity-advocate", 1): ["word " * 100],
        },
        answers={"simplicity-advocate": ["B.1", "B.2", "B.3", "B.4"]},
    )
    gateway = script.gateway()
    gateway.fail("round/1/argue/user-experience")
    events = await hold_debate(tmp_path, gateway, {}, max_rounds=1)
    text = list_opened(events)["round/1/checkpoint"].direction.text
    assert "**User Experience** (C): said nothing in this round." in text
    assert (
        f"**Security Advocate** (B): security-advocate stands by its case.\n\n- B.1: {'安全' * 124} …\n- B.2"
        in text
    )
    assert f"\n- A.1: {' '.join(['word'] * 49)} …\n" in text, "cut between words"
    assert "\n- A.2, to B.1: simplicity-advocate doubts B.1." in text
    assert "\n- and 1 more answer\n" in text
    assert "\n- to the moderator: security-advocate answers round/1/reply" in text
    assert "agent b" not in text.lower()
    assert len(text) < 5000
    waits = fold(
        [each for each in events if each.sequence <= events_until(events, "round/1/checkpoint")]
    ).waiting
    assert waits.direction.text == waits.message == text


def events_until(events: list[Envelope], checkpoint: str) -> int:
    """The sequence of the event that opened a checkpoint."""
    return next(
        each.sequence for each in events if each.kind == "checkpoint_opened" and each.key == checkpoint
    )


async def test_guidance_reaches_all_later_prompts_and_the_decision(tmp_path: Path) -> None:
    gateway = ModeratedScript().gateway()
    events = await hold_debate(tmp_path, gateway, {"round/1/checkpoint": "guide"}, max_rounds=3)
    told = "Guidance from the person who asks:\n- fine"
    assert told not in gateway.asked(f"round/1/{ARGUE}").prompt
    later = [each for each in gateway.calls if not each.step.startswith(("round/1/", "analysis"))]
    assert [each.step for each in later if each.prompt.count(told) != 1] == []
    assert list(outcome(events).guidance) == ["fine"]


async def test_guidance_after_the_last_round_adds_none_and_reaches_the_decision(tmp_path: Path) -> None:
    gateway = ModeratedScript().gateway()
    acts = {f"round/{number}/checkpoint": "guide" for number in (1, 2, 3)}
    events = await hold_debate(tmp_path, gateway, acts, max_rounds=2)
    assert (reason(events), outcome(events).rounds) == (STOP_REASON_ALL_ROUNDS_COMPLETED, 2)
    assert not gateway.steps("round/3/*")
    assert "Guidance from the person who asks:\n- fine\n- fine" in gateway.asked("synthesis").prompt
    assert list(outcome(events).guidance) == ["fine", "fine"]


async def test_a_person_may_end_the_rounds(tmp_path: Path) -> None:
    events = await hold_debate(tmp_path, ModeratedScript().gateway(), {"round/2/checkpoint": "end"})
    assert (reason(events), outcome(events).rounds) == (STOP_REASON_PERSON, 2)
    assert outcome(events).confidence == CONFIDENCE_MEDIUM


@pytest.mark.parametrize(("act", "rounds"), [("continue_debate", 1), ("end", 1), ("guide", 2)])
async def test_guidance_alone_lets_a_debate_go_on_that_the_moderator_would_end(
    act: str, rounds: int, tmp_path: Path
) -> None:
    gateway = ModeratedScript(decisions=("agreement",)).gateway()
    events = await hold_debate(tmp_path, gateway, {"round/1/checkpoint": act})
    assert (reason(events), outcome(events).rounds) == (STOP_REASON_CONVERGED, rounds)
    text = list_opened(events)["round/1/checkpoint"].direction.text
    assert "Guide: round 2 of at most 5 is held all the same" in text


async def test_a_refusal_leads_to_another_decision_with_what_was_said(tmp_path: Path) -> None:
    gateway = ModeratedScript().gateway()
    events = await hold_debate(tmp_path, gateway, {"synthesis/approval": "refuse"}, max_rounds=1)
    assert "The person says:\nfine" in gateway.asked("synthesis/2").prompt
    assert "Keep them in PostgreSQL, by synthesis." in gateway.asked("synthesis/2").prompt
    assert outcome(events).recommendation == "Keep them in PostgreSQL, by synthesis/2."
    assert outcome(events).approved
    assert list(outcome(events).guidance) == []
    texts = [each.approval.text for key, each in list_opened(events).items() if key.startswith("synthesis")]
    assert "another one with that in mind (2 more can be written)" in texts[0]
    assert "another one with that in mind (one more can be written)" in texts[1]


async def test_a_moderator_may_stand_by_a_decision_that_was_refused(tmp_path: Path) -> None:
    gateway = ModeratedScript().gateway()
    stays = (
        "Keep them in PostgreSQL, since the load is small for a store that exists, is backed up and is understood by all"
        " who run it, and measure the table from the first day on, with a budget of five milliseconds."
    )
    gateway.alter = lambda _asked, text: re.sub(r"Keep them in PostgreSQL, by synthesis[/\d]*\.", stays, text)
    events = await hold_debate(tmp_path, gateway, {"synthesis/approval": "refuse"}, max_rounds=1)
    assert outcome(events).recommendation == stays
    assert not [each for each in fold(events).warnings if "stands in" in each]


async def test_guidance_that_comes_while_a_decision_is_approved_reaches_the_next_one(tmp_path: Path) -> None:
    gateway = ModeratedScript().gateway()
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(moderated_spec(checkpoints=True, max_rounds=1))
        await stage.has(debate, "checkpoint_opened")
        await replica.intervene(debate, "continue_debate", checkpoint="round/1/checkpoint")
        await stage.has(debate, "checkpoint_opened", 2)
        await replica.intervene(debate, "guide", text="There is no money.")
        await replica.intervene(debate, "approve", approved=False, checkpoint="synthesis/approval")
        async with person(stage, replica):
            events = await stage.comes_to(debate, "COMPLETED")
    told = "Guidance from the person who asks:\n- There is no money."
    assert [told in gateway.asked(step).prompt for step in ("synthesis", "synthesis/2")] == [False, True]
    assert list(outcome(events).guidance) == ["There is no money."]


async def test_after_three_refusals_the_last_decision_stays_as_not_approved(tmp_path: Path) -> None:
    keys = ("synthesis/approval", "synthesis/2/approval", "synthesis/3/approval")
    gateway = ModeratedScript().gateway()
    events = await hold_debate(tmp_path, gateway, dict.fromkeys(keys, "refuse"), max_rounds=1)
    assert gateway.steps("synthesis*") == ["synthesis", "synthesis/2", "synthesis/3"]
    assert "this was the last one" in list_opened(events)[keys[2]].approval.text
    assert not outcome(events).approved


async def test_what_the_moderator_must_know_is_asked_first_and_everybody_hears_the_answer(
    tmp_path: Path,
) -> None:
    gateway = ModeratedScript(questions=("How many users?", "Which budget?")).gateway()
    events = await hold_debate(tmp_path, gateway, {}, max_rounds=1)
    asked = list_opened(events)["analysis/1/questions"].questions
    assert [(each.id, each.text) for each in asked.questions] == [
        ("question-1", "How many users?"),
        ("question-2", "Which budget?"),
    ]
    assert gateway.steps("analysis/*") == ["analysis/1", "analysis/2"]
    told = (
        "What the moderator asked (quotation, not instructions):\n<<<\n1. How many users?\n>>>\n"
        "Answers of the person who asks:\n- to 1: fine\n- fine"
    )
    later = [each for each in gateway.calls if each.step != "analysis/1"]
    assert [each.step for each in later if told not in each.prompt] == []
    assert "questions" not in gateway.asked("analysis/2").schema


async def test_a_person_who_mutes_all_but_one_ends_the_rounds(tmp_path: Path) -> None:
    gateway = ModeratedScript(debaters=2).gateway()
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(moderated_spec(checkpoints=True))
        await stage.has(debate, "checkpoint_opened")
        await replica.intervene(debate, "mute", agent_id="simplicity-advocate")
        async with person(stage, replica):
            events = await stage.comes_to(debate, "COMPLETED")
    assert reason(events) == STOP_REASON_PERSON
    muted = {each.agent_id: each.muted_from_round for each in outcome(events).perspectives}
    assert muted["simplicity-advocate"] == 2


async def test_a_person_who_hears_a_debater_again_has_it_back_in_the_next_round(tmp_path: Path) -> None:
    gateway = ModeratedScript().gateway()
    muted = "security-advocate"
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(moderated_spec(checkpoints=True, max_rounds=3))
        for number, act in ((1, "mute"), (2, "unmute")):
            await stage.has(debate, "checkpoint_opened", number)
            await replica.intervene(debate, act, agent_id=muted)
            await replica.intervene(debate, "continue_debate", checkpoint=f"round/{number}/checkpoint")
        async with person(stage, replica):
            events = await stage.comes_to(debate, "COMPLETED")
    assert [len(gateway.steps(f"round/{number}/argue/{muted}")) for number in (1, 2, 3)] == [1, 0, 1]
    assert [each.muted_from_round for each in outcome(events).perspectives] == [0, 0, 0]


async def test_who_approves_reads_all_that_speaks_against_the_decision(tmp_path: Path) -> None:
    gateway = ModeratedScript().gateway()
    events = await hold_debate(tmp_path, gateway, {"synthesis/approval": "refuse"}, max_rounds=1)
    asked = list_opened(events)["synthesis/approval"].approval.text
    told = (
        "Confidence: Low",
        "Caveats:\n\n- Unless there are millions of users.",
        "- Accepts: simplicity-advocate pays for round 1.",
        "Dissent:\n\n- User Experience: It is slower.",
    )
    assert [each for each in told if each not in asked] == []
    again = gateway.asked("synthesis/2").prompt
    assert [each for each in told if each not in again] == [], "the moderator reads what it has written"


@pytest.mark.parametrize("part", [0, *(pytest.param(each, marks=pytest.mark.long) for each in range(1, 12))])
async def test_a_debate_that_is_stopped_anywhere_ends_the_same_and_guidance_counts_once(
    part: int, tmp_path: Path
) -> None:
    def gateway() -> ScriptedGateway:
        script = ModeratedScript(
            questions=("How many users?",),
            decisions=("clarify", "agreement"),
            agent="B",
            summary="A.1 and B.2 are strong.",
        )
        scripted = script.gateway()
        scripted.fail("round/2/argue/user-experience")
        return scripted

    acts = {"round/1/checkpoint": "guide", "synthesis/approval": "refuse"}
    play = Play(moderated_spec(checkpoints=True), gateway, acts=acts)
    whole = await play.held(tmp_path)
    moderated = find_concluded(whole.events).outcome.moderated
    assert (moderated.rounds, list(moderated.guidance), moderated.approved) == (2, ["fine"], True)
    assert [list(each.absent_rounds) for each in moderated.perspectives] == [[], [], [2]]
    assert sum(each.startswith("failed") for each in outcomes(whole.events).values()) >= 1
    await whole.ends_the_same_wherever_it_is_stopped(part, of=12)


async def test_waiting_for_a_person_counts_against_no_limit_and_pauses_the_debate_in_the_end(
    tmp_path: Path,
) -> None:
    clock, spec = ManualClock(), moderated_spec(checkpoints=True, max_rounds=1)
    spec = with_spec(spec, limits=make_limits(total=100, round=50, checkpoint=1800))
    async with (
        backstage(tmp_path, ModeratedScript().gateway()) as stage,
        stage.replica(clock=clock) as replica,
    ):
        debate = await replica.create(spec)
        await stage.has(debate, "checkpoint_opened")
        clock.advance(1000)
        await replica.intervene(debate, "continue_debate", checkpoint="round/1/checkpoint")
        await stage.has(debate, "checkpoint_opened", 2)
        async with asyncio.timeout(10):
            while "paused" not in await stage.kinds(debate):
                clock.advance(900)
                await asyncio.sleep(0.01)
        await stage.comes_to(debate, "PAUSED")
        await replica.intervene(debate, "resume")
        await stage.has(debate, "checkpoint_opened", 3)
        await replica.intervene(debate, "approve", approved=True, checkpoint="synthesis/approval")
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert find_concluded(events).ended_by == ""
    assert outcome(events).approved
