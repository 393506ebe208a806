"""What a debate added to its first drafts: in the result of every format, without a call for it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from parley.cli.terminal.message_json import message_to_json
from parley.orchestrator.api.answer import answer_markdown
from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.engine.format import Format
from parley.orchestrator.formats import arena, moderated, panel
from parley.orchestrator.model.stopping import posterior
from parley.v1.arena_pb2 import StoppingSettings
from parley.v1.convergence_pb2 import GroupPositionsRequest, GroupPositionsResponse, PositionGroup
from parley.v1.debate_pb2 import Debate
from parley.v1.effect_pb2 import (
    DECISION_COMPARISON_OTHER,
    DECISION_COMPARISON_SAME,
    DECISION_COMPARISON_UNSPECIFIED,
    QUESTION_KIND_CLOSED,
    QUESTION_KIND_OPEN,
    DebateEffect,
)
from parley.v1.panel_pb2 import SYNTHESIS_METHOD_MERGE, SYNTHESIS_METHOD_VOTING
from tests.support.arena_debates import ArenaScript, arena_settings, arena_spec
from tests.support.debate_logs import run_debate
from tests.support.grouping_answers import list_shown_positions
from tests.support.moderated_debates import ModeratedScript, moderated_spec
from tests.support.orchestration import make_debate
from tests.support.scripted_gateway import ScriptedGateway, StepRequest

TENANT, REGION = "Shard by tenant.", "Shard by region."
FIRST = {"ada": TENANT, "bo": TENANT, "cy": REGION}


def says(step: str, agent: str) -> str:
    """All begin as `FIRST` has it; who refines comes to shard by tenant and takes up what was criticized first."""
    if "/refine/" in step:
        return f"{agent} revises.\nPosition: {TENANT}\n\n## Answers to issues\n- A.1: taken up\n- B.1: not taken up, because no."
    return f"{agent} answers {step}.\nPosition: {FIRST[agent] if step.startswith('round/1/') else TENANT}"


def group_positions(prompt: str, taken: str = TENANT) -> dict[str, Any]:
    """Return the positions that a prompt shows, each a group, and the one that the answer takes."""
    shown = list_shown_positions(prompt)
    answer = next((name for name, text in shown.items() if text == taken), "none")
    return {"groups": [[each] for each in shown], "cannot_be_told": [], "answer": answer}


def with_positions(gateway: ScriptedGateway, said: Callable[[str], Any] = group_positions) -> ScriptedGateway:
    """Have who writes the answer say so of the positions that it is shown."""

    def alter(asked: StepRequest, text: str) -> str:
        if not asked.schema or "positions" not in json.loads(asked.schema)["properties"]:
            return text
        return json.dumps({**json.loads(text), "positions": said(asked.prompt)})

    gateway.alter = alter
    return gateway


def make_drafting_gateway(said: Callable[[str], Any] = group_positions) -> ScriptedGateway:
    gateway = with_positions(ScriptedGateway(), said)
    gateway.text = says
    return gateway


async def effect_of(folder: Path, gateway: ScriptedGateway, **settings: Any) -> DebateEffect:
    return fold(await run_debate(folder, gateway, make_debate(3, **settings))).outcome.effect


def check_shown(debate: Debate, debate_format: Format, *lines: str) -> None:
    """Check that people find these lines in the answer and the report, and programs the same in JSON."""
    answer, report = answer_markdown(debate, debate_format), render_report(debate, debate_format)
    assert answer.count("## What the debate changed") == report.count("## What the debate changed") == 1
    for line in lines:
        assert line in answer
        assert line in report
    assert json.loads(message_to_json(debate))["outcome"]["effect"]["positions"]


async def test_a_panel_says_who_left_which_position_after_which_critique(tmp_path: Path) -> None:
    gateway = make_drafting_gateway()
    debate = fold(await run_debate(tmp_path, gateway, make_debate(3, 1)))
    effect = debate.outcome.effect
    first = [(each.text, list(each.first_agent_ids), list(each.last_agent_ids)) for each in effect.positions]
    assert first == [(TENANT, ["ada", "bo"], ["ada", "bo", "cy"]), (REGION, ["cy"], [])]
    (change,) = effect.changes
    assert (change.agent_id, change.round, change.from_position, change.to_position) == ("cy", 1, 2, 1)
    assert [(each.critic_agent_id, each.number) for each in change.issues] == [("ada", 1)]
    assert (effect.decided_position, effect.comparison) == (1, DECISION_COMPARISON_SAME)
    confidence = effect.confidence
    assert (confidence.votes, confidence.votes_cast, confidence.by_first_drafts) == (2, 3, True)
    assert (confidence.question_kind, confidence.judge_word) == (QUESTION_KIND_OPEN, "80 of 100")
    assert not confidence.HasField("percent")
    assert not gateway.steps("*grouping*"), "no call is made for it"
    check_shown(
        debate,
        panel.V1,
        "- “Shard by tenant.”: two of three first drafts (Ada, Bo); in the end all three (Ada, Bo, Cy).",
        "- In round 1, Cy left “Shard by region” for “Shard by tenant”, after taking up issue",
        "The decision is that of the first drafts.",
        "**Confidence:** For it: two of three first drafts.",
    )


async def test_positions_are_shown_to_the_judge_once_each_and_without_names(tmp_path: Path) -> None:
    gateway = make_drafting_gateway()
    await run_debate(tmp_path, gateway, make_debate(3, 2))
    shown = list_shown_positions(gateway.asked("synthesis").prompt)
    assert sorted(shown.values()) == [REGION, TENANT]


async def test_a_closed_question_has_a_percentage_which_the_word_of_the_judge_does_not_change(
    tmp_path: Path,
) -> None:
    gateway = make_drafting_gateway()
    gateway.question_kind = "closed"
    confidence = (await effect_of(tmp_path, gateway, rounds=1)).confidence
    assert confidence.question_kind == QUESTION_KIND_CLOSED
    assert 50 < confidence.percent < 75
    assert confidence.judge_word == "80 of 100"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (lambda _prompt: None, "who wrote the answer did not group the positions"),
        (lambda _prompt: {"groups": [["P1"]]}, "it leaves out the position “"),
        (
            lambda _prompt: {"groups": [["P1"]], "cannot_be_told": ["P2"]},
            "who wrote the answer could not tell which positions are the same",
        ),
    ],
)
async def test_a_first_vote_that_cannot_be_told_is_said_with_the_reason(
    said: Callable[[str], Any], reason: str, tmp_path: Path
) -> None:
    debate = fold(await run_debate(tmp_path, make_drafting_gateway(said), make_debate(3, 1)))
    effect = debate.outcome.effect
    assert reason in effect.first_vote_unknown
    assert effect.comparison == DECISION_COMPARISON_UNSPECIFIED
    assert f"cannot be told: {effect.first_vote_unknown}." in answer_markdown(debate, panel.V1)


async def test_an_answer_that_goes_against_the_first_drafts_is_called_that(tmp_path: Path) -> None:
    gateway = make_drafting_gateway(lambda prompt: group_positions(prompt, REGION))
    effect = await effect_of(tmp_path, gateway, rounds=1)
    assert (effect.decided_position, effect.comparison) == (2, DECISION_COMPARISON_OTHER)
    assert (effect.confidence.votes, effect.confidence.votes_cast) == (1, 3)


@pytest.mark.parametrize("method", [SYNTHESIS_METHOD_VOTING, SYNTHESIS_METHOD_MERGE])
async def test_without_a_judge_that_groups_them_positions_are_known_only_by_their_words(
    method: int, tmp_path: Path
) -> None:
    gateway = make_drafting_gateway()
    gateway.judge = lambda schema: json.dumps(
        {"choice": 1, "confidence": 0.9, "reason": "so"} if "choice" in schema else {"objects": False}
    )
    gateway.group_by = group_by_words
    effect = await effect_of(tmp_path, gateway, rounds=1, synthesis_method=method)
    assert [list(each.first_agent_ids) for each in effect.positions] == [["ada", "bo"], ["cy"]]
    assert [len(each.last_agent_ids) for each in effect.positions] == [3, 0]
    assert effect.decided_position == (1 if method == SYNTHESIS_METHOD_VOTING else 0)
    assert sum(each.ballots for each in effect.positions) == (3 if method == SYNTHESIS_METHOD_VOTING else 0)


def group_by_words(request: GroupPositionsRequest) -> GroupPositionsResponse:
    taken: dict[str, list[str]] = {}
    for stand in request.positions:
        taken.setdefault(stand.position, []).append(stand.agent_id)
    groups = [PositionGroup(agent_ids=sorted(who), position=what) for what, who in taken.items()]
    return GroupPositionsResponse(groups=groups, certain=True)


async def test_an_arena_says_what_was_decided_and_how_the_last_vote_went_whatever_the_answer_takes(
    tmp_path: Path,
) -> None:
    gateway = with_positions(ArenaScript().gateway(), lambda prompt: group_positions(prompt, REGION))
    gateway.text, gateway.group_by = says, group_by_words
    gateway.question_kind, gateway.weights = "closed", {"ada": 3.0}
    stopping = StoppingSettings(convergence=False, ready_signal=False, stable_positions=False)
    spec = arena_spec(3, arena_settings(revision_rounds=1, stopping=stopping))
    debate = fold(await run_debate(tmp_path, gateway, spec))
    effect = debate.outcome.effect
    first = [(each.text, list(each.first_agent_ids), list(each.last_agent_ids)) for each in effect.positions]
    assert first == [(TENANT, ["ada", "bo"], ["ada", "bo", "cy"]), (REGION, ["cy"], [])]
    assert [(each.agent_id, each.round) for each in effect.changes] == [("cy", 3)]
    assert effect.changes[0].issues, "what it took up is known"
    assert (effect.decided_position, effect.comparison) == (1, DECISION_COMPARISON_SAME)
    cast = [each.ballots for each in effect.positions]
    assert cast[0] >= 2, "the vote may end before the third"
    assert cast[1] == 0
    check_shown(debate, arena.V1, "“Shard by tenant.”: two of three first drafts (Ada, Bo)")
    odds = posterior({"ada": TENANT, "bo": TENANT, "cy": REGION}, {"ada": 3.0, "bo": 1.0, "cy": 1.0})
    assert effect.confidence.percent == pytest.approx(100 * odds[TENANT]), "records count as they decide"
    assert (
        "the answer takes another position than was decided for: “Shard by region.”, and not “Shard by tenant.”"
        in debate.warnings
    )


async def test_a_moderated_debate_says_which_points_moved_a_debater(tmp_path: Path) -> None:
    gateway = with_positions(ModeratedScript(ranking=("Security Advocate",)).gateway())
    grouping = gateway.alter

    def alter(asked: StepRequest, text: str) -> str:
        read: Mapping[str, Any] = json.loads(text) if asked.schema else {}
        position = REGION if asked.agent.id == "security-advocate" else TENANT
        if "points" in read:
            return json.dumps({**read, "position": position})
        if "agrees_with" in read:
            answers = [{**each, "concedes": True} for each in read["answers"]]
            return json.dumps({**read, "answers": answers, "position": TENANT})
        return grouping(asked, text)

    gateway.alter = alter
    debate = fold(await run_debate(tmp_path, gateway, moderated_spec(max_rounds=1)))
    effect = debate.outcome.effect
    assert [
        (each.text, len(each.first_agent_ids), len(each.last_agent_ids)) for each in effect.positions
    ] == [
        (TENANT, 2, 3),
        (REGION, 1, 0),
    ]
    (change,) = effect.changes
    assert (change.agent_id, change.round, len(change.issues)) == ("security-advocate", 1, 1)
    assert (effect.comparison, effect.confidence.judge_word) == (DECISION_COMPARISON_SAME, "low")
    check_shown(debate, moderated.V1, "In round 1, Security Advocate left “Shard by region”")
