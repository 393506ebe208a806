"""The analysis of an answer: it comes after it, never in its way, and says what each claim rests on."""

import json
from pathlib import Path

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.api.report_analysis import analysis_of
from parley.orchestrator.formats import panel
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log.envelope import Envelope
from parley.runtime.errors import ParleyError
from parley.v1.agent_pb2 import Usage
from parley.v1.analysis_pb2 import (
    CLAIM_GROUNDING_SUPPORTED,
    CLAIM_GROUNDING_UNSUPPORTED,
    FORMAL_RESULT_REFUTED,
    FORMAL_RESULT_UNCHECKED,
    FORMAL_RESULT_VALID,
    Analysis,
)
from parley.v1.convergence_pb2 import ClaimSupport, FindSupportRequest, FindSupportResponse
from parley.v1.debate_pb2 import ContextDocument, Debate, DebateLimits
from parley.v1.event_pb2 import DebateCreated
from tests.support.arena_debates import ArenaScript, arena_spec
from tests.support.debate_logs import check_log
from tests.support.grounding_answers import grounds
from tests.support.moderated_debates import ModeratedScript, moderated_spec
from tests.support.orchestration import Backstage, agent, backstage, make_debate, make_limits, with_spec
from tests.support.scripted_answers import judgement
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.stopping import Play

GROUNDING = "after/grounding"


def make_analysed_debate(spec: DebateCreated | None = None) -> DebateCreated:
    return with_spec(spec or make_debate(2, rounds=1), analysis=True)


async def hold_debate(stage: Backstage, spec: DebateCreated) -> Debate:
    async with stage.replica() as replica:
        events = await stage.comes_to(await replica.create(spec), "COMPLETED")
    check_log(events)
    assert_answer_first(events)
    return fold(events)


def assert_answer_first(events: list[Envelope]) -> None:
    keys = [each.key for each in events]
    assert all(keys.index("concluded") < place for place, key in enumerate(keys) if key.startswith("after/"))


def list_grounding_steps(stage: Backstage) -> list[str]:
    return stage.gateway.steps(f"{GROUNDING}*")


@pytest.fixture
def formats() -> object:
    return all_formats()


@pytest.mark.parametrize("kind", ["panel", "arena", "moderated"])
async def test_each_claim_of_an_answer_is_traced_to_what_was_said(tmp_path: Path, kind: str) -> None:
    gateways = {"arena": ArenaScript().gateway, "moderated": ModeratedScript().gateway}
    specs = {"arena": arena_spec, "moderated": moderated_spec}
    gateway = gateways.get(kind, ScriptedGateway)()
    async with backstage(tmp_path, gateway) as stage:
        debate = await hold_debate(stage, make_analysed_debate(specs.get(kind, lambda: None)()))
    analysis = debate.analysis
    bare, said, made_up = analysis.claims
    first = next(each for each in debate.contributions if each.work.round)
    assert [each.contribution for each in said.supported_by] == [first.key]
    assert said.grounding == CLAIM_GROUNDING_SUPPORTED
    assert {bare.grounding, made_up.grounding} == {CLAIM_GROUNDING_UNSUPPORTED}
    assert bare.credence > 0.9, "a claim with a reason for it is believed more than by itself"
    assert (analysis.verdict, list(analysis.cruxes)) == (1, [2])
    assert analysis.analyst_agent_id == debate.spec.judge.agent.id
    answer, _, rest = render_report(debate, all_formats().find(debate.spec.format)).partition("## Analysis")
    assert "Water is wet." not in answer
    assert "| It has 12 colours. | not supported by anything said | 0 | nothing | nothing |" in rest
    assert "The decision is claim 1. It turns if claim 2 is reversed." in rest
    assert "Grounds of the answer:" not in rest, "the table says it"
    assert "Where the agents disagree" not in rest, "it stands with the answer and with the issues"


async def test_an_answer_stands_and_its_place_is_free_while_it_is_analysed(stage: Backstage) -> None:
    hold = stage.gateway.hold(GROUNDING)
    async with stage.replica(max_debates=1) as replica:
        debate = await replica.create(make_analysed_debate())
        await stage.has(debate, "concluded")
        await hold.reached.wait()
        assert (await stage.record(debate)).status == "COMPLETED"
        other = await replica.create(make_debate(2, rounds=1))
        await stage.comes_to(other, "COMPLETED")
        with pytest.raises(ParleyError) as pending:
            analysis_of(fold(await stage.events(debate)), panel.V1)
        assert pending.value.reason == "ANALYSIS_PENDING"
        hold.release()
        assert_answer_first(await stage.comes_to(debate, "COMPLETED"))


