"""A debate whose contributions stand never ends without an answer, whichever agent is missing at its end."""

import json
from pathlib import Path

import pytest

from parley.orchestrator.api.answer import answer_markdown
from parley.orchestrator.api.decision import decision_of
from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.formats import arena, moderated
from parley.v1.convergence_pb2 import GroupPositionsResponse, PositionGroup
from parley.v1.debate_pb2 import STOP_REASON_TOO_FEW_AGENTS
from parley.v1.event_pb2 import DebateCreated
from parley.v1.moderated_pb2 import CONFIDENCE_LOW
from parley.v1.panel_pb2 import EFFORT_QUICK
from tests.support.arena_debates import ArenaScript, arena_spec
from tests.support.debate_logs import leave_log, run_debate
from tests.support.manual_clock import ManualClock
from tests.support.moderated_debates import ModeratedScript, moderated_spec
from tests.support.orchestration import backstage, make_debate, make_limits
from tests.support.scripted_faults import refusal
from tests.support.scripted_gateway import ScriptedGateway, StepRequest


async def test_of_drafts_alone_one_with_the_position_of_most_stands_in(tmp_path: Path) -> None:
    gateway = ScriptedGateway()
    groups = [
        PositionGroup(agent_ids=each, representative_agent_id=each[0]) for each in (["bo", "cy"], ["ada"])
    ]
    gateway.group = lambda: GroupPositionsResponse(groups=groups, majority=True, certain=True)
    gateway.fail("synthesis")
    state = fold(await run_debate(tmp_path, gateway, make_debate(3, 1, effort=EFFORT_QUICK)))
    made = state.outcome.stand_in
    assert (made.agent_id, made.choice) == ("bo", "2 of 3 first drafts take the position of its author's")
    assert state.outcome.description.startswith("bo answers round/1/propose/bo")


async def test_what_an_arena_decided_for_stands_in_for_its_answer(tmp_path: Path) -> None:
    gateway = ArenaScript(choice="bo").gateway()
    gateway.fail("synthesis")
    state = fold(await run_debate(tmp_path, gateway, arena_spec()))
    made, core = state.outcome.stand_in, state.outcome.arena.decision.core_agent_id
    assert (made.agent_id, made.choice) == (core, "it was decided for")
    assert (made.writer_agent_id, made.reason) == ("judge", "BAD_REQUEST")
    assert state.outcome.description.startswith(f"{core} answers")
    assert len(state.outcome.arena.consenting_agent_ids) == 3, "they were asked about it all the same"
    line = f"Stand-in: Judge wrote no answer (the provider said no): the last work of {core.title()} stands in for it"
    assert answer_markdown(state, arena.V1).startswith(f"*{line}")
    assert line in render_report(state, arena.V1)


@pytest.mark.parametrize(
    ("missing", "stands_in"),
    [(["round/*/judge", "synthesis"], True), (["round/*/judge"], False), (["round/*/vote/*"], False)],
    ids=["no judge at all", "no judgement", "no votes"],
)
async def test_an_arena_comes_to_an_answer_without_judge_or_votes(
    missing: list[str], stands_in: bool, tmp_path: Path
) -> None:
    gateway = ArenaScript().gateway()
    for each in missing:
        gateway.fail(each)
    state = fold(await run_debate(tmp_path, gateway, arena_spec()))
    assert state.outcome.HasField("stand_in") is stands_in
    assert state.outcome.description
    assert state.warnings


