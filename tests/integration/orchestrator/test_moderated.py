"""Moderated debates: perspectives join, argue and rebut; the moderator evaluates; the rounds end; a decision is written."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.formats.moderated import V1
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.model.spec import participants_of
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONTINUING,
    CONVERGENCE_VERDICT_CONVERGED,
    AssessRequest,
    AssessResponse,
    Contradiction,
)
from parley.v1.debate_pb2 import (
    STOP_REASON_ALL_ROUNDS_COMPLETED,
    STOP_REASON_CLEAR_WINNER,
    STOP_REASON_CONVERGED,
    STOP_REASON_STAGNATION,
    STOP_REASON_TOTAL_TIMEOUT,
)
from parley.v1.event_pb2 import (
    DebateFailed,
    PhaseEntered,
    RoundsEnded,
    RoundStarted,
    StepSucceeded,
    Warned,
)
from parley.v1.moderated_pb2 import (
    CONFIDENCE_HIGH,
    CONFIDENCE_LOW,
    CONFIDENCE_MEDIUM,
    ModeratedOutcome,
    Perspective,
)
from tests.support.debate_logs import outcome_of, payloads_of, run_debate
from tests.support.flying_time import time_flies
from tests.support.manual_clock import ManualClock
from tests.support.moderated_debates import ModeratedScript, moderated_spec
from tests.support.orchestration import backstage, make_limits
from tests.support.scripted_gateway import ScriptedGateway

P = TypeVar("P")
SIMPLE, SECURE, EXPERIENCE = "simplicity-advocate", "security-advocate", "user-experience"


async def hold_debate(folder: Path, gateway: ScriptedGateway, **settings: Any) -> list[Envelope]:
    """Hold a moderated debate without checkpoints, and return its log."""
    return await run_debate(folder, gateway, moderated_spec(**settings))


def outcome(events: Sequence[Envelope]) -> ModeratedOutcome:
    return outcome_of(events).moderated


async def test_a_long_topic_is_cut_between_words_with_a_mark(tmp_path: Path) -> None:
    gateway = ModeratedScript(topic="word " * 100).gateway()
    events = await hold_debate(tmp_path, gateway, max_rounds=1)
    topic = f"{' '.join(['word'] * 23)} …"
    assert outcome(events).topic == topic
    assert outcome_of(events).description.startswith(f"Decision on: {topic}\n\n")


def find_end(events: Sequence[Envelope]) -> RoundsEnded:
    (end,) = payloads_of(events, RoundsEnded)
    return end


def warnings(events: Sequence[Envelope]) -> list[str]:
    return [each.message for each in payloads_of(events, Warned) if "could not be told" not in each.message]


def replies(events: Sequence[Envelope]) -> Mapping[str, StepSucceeded]:
    return {event.key: event.payload for event in events if isinstance(event.payload, StepSucceeded)}


def assess_as_continuing(request: AssessRequest) -> AssessResponse:
    one, other, *_ = sorted(each.agent_id for each in request.positions)
    return AssessResponse(
        verdict=CONVERGENCE_VERDICT_CONTINUING,
        agreement_percent=33,
        contradictions=[Contradiction(agent_id=one, other_agent_id=other)],
        novelty_percent=41,
    )


async def test_a_debate_enters_its_states_and_asks_in_its_order(tmp_path: Path) -> None:
    gateway = ModeratedScript().gateway()
    events = await hold_debate(tmp_path, gateway, max_rounds=2)
    assert [each.name for each in payloads_of(events, PhaseEntered)] == [
        "analyzing",
        "in_round",
        "in_round",
        "synthesizing",
        "complete",
    ]
    names = (SIMPLE, SECURE, EXPERIENCE)
    assert gateway.steps()[0] == "analysis/1"
    assert set(gateway.steps("round/1/argue/*")) == {f"round/1/argue/{each}" for each in names}
    assert gateway.steps("round/1/rebut/*") == [f"round/1/rebut/{each}" for each in names]
    assert gateway.steps()[-1] == "synthesis"
    assert len(gateway.calls) == 1 + 2 * (3 + 3 + 1) + 1
    assert warnings(events) == []


async def test_arguments_run_at_once_and_rebuttals_one_after_the_other_each_seeing_all_before_it(
    tmp_path: Path,
) -> None:
    gateway = ModeratedScript().gateway()
    holds = gateway.hold("round/1/argue/*"), gateway.hold(f"round/1/rebut/{SIMPLE}")
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(moderated_spec(max_rounds=1))
        await gateway.wait_for("round/1/argue/*", 3)
        assert gateway.steps("round/1/rebut/*") == []
        holds[0].release()
        await gateway.wait_for("round/1/rebut/*")
        assert len(gateway.steps("round/1/rebut/*")) == 1
        holds[1].release()
        await stage.comes_to(debate, "COMPLETED")
    last = gateway.asked(f"round/1/rebut/{EXPERIENCE}").prompt
    assert all(f"{letter}.1: " in last for letter in "ABC")
    assert "A.3 (to B.1" in last
    assert "B.3 (to A.1" in last
    assert "A.1: " not in gateway.asked(f"round/1/argue/{SECURE}").prompt


async def test_a_debater_speaks_for_its_perspective_on_the_routes_of_an_agent_of_the_specification(
    tmp_path: Path,
) -> None:
    gateway = ModeratedScript().gateway()
    spec = moderated_spec(max_rounds=1)
    events = await hold_debate(tmp_path, gateway, max_rounds=1)
    joined = participants_of(fold(events))
    assert [each.id for each in joined] == [SIMPLE, SECURE, EXPERIENCE]
    assert [each.routes for each in joined] == [spec.spec.agents[place].agent.routes for place in (0, 1, 0)]
    asked = gateway.asked(f"round/1/argue/{SECURE}")
    assert asked.parts[0].text.startswith(
        "You take part in a moderated debate and speak for one perspective: Security Advocate."
    )
    assert "You are agent B of 3 agents." in asked.prompt
    assert "- agent C (User Experience)" in asked.prompt
    assert not any(each.agent.id in {"ada", "bo"} for each in gateway.calls), (
        "they lend their routes, and no more"
    )


async def test_what_a_rebuttal_answers_is_recorded_and_exists(tmp_path: Path) -> None:
    answers = {SIMPLE: ["agent B point B.2", "Z.9", "A.1"], SECURE: ["A.3"]}
    events = await hold_debate(tmp_path, ModeratedScript(answers=answers).gateway(), max_rounds=1)
    made = replies(events)
    refers = [(each.key, each.point) for each in made[f"round/1/rebut/{SIMPLE}"].reply.in_reply_to]
    assert refers == [(f"round/1/argue/{SECURE}", 2)], "what does not exist, or is its own, is dropped"
    refers = [(each.key, each.point) for each in made[f"round/1/rebut/{SECURE}"].reply.in_reply_to]
    assert refers == [(f"round/1/rebut/{SIMPLE}", 1)], "a rebuttal's answers can be answered too"
    assert [each for each in warnings(events) if "what nobody else said" in each] == [
        "Simplicity Advocate answers in round 1 what nobody else said, and that is not counted as an answer: Z.9, A.1"
    ]
    quoted = made[f"round/1/rebut/{SIMPLE}"].reply.rendered
    assert "(to B.2: “Plain security-advocate plainness sessions 12.”)" in quoted, (
        "nobody is quoted with other words"
    )


async def test_the_moderator_has_the_figures_of_convergence_and_the_flags_in_hand(tmp_path: Path) -> None:
    script = ModeratedScript(
        arguments={(SECURE, each): [f"{'sessions leak credentials widely ' * 4}"] for each in (1, 2)}
    )
    gateway = script.gateway()
    gateway.assess = assess_as_continuing
    events = await hold_debate(tmp_path, gateway, max_rounds=2)
    asked = gateway.asked("round/2/evaluate").prompt
    assert "agreement of the positions: 33 %" in asked
    assert "the positions of agent B and agent A are different answers" in asked
    assert "agent B (Security Advocate) repeats itself:" in asked
    assert asked.count("Agent A put A.1 at its strongest in round 1.") == 1, (
        "it is in what was put to the debaters"
    )
    (flagged,) = warnings(events)
    assert flagged.startswith("round 2: Security Advocate repeats itself")


@pytest.mark.parametrize(
    ("decision", "reason", "confidence"),
    [
        ("agreement", STOP_REASON_CONVERGED, CONFIDENCE_HIGH),
        ("stagnation", STOP_REASON_STAGNATION, CONFIDENCE_MEDIUM),
        ("clear_winner", STOP_REASON_CLEAR_WINNER, CONFIDENCE_HIGH),
        ("go_on", STOP_REASON_ALL_ROUNDS_COMPLETED, CONFIDENCE_LOW),
    ],
)
async def test_each_end_has_its_reason_and_says_how_sure_the_decision_may_be(
    decision: str, reason: int, confidence: int, tmp_path: Path
) -> None:
    script = ModeratedScript(decisions=("go_on", decision), agent="B")
    events = await hold_debate(tmp_path, script.gateway(), max_rounds=2 if decision == "go_on" else 4)
    assert find_end(events).reason == reason
    assert outcome(events).confidence == confidence
    assert outcome(events).rounds == 2


async def test_immediate_agreement_still_yields_a_decision(tmp_path: Path) -> None:
    events = await hold_debate(tmp_path, ModeratedScript(decisions=("agreement",)).gateway())
    assert [each.number for each in payloads_of(events, RoundStarted)] == [1]
    assert (outcome(events).rounds, outcome(events).confidence) == (1, CONFIDENCE_HIGH)
    assert outcome(events).recommendation == "Keep them in PostgreSQL, by synthesis."
    assert not outcome(events).approved


async def test_without_convergence_confidence_is_low_and_tensions_are_open(tmp_path: Path) -> None:
    events = await hold_debate(tmp_path, ModeratedScript().gateway())
    assert (outcome(events).rounds, outcome(events).confidence) == (5, CONFIDENCE_LOW)
    assert [each.text for each in outcome(events).tensions if each.open] == [
        (
            "The debate ended without agreement. The positions at the end: Simplicity Advocate: simplicity-advocate stands by its case.;"
            " Security Advocate: security-advocate stands by its case.; User Experience: user-experience stands by its case."
        )
    ]


async def test_agreement_that_convergence_does_not_see_is_of_medium_confidence(tmp_path: Path) -> None:
    gateway = ModeratedScript(decisions=("agreement",)).gateway()
    gateway.assess = assess_as_continuing
    assert outcome(await hold_debate(tmp_path, gateway)).confidence == CONFIDENCE_MEDIUM


async def test_a_debater_that_fails_in_a_round_is_absent_there_and_comes_back(tmp_path: Path) -> None:
    gateway = ModeratedScript().gateway()
    gateway.fail(f"round/1/argue/{SECURE}")
    events = await hold_debate(tmp_path, gateway, max_rounds=2)
    assert [list(each.absent_rounds) for each in outcome(events).perspectives] == [[], [1], []]
    assert gateway.steps(f"round/1/rebut/{SECURE}") == []
    assert gateway.steps(f"round/2/rebut/{SECURE}") != []
    assert "agent B failed in round 1: there is no argument by it" in gateway.asked("synthesis").prompt


async def test_where_too_few_argue_the_debate_fails_and_names_one(tmp_path: Path) -> None:
    gateway = ModeratedScript().gateway()
    gateway.fail("round/1/argue/*")
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(moderated_spec())
        events = await stage.comes_to(debate, "FAILED")
    (failed,) = payloads_of(events, DebateFailed)
    assert (failed.failure.phase, failed.failure.agent_id) == ("round 1 argument", SIMPLE)


async def test_a_summary_that_leaves_one_out_is_completed_by_the_moderator(tmp_path: Path) -> None:
    gateway = ModeratedScript(summary="A.1 and B.2 are strong.").gateway()
    events = await hold_debate(tmp_path, gateway, max_rounds=2)
    assert gateway.steps("round/1/evaluate/missing") != []
    assert (
        "leaves out what agent C (User Experience) said" in gateway.asked("round/1/evaluate/missing").prompt
    )
    assert "Agent C: C.1 is still open." in gateway.asked(f"round/2/argue/{SIMPLE}").prompt
    assert warnings(events) == []


async def test_or_else_its_stand_is_added_and_the_debate_says_so(tmp_path: Path) -> None:
    gateway = ModeratedScript(summary="A.1 and B.2 are strong.").gateway()
    gateway.fail("round/1/evaluate/missing")
    events = await hold_debate(tmp_path, gateway, max_rounds=2)
    assert (
        "Agent C (User Experience) holds: user-experience stands by its case."
        in gateway.asked(f"round/2/argue/{SIMPLE}").prompt
    )
    assert (
        warnings(events)[0]
        == "the moderator's summary of round 1 leaves out User Experience; its stand was added"
    )


async def test_without_an_evaluation_what_was_measured_decides(tmp_path: Path) -> None:
    gateway = ModeratedScript().gateway()
    gateway.assess = lambda _: AssessResponse(verdict=CONVERGENCE_VERDICT_CONVERGED, agreement_percent=100)
    gateway.fail("round/1/evaluate")
    events = await hold_debate(tmp_path, gateway)
    assert (find_end(events).reason, find_end(events).explanation) == (
        STOP_REASON_CONVERGED,
        "the perspectives agree: by what was measured",
    )
    assert "the moderator did not evaluate round 1" in warnings(events)[0]


async def test_the_moderator_may_ask_one_debater_before_it_goes_on(tmp_path: Path) -> None:
    gateway = ModeratedScript(decisions=("clarify", "agreement"), agent="B").gateway()
    await hold_debate(tmp_path, gateway)
    assert gateway.steps("round/1/reply/*") == [f"round/1/reply/{SECURE}"]
    assert "How many requests a second?" in gateway.asked(f"round/1/reply/{SECURE}").prompt
    later = gateway.asked(f"round/2/argue/{SIMPLE}").prompt
    assert (
        "I asked agent B (Security Advocate): How many requests a second? It answered: security-advocate answers"
        in later
    )


async def test_one_who_leaves_the_question_is_called_back_and_then_muted(tmp_path: Path) -> None:
    gateway = ModeratedScript(off_topic={1: "C", 2: "C"}).gateway()
    events = await hold_debate(tmp_path, gateway, max_rounds=3)
    assert (
        "agent C (User Experience): your argument has left the question."
        in gateway.asked(f"round/2/argue/{EXPERIENCE}").prompt
    )
    assert gateway.steps(f"round/3/*/{EXPERIENCE}") == []
    assert [each.muted_from_round for each in outcome(events).perspectives] == [0, 0, 3]
    assert [list(each.absent_rounds) for each in outcome(events).perspectives] == [[], [], []]


async def test_nobody_is_muted_without_whom_all_others_agree(tmp_path: Path) -> None:
    script = ModeratedScript(debaters=2, off_topic={1: "A", 2: "A", 3: "A"})
    gateway = script.gateway()
    await hold_debate(tmp_path, gateway, max_rounds=3)
    assert len(gateway.steps("round/3/argue/*")) == 2


async def test_argument_and_rebuttal_share_a_budget(tmp_path: Path) -> None:
    gateway = ModeratedScript().gateway()
    await hold_debate(tmp_path, gateway, max_rounds=1, token_budget_per_round=300)
    assert gateway.asked(f"round/1/argue/{SIMPLE}").max_output_tokens == 200
    assert gateway.asked(f"round/1/rebut/{SIMPLE}").max_output_tokens == 290, "an answer takes 10 here"
    gateway = ModeratedScript().gateway()
    (tmp_path / "none").mkdir()
    await hold_debate(tmp_path / "none", gateway, max_rounds=1, token_budget_per_round=0)
    assert gateway.asked(f"round/1/argue/{SIMPLE}").max_output_tokens == 0
    assert gateway.asked(f"round/1/rebut/{SIMPLE}").max_output_tokens == 0


async def test_a_perspective_of_the_debates_own_takes_part(tmp_path: Path) -> None:
    own = Perspective(
        name="Compliance First",
        priorities=["audit trails"],
        trade_offs="Will accept development slowdown for compliance",
    )
    events = await hold_debate(
        tmp_path, ModeratedScript(debaters=2).gateway(), max_rounds=1, custom_perspectives=[own]
    )
    assert {each.agent_id for each in outcome(events).perspectives} == {SIMPLE, "compliance-first"}


async def test_a_vague_question_is_clarified_first_or_else_assumptions_are_told(tmp_path: Path) -> None:
    gateway = ModeratedScript(questions=("How many users?",)).gateway()
    await hold_debate(tmp_path, gateway, max_rounds=1)
    asked = gateway.asked(f"round/1/argue/{SIMPLE}").prompt
    assert "Assumed, since nobody said it:\n- There are some thousand users." in asked
    assert "questions" not in gateway.asked("analysis/1").schema, "there is nobody to be asked"


async def test_a_limit_ends_the_rounds_and_the_decision_is_written_all_the_same(tmp_path: Path) -> None:
    gateway = ModeratedScript().gateway()
    gateway.hold("round/2/argue/*")
    spec = moderated_spec(spec={"limits": make_limits(total=100, round=500)})
    async with (
        backstage(tmp_path, gateway) as stage,
        time_flies(stage, ManualClock()) as clock,
        stage.replica(clock=clock) as replica,
    ):
        events = await stage.comes_to(await replica.create(spec), "COMPLETED")
    assert find_end(events).reason == STOP_REASON_TOTAL_TIMEOUT
    assert (outcome(events).rounds, outcome(events).confidence) == (1, CONFIDENCE_LOW)


async def test_the_report_shows_who_debated_and_every_part_of_the_decision(tmp_path: Path) -> None:
    events = await hold_debate(tmp_path, ModeratedScript(decisions=("agreement",)).gateway())
    shown = render_report(fold(events), V1)
    for line in (
        "| Simplicity Advocate | simplicity-advocate | debater |",
        "### Analysis: Judge",
        "#### Rebuttals",
        "#### The moderator",
        "- Rounds ended: the perspectives agree: round 1 says so",
        "who takes which position cannot be told. High, by the moderator.",
        "### Perspective: User Experience\n\n- C had a reason.\n- Accepts: user-experience pays for round 1.",
        "- **Dissent:** User Experience disagrees: It is slower.",
    ):
        assert line in shown
    assert "### Dissent" not in shown, "it is told once"
    assert "| ada |" not in shown