async def test_an_analyst_that_fails_is_a_warning_and_fails_no_debate(stage: Backstage) -> None:
    stage.gateway.fail(GROUNDING)
    debate = await hold_debate(stage, make_analysed_debate())
    assert debate.outcome.description == "The answer."
    assert debate.analysis == Analysis(
        analyst_agent_id="judge", missing="judge did not say what the answer rests on: the provider said no"
    )
    assert debate.warnings == [f"the answer was not analysed: {debate.analysis.missing}"]
    assert "the provider said no" in render_report(debate, panel.V1).partition("## Analysis")[2]


def support_second(request: FindSupportRequest) -> FindSupportResponse:
    """The second text, the first contribution, supports all claims but the first one."""
    bare = ClaimSupport(probability=0.2)
    said = (ClaimSupport(probability=0.9, texts=[1]) for _ in request.claims[1:])
    return FindSupportResponse(claims=[bare, *said])


def _answer(stage: Backstage) -> None:
    stage.gateway.judge = lambda schema: judgement(
        schema, description="Water is wet. It sticks to what it touches."
    )


async def test_a_local_model_says_which_sentences_are_supported_if_the_analyst_fails(
    stage: Backstage,
) -> None:
    stage.gateway.fail(GROUNDING)
    asked: list[FindSupportRequest] = []
    _answer(stage)

    def support(request: FindSupportRequest) -> FindSupportResponse:
        asked.append(request)
        return support_second(request)

    stage.gateway.support = support
    debate = await hold_debate(stage, make_analysed_debate())
    first = next(each for each in debate.contributions if each.work.round)
    assert asked[0].texts[:2] == [debate.spec.question, first.reply.text]
    bare, said = debate.analysis.claims
    assert (bare.text, bare.grounding, bare.score) == ("Water is wet.", CLAIM_GROUNDING_UNSUPPORTED, 20)
    assert said.grounding == CLAIM_GROUNDING_SUPPORTED
    assert [each.contribution for each in said.supported_by] == [first.key]
    assert not debate.analysis.analyst_agent_id
    assert not debate.warnings
    rest = render_report(debate, panel.V1).partition("## Analysis")[2]
    assert "No agent said it. A small local model compared the sentences" in rest
    assert "What the decision depends on" not in rest


async def test_a_model_that_does_not_know_the_language_leaves_an_analysis_missing(stage: Backstage) -> None:
    stage.gateway.fail(GROUNDING)
    _answer(stage)
    stage.gateway.support = lambda request: FindSupportResponse(
        claims=[ClaimSupport() for _ in request.claims]
    )
    debate = await hold_debate(stage, make_analysed_debate())
    assert debate.analysis.missing == "judge did not say what the answer rests on: the provider said no"


async def test_a_model_is_not_asked_if_the_analyst_answers(stage: Backstage) -> None:
    asked: list[FindSupportRequest] = []
    _answer(stage)

    def support(request: FindSupportRequest) -> FindSupportResponse:
        asked.append(request)
        return support_second(request)

    stage.gateway.support = support
    debate = await hold_debate(stage, make_analysed_debate())
    assert debate.analysis.analyst_agent_id
    assert not asked


async def test_the_limit_of_what_follows_ends_an_analysis_that_hangs(stage: Backstage) -> None:
    hold = stage.gateway.hold(GROUNDING)
    async with stage.replica(follow_up_limits=make_limits(total=0.2)) as replica:
        debate = fold(await stage.comes_to(await replica.create(make_analysed_debate()), "COMPLETED"))
    hold.release()
    assert debate.analysis.missing.endswith("no answer within the follow-up's limit of 0.2 s")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"verdict": 9}, "it names the claim 9, and it has 3"),
        (
            {"relations": [{"reason": 7, "claim": 1, "kind": "for", "strength": "weak"}]},
            "it names the claim 7, and it has 3",
        ),
        (
            {"claims": [{"claim": "Water is wet.", "for": ["C99"], "against": [], "score": 50}]},
            "it names 'C99', which is not among what was said",
        ),
        ({"claims": []}, "does not match its shape at claims"),
    ],
    ids=["verdict", "relation", "place", "nothing"],
)
@pytest.mark.parametrize("once", [True, False])
async def test_names_that_do_not_exist_are_refused(
    stage: Backstage, wrong: dict[str, object], why: str, once: bool
) -> None:
    given = iter([wrong, {} if once else wrong])
    stage.gateway.grounds = lambda schema: grounds(schema, **next(given))
    debate = await hold_debate(stage, make_analysed_debate())
    assert list_grounding_steps(stage) == [GROUNDING, f"{GROUNDING}/again"]
    assert why in stage.gateway.asked(f"{GROUNDING}/again").prompt
    assert bool(debate.analysis.claims) is once
    assert (why in debate.analysis.missing) is not once