async def test_a_judgement_in_prose_is_shown_as_it_was_written_and_scores_nobody(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    prose = "Zebras settle it: I put the work of agent A first, since it is sound."
    gateway.alter = lambda asked, text: prose if asked.step.endswith("/judge") else text
    state = fold(await run_debate(tmp_path, gateway, arena_spec()))
    assert not state.outcome.arena.ranking
    assert [each for each in state.warnings if "judgement is not of the form" in each]
    assert "> Zebras settle it: I put the work of Ada first" in render_report(state, arena.V1)
    assert "Zebras" not in state.outcome.description, "the answer is the other step"


@pytest.mark.parametrize(
    ("said", "warning"),
    [
        ("Zebras settle it.", "analysis is not of the form that was asked for"),
        ('{"frage": "Zebras settle it."}', "analysis is not of the form that was asked for"),
        ("", "gave no analysis"),
    ],
)
async def test_a_debate_without_an_analysis_that_can_be_read_is_held_on_the_question_as_it_was_asked(
    said: str, warning: str, tmp_path: Path
) -> None:
    gateway = ModeratedScript().gateway()
    gateway.alter = lambda asked, text: said if asked.step == "analysis/1" else text
    state = fold(await run_debate(tmp_path, gateway, moderated_spec(max_rounds=1)))
    (warned,) = [each for each in state.warnings if "analysis" in each]
    assert warning in warned
    assert "the question is debated as it was asked" in warned
    assert ("Zebras settle it." in render_report(state, moderated.V1)) == bool(said)


@pytest.mark.parametrize("said", ["Zebras settle it.", '{"zusammenfassung": "Zebras settle it."}'])
async def test_an_evaluation_of_a_round_that_keeps_to_no_form_is_its_summary(
    said: str, tmp_path: Path
) -> None:
    gateway = ModeratedScript().gateway()
    gateway.alter = lambda asked, text: said if asked.step == "round/1/evaluate" else text
    state = fold(await run_debate(tmp_path, gateway, moderated_spec(max_rounds=1)))
    assert "Zebras settle it." in render_report(state, moderated.V1)
    assert "\n> point 1: Quick" in render_report(state, moderated.V1), (
        "a debater's own point has no name before it"
    )


async def test_of_a_decision_in_prose_nothing_is_said_that_the_moderator_did_not_say(tmp_path: Path) -> None:
    gateway = ModeratedScript().gateway()
    gateway.alter = lambda asked, text: "Zebras settle it." if asked.step == "synthesis" else text
    state = fold(await run_debate(tmp_path, gateway, moderated_spec(max_rounds=1)))
    assert [each for each in state.warnings if "decision is not of the form" in each]
    text = decision_of(state, state.outcome.moderated, moderated.V1).markdown
    assert "> Zebras settle it." in text
    assert "Low, since the moderator did not say how sure it is." in text
    assert text.count("Whether a perspective disagrees is not known") == 2, "also under its own heading"


async def test_what_most_debaters_agree_with_stands_in_for_the_decision_of_a_moderator(
    tmp_path: Path,
) -> None:
    gateway = ModeratedScript().gateway()
    gateway.fail("synthesis")

    def agree(asked: StepRequest, text: str) -> str:
        is_rebuttal = "/rebut/" in asked.step and not asked.step.endswith("/user-experience")
        return json.dumps({**json.loads(text), "agrees_with": ["C"]}) if is_rebuttal else text

    gateway.alter = agree
    state = fold(await run_debate(tmp_path, gateway, moderated_spec(max_rounds=1)))
    made = state.outcome.stand_in
    assert (made.agent_id, made.writer_agent_id) == ("user-experience", "judge")
    assert made.choice == "2 of 2 critics agree with it"
    decided = state.outcome.moderated
    assert "user-experience stands by its case" in decided.recommendation
    assert decided.confidence == CONFIDENCE_LOW
    line = "the last work of User Experience stands in for it, since 2 of 2 critics agree with it"
    assert line in answer_markdown(state, moderated.V1)
    assert line in decision_of(state, decided, moderated.V1).markdown


@pytest.mark.parametrize(
    ("spec", "missing", "answer"),
    [
        (make_debate(3, 3), "round/2/propose/*", "synthesis"),
        (moderated_spec(max_rounds=3), "round/2/argue/*", "synthesis"),
    ],
    ids=["panel", "moderated"],
)
async def test_a_later_round_without_enough_agents_ends_the_rounds_and_not_the_debate(
    spec: DebateCreated, missing: str, answer: str, tmp_path: Path
) -> None:
    gateway = ModeratedScript().gateway() if spec.spec.HasField("moderated") else ScriptedGateway()
    gateway.fail(missing)
    state = fold(await run_debate(tmp_path, gateway, spec))
    assert state.stop_reason == STOP_REASON_TOO_FEW_AGENTS
    assert "too few agents could be asked in round 2" in state.stop_explanation
    assert not state.outcome.HasField("stand_in")
    assert gateway.steps(answer) == [answer]
    assert not gateway.steps("round/3/*")


async def test_agents_of_a_later_round_are_waited_for_before_the_rounds_end(tmp_path: Path) -> None:
    clock, gateway = ManualClock(), ScriptedGateway()
    gateway.fail("round/2/propose/*", refusal("PROVIDER_RATE_LIMIT", "too fast"))
    async with backstage(tmp_path, gateway) as stage, stage.replica(clock=clock) as replica:
        debate = await replica.create(make_debate(2, 3, limits=make_limits(waiting=12)))
        for count, seconds in ((1, 5), (2, 7)):
            await stage.has(debate, "wait_started", count)
            clock.advance(seconds)
        state = fold(await stage.comes_to(debate, "COMPLETED"))
    assert state.stop_reason == STOP_REASON_TOO_FEW_AGENTS
    assert "round 2 proposal is not waited for any more: too fast" in state.warnings


async def test_a_stand_in_is_the_same_when_it_is_replayed(tmp_path: Path) -> None:
    gateway = ScriptedGateway()
    gateway.judge = lambda _schema: json.dumps({"description": "👍", "confidence": 1})
    events = await run_debate(tmp_path / "first", gateway, make_debate(2, 1))
    end = next(place for place, event in enumerate(events) if event.kind == "concluded")
    async with backstage(tmp_path / "again") as stage, stage.replica():
        replayed = await stage.comes_to(await leave_log(stage, events[:end]), "COMPLETED")
    assert not stage.gateway.calls

    before, after = fold(events), fold(replayed)
    assert (after.outcome, list(after.warnings)) == (before.outcome, list(before.warnings))
    assert before.outcome.stand_in.reason == "UNUSABLE_ANSWER"
    assert [each.partial_text for each in before.failures] == ["👍", "👍"]
