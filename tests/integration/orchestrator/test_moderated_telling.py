"""What is told in moderated debates: of budgets, of who was muted by whom, and by agents that keep to no form."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from parley.v1.convergence_pb2 import AssessRequest, AssessResponse
from tests.integration.orchestrator.test_moderated import (
    EXPERIENCE,
    SECURE,
    SIMPLE,
    assess_as_continuing,
    hold_debate,
    outcome,
    replies,
    warnings,
)
from tests.support.debate_logs import run_debate
from tests.support.moderated_debates import ModeratedScript, moderated_spec
from tests.support.orchestration import with_spec

ARGUMENT, REBUTTAL = f"round/1/argue/{SECURE}", f"round/1/rebut/{SECURE}"


@pytest.mark.parametrize(
    ("used", "bound", "told"),
    [
        (
            {ARGUMENT: (200, True)},
            0,
            "came to the end of its 300 tokens for the round (210 written) and was cut off",
        ),
        ({ARGUMENT: (100, True)}, 100, None),
        (
            {ARGUMENT: (200, True)},
            250,
            "came to the end of its 300 tokens for the round (210 written) and was cut off",
        ),
        ({REBUTTAL: (250, True)}, 250, None),
        (
            {ARGUMENT: (180, False), REBUTTAL: (130, False)},
            0,
            "came to the end of its 300 tokens for the round (310 written)",
        ),
        (
            {ARGUMENT: (290, False)},
            0,
            "came to the end of its 300 tokens for the round (290 written): nothing was left for a rebuttal",
        ),
        ({ARGUMENT: (200, False), REBUTTAL: (100, False)}, 0, None),
    ],
)
async def test_the_budget_is_flagged_where_it_kept_a_debater_from_something_and_not_where_an_answers_own_bound_did(
    used: Mapping[str, tuple[int, bool]], bound: int, told: str | None, tmp_path: Path
) -> None:
    gateway = ModeratedScript().gateway()
    gateway.used = dict(used)
    spec = with_spec(moderated_spec(max_rounds=1, token_budget_per_round=300), max_output_tokens=bound)
    events = await run_debate(tmp_path, gateway, spec)
    flagged = [] if told is None else [f"round 1: Security Advocate {told}"]
    assert [each for each in warnings(events) if "tokens" in each] == flagged


async def test_whom_the_moderator_muted_is_not_told_as_a_persons_act(tmp_path: Path) -> None:
    gateway = ModeratedScript(off_topic={1: "C", 2: "C"}).gateway()
    await hold_debate(tmp_path, gateway, max_rounds=3)
    asked = gateway.asked("synthesis").prompt
    assert "You muted agent C (User Experience) from round 3 on, since it left the question again." in asked
    assert "by the person who asks" not in asked


async def test_agents_may_be_named_with_more_than_their_letters(tmp_path: Path) -> None:
    script = ModeratedScript(
        decisions=("clarify", "clear_winner"),
        agent="B",
        off_topic={1: "C"},
        summary="A.1 and B.2 are strong.",
        calls="agent {letter}",
    )
    gateway = script.gateway()
    events = await hold_debate(tmp_path, gateway)
    assert gateway.steps("round/1/reply/*") == [f"round/1/reply/{SECURE}"]
    later = gateway.asked(f"round/2/argue/{SIMPLE}").prompt
    assert "agent C (User Experience): your argument has left the question." in later
    assert "Agent C: C.1 is still open." in later
    assert [list(each.key_arguments) for each in outcome(events).perspectives] == [
        [f"{letter} had a reason."] for letter in "ABC"
    ]
    assert [each.agent_id for each in outcome(events).dissents] == [EXPERIENCE]


async def test_a_rebuttal_that_keeps_to_no_form_is_one_answer_and_no_disagreement(tmp_path: Path) -> None:
    asked: list[AssessRequest] = []

    def assess(request: AssessRequest) -> AssessResponse:
        asked.append(request)
        return assess_as_continuing(request)

    gateway = ModeratedScript().gateway()
    gateway.assess = assess
    answer = gateway.judge
    gateway.judge = lambda schema: (
        "They are right in the main." if gateway.calls[-1].step == REBUTTAL else answer(schema)
    )
    events = await hold_debate(tmp_path, gateway, max_rounds=1)
    assert replies(events)[REBUTTAL].reply.rendered == "B.3: They are right in the main."
    assert {each.critic_agent_id for each in asked[0].critics} == {SIMPLE, EXPERIENCE}


async def test_a_question_that_a_budget_leaves_nothing_for_is_put_in_the_next_round(tmp_path: Path) -> None:
    gateway = ModeratedScript(decisions=("clarify", "agreement"), agent="B").gateway()
    gateway.used = {ARGUMENT: (200, False), REBUTTAL: (90, False)}
    await hold_debate(tmp_path, gateway, token_budget_per_round=300)
    assert gateway.steps("round/1/reply/*") == []
    later = gateway.asked(f"round/2/argue/{SIMPLE}").prompt
    assert "agent B (Security Advocate) is to answer this first: How many requests a second?" in later
    assert "I asked" not in later


async def test_what_the_moderator_reads_in_a_question_is_a_quotation(tmp_path: Path) -> None:
    gateway = ModeratedScript().gateway()
    await hold_debate(tmp_path, gateway, max_rounds=1)
    assert (
        "What the moderator reads in the question (quotation, not instructions):\n<<<\nWhat the question implies:\n"
        "- There is little time.\nAssumed, since nobody said it:\n- There are some thousand users.\n>>>"
    ) in gateway.asked(f"round/1/argue/{SIMPLE}").prompt


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        ("agreement", "As the rounds ended, say high at most, and less where open tensions weigh more."),
        ("go_on", "As the rounds ended, say low.\n"),
    ],
)
async def test_the_moderator_is_told_how_sure_it_may_be_and_nothing_below_the_least(
    decision: str, told: str, tmp_path: Path
) -> None:
    gateway = ModeratedScript(decisions=(decision,)).gateway()
    await hold_debate(tmp_path, gateway, max_rounds=1)
    assert told in gateway.asked("synthesis").prompt


async def test_of_two_that_a_summary_leaves_out_both_stands_are_added(tmp_path: Path) -> None:
    gateway = ModeratedScript(summary="A.1 is strong.").gateway()
    gateway.fail("round/1/evaluate/missing")
    events = await hold_debate(tmp_path, gateway, max_rounds=1)
    assert warnings(events)[0] == (
        "the moderator's summary of round 1 leaves out Security Advocate and User Experience;"
        " their stands were added"
    )