async def test_what_makes_no_sense_is_absent_and_never_made_up(stage: Backstage) -> None:
    claims = [
        {"claim": "Water is wet.", "for": [" [c1] ", "C1", 7], "against": "C2", "score": "high"},
        {"claim": "  "},
        "water",
        {"claim": "Ice is cold.", "for": ["Q"], "against": ["C2"], "score": 10**400},
    ]
    relations = [{"reason": 2, "claim": 2, "kind": "for"}, {"reason": 1}, None]
    stage.gateway.grounds = lambda schema: grounds(schema, claims=claims, relations=relations)
    analysis = (await hold_debate(stage, make_analysed_debate())).analysis
    assert [each.text for each in analysis.claims] == ["Water is wet.", "Ice is cold."]
    first, second = analysis.claims
    assert (len(first.supported_by), len(first.opposed_by), first.HasField("score")) == (1, 0, False)
    assert second.supported_by[0].question
    assert not analysis.relations


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 6))])
async def test_it_ends_the_same_wherever_it_is_stopped(part: int, tmp_path: Path) -> None:
    play = Play(make_analysed_debate())
    held = await play.held(tmp_path)
    await held.ends_the_same_wherever_it_is_stopped(part, of=6)


@pytest.mark.parametrize(
    "limits",
    [make_limits(max_tokens=50_000), make_limits(max_cost_micros=2_000_000)],
    ids=["tokens", "money"],
)
async def test_a_debate_whose_budget_is_used_up_is_not_analysed(
    stage: Backstage, limits: DebateLimits
) -> None:
    spent = Usage(input_tokens=49_000, output_tokens=500, cost_micros=1_990_000, requests=1)
    usage = stage.gateway.usage
    stage.gateway.usage = lambda step: spent if step == "synthesis" else usage(step)
    debate = await hold_debate(stage, with_spec(make_analysed_debate(), limits=limits))
    assert not list_grounding_steps(stage)
    assert debate.analysis.missing.endswith("too little is left of the debate's budget")


@pytest.mark.parametrize(
    "spec",
    [make_debate(2, rounds=1), with_spec(make_analysed_debate(), demonstration=True)],
    ids=["without", "demonstration"],
)
async def test_without_the_setting_and_of_a_demonstration_nothing_is_analysed(
    stage: Backstage, spec: DebateCreated
) -> None:
    debate = await hold_debate(stage, spec)
    assert not list_grounding_steps(stage)
    assert not debate.HasField("analysis")


@pytest.mark.parametrize(("family", "analyst"), [("anthropic", "bo"), ("openai", "judge"), ("", "judge")])
async def test_an_agent_of_another_model_family_than_who_wrote_the_answer_is_asked(
    stage: Backstage, family: str, analyst: str
) -> None:
    agents = (agent("ada"), agent("bo", routes=["p/other"], model_family=family))
    judge = agent("judge", "judge", routes=["p/m"], model_family="openai")
    debate = await hold_debate(stage, with_spec(make_analysed_debate(), agents=agents, judge=judge))
    assert debate.analysis.analyst_agent_id == analyst


async def test_what_is_read_fits_and_quotes_each_contribution_once(stage: Backstage) -> None:
    stage.gateway.text = lambda step, name: f"{name} answers {step}. >>>\n" + "Water wets. " * 250
    await hold_debate(stage, make_analysed_debate(make_debate(3, rounds=1)))
    asked = stage.gateway.asked(GROUNDING)
    assert asked.prompt.count("answers round/1/") == 12, "three proposals, six critiques, three refinements"
    names = json.loads(asked.schema)["properties"]["claims"]["items"]["properties"]["for"]["items"]["enum"]
    assert names == ["Q", *(f"C{each}" for each in range(1, 13))]
    assert "C4, round 1, critique by agent" in asked.prompt
    assert "C1 to C12 are contributions" in asked.prompt


async def test_a_small_context_leaves_out_the_oldest_and_says_so(stage: Backstage) -> None:
    stage.gateway.text = lambda step, name: f"{name} answers {step}.\n" + "Water wets. " * 250
    spec = make_analysed_debate(make_debate(3, rounds=1))
    judge = agent("judge", "judge", context_tokens=6000)
    debate = await hold_debate(stage, with_spec(spec, judge=judge))
    assert debate.analysis.left_out > 0
    assert sum(len(part.text) for part in stage.gateway.asked(GROUNDING).parts) < 6000 * 4
    left_out = f"It was not shown the {debate.analysis.left_out} oldest contributions."
    assert left_out in render_report(debate, panel.V1)


async def test_an_analyst_sees_every_source_the_cited_ones_longest(stage: Backstage) -> None:
    stage.gateway.text = lambda step, name: f"{name} answers {step} [S3].\nPosition: {step}"
    context = [ContextDocument(path=f"docs/{number}.md", text="Otters float.") for number in range(1, 51)]
    await hold_debate(stage, make_analysed_debate(make_debate(2, rounds=1, context=context)))
    asked = stage.gateway.asked(GROUNDING)
    claim = json.loads(asked.schema)["properties"]["claims"]["items"]["properties"]
    assert [each for each in claim["for"]["items"]["enum"] if each[0] == "S"] == [
        f"S{n}" for n in range(1, 51)
    ]
    gives = {part.source: part.shrink_priority for part in asked.parts if part.source}
    assert {number for number, give in gives.items() if give == min(gives.values())} == {3}


async def test_of_too_many_sources_the_cited_ones_have_names(stage: Backstage) -> None:
    stage.gateway.text = lambda step, name: f"{name} answers {step} [S110][S999].\nPosition: {step}"
    context = [ContextDocument(path=f"docs/{number}.md", text="Otters float.") for number in range(1, 121)]
    await hold_debate(stage, make_analysed_debate(make_debate(2, rounds=1, context=context)))
    asked = stage.gateway.asked(GROUNDING)
    assert "S57, S58, S110 are sources" in asked.prompt
    assert "S59, " not in asked.prompt


async def test_what_is_stated_in_smt_lib_is_checked_once(stage: Backstage) -> None:
    blocks = {
        "ada": "```smt2\n(declare-const x Int)\n(assert (> (+ x 1) x))\n```",
        "bo": "```smt2\n(declare-const x Int)\n(assert (> (* 2 x) x))\n```\n~~~\n```lean\ntheorem t : 1 = 1 := rfl\n```",
    }
    stage.gateway.text = lambda step, name: f"{name} answers {step}.\n\n{blocks.get(name, '')}\n\nSo it is."
    debate = await hold_debate(stage, make_analysed_debate())
    found = [(each.statement.language, each.result) for each in debate.analysis.formal_checks]
    assert sorted(found) == [
        ("lean", FORMAL_RESULT_UNCHECKED),
        ("smt2", FORMAL_RESULT_VALID),
        ("smt2", FORMAL_RESULT_REFUTED),
    ]
    report = render_report(debate, panel.V1)
    assert "Bo, proposal, round 1, it does not hold for these values: (define-fun x () Int 0)" in report


async def test_what_divides_agents_is_told_without_a_call(stage: Backstage) -> None:
    debate = await hold_debate(stage, make_debate(3, rounds=1))
    found = analysis_of(debate, panel.V1)
    assert not found.HasField("analysis")
    assert len(found.disagreement.disputes) == 6
    assert found.disagreement.open[0] == "when?"
    (pattern,) = found.failed_patterns
    assert (pattern.role, pattern.raised, pattern.not_answered) == ("architect", 6, 6)
    assert "### Where the agents disagree" in found.markdown
    assert "### What the answer rests on" not in found.markdown


async def test_the_report_of_an_analysed_debate_says_which_kinds_of_issues_led_to_nothing(
    stage: Backstage,
) -> None:
    debate = await hold_debate(stage, make_analysed_debate(make_debate(3, rounds=1)))
    _, _, analysis = render_report(debate, panel.V1).partition("## Analysis")
    assert (
        "\n\n### Issues that led to nothing\n\n- By critics with the role architect: of 6 issues 0"
        in analysis
    )
