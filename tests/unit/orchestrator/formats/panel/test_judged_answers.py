"""What the judge of a panel reads, and what becomes of its answer."""

import json

import pytest

from parley.orchestrator.phases.scoring import score_anchors
from parley.v1.agent_pb2 import SummarySettings
from parley.v1.debate_pb2 import UnfulfilledRequirement
from parley.v1.event_pb2 import (
    Concluded,
    Warned,
)
from parley.v1.panel_pb2 import (
    TERMINATION_RULE_QUALITY,
    Termination,
)
from tests.support.debate_logs import check_log
from tests.support.orchestration import Backstage, Replica, agent, make_debate
from tests.support.scripted_answers import judgement
from tests.support.scripted_faults import refusal
from tests.unit.orchestrator.formats.panel.held_panels import find_outcome, hold_debate


@pytest.mark.parametrize("reason", ["INVALID_STRUCTURED_ANSWER", "PROVIDER_AUTH"])
async def test_a_work_stands_in_for_the_answer_of_a_judge_that_failed(
    reason: str, stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail("synthesis", refusal(reason, "no answer"))
    debate = await replica.create(make_debate(2, 1))
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    outcome = find_outcome(events)
    made = outcome.stand_in
    assert (made.agent_id, made.writer_agent_id, made.reason) == ("ada", "judge", reason)
    assert outcome.description.startswith("ada answers round/1/refine/ada")
    assert not outcome.HasField("details")
    assert not outcome.scores
    assert stage.gateway.steps("synthesis*") == ["synthesis"]
    (warning,) = [event.payload.message for event in events if isinstance(event.payload, Warned)]
    assert "judge wrote no answer (no answer): the last work of ada stands in for it" in warning


async def test_the_judge_reads_its_summary_of_long_rounds_and_every_final_proposal_whole(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.text = lambda step, agent: (
        "THE GIST" if step == "synthesis/summarize" else f"{step} " + "x" * 300
    )
    judge = agent("judge", "judge", summaries=SummarySettings(threshold=1000, max_length=50))
    await hold_debate(stage, replica, make_debate(2, 2, judge=judge))
    summarized, judged = (stage.gateway.asked(step).prompt for step in ("synthesis/summarize", "synthesis"))
    for step in ("round/1/critique/bo/of/ada", "round/2/propose/ada"):
        assert step in summarized
        assert step not in judged.partition("not taken up then:")[0]
    assert "round/2/critique/ada/of/bo" in judged  # an issue that is open
    assert "round/2/critique/ada/of/bo" not in summarized
    assert "THE GIST" in judged
    for name in ("ada", "bo"):
        assert f"round/2/refine/{name} " + "x" * 300 in judged
        assert f"round/2/refine/{name}" not in summarized


async def test_the_judges_scores_are_told_by_agent_and_all_it_said_is_kept(
    stage: Backstage, replica: Replica
) -> None:
    outcome = await hold_debate(stage, replica, make_debate(3, 1))
    scores = {each.agent_id: each.score for each in outcome.scores}
    assert scores == {"ada": 1.0, "bo": 2.0, "cy": 3.0}
    details = outcome.details
    assert (details.confidence, outcome.panel.synthesized_by) == (80, "judge")
    assert (details.implementation, list(details.tradeoffs)) == ("Do it.", ["time for money"])
    assert (list(details.recommendations), list(details.open_questions)) == (["begin"], ["when?"])


@pytest.mark.parametrize(("hard", "confidence"), [(True, 40), (False, 80)])
async def test_confidence_is_capped_while_a_hard_requirement_is_unmet(
    stage: Backstage, replica: Replica, hard: bool, confidence: int
) -> None:
    stage.gateway.requirements = (("It is cheap.", False), ("It floats.", hard))
    stage.gateway.judge = lambda schema: judgement(schema, requirements_met={"R1": True, "R2": False})
    outcome = await hold_debate(stage, replica, make_debate(2, 1))
    details = outcome.details
    assert details.confidence == confidence
    unmet = UnfulfilledRequirement(text="It floats.", hard=hard, number=2)
    assert list(details.unfulfilled_requirements) == [unmet]


async def test_what_is_required_reaches_every_prompt_but_the_first_drafts(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.requirements = (("It floats.", True), ("It is blue.", False))
    hold = stage.gateway.hold("requirements")
    debate = await replica.create(make_debate(2, 2))
    await stage.has(debate, "step_succeeded", 2 + 1)  # drafts and their vote, which do not wait for it
    assert not stage.gateway.steps("round/1/critique/*")
    hold.release()
    await stage.comes_to(debate, "COMPLETED")
    listed = "- R1 (a must): It floats.\n- R2: It is blue."
    for step in stage.gateway.steps():
        told = listed in stage.gateway.asked(step).prompt
        assert told is (step not in {"requirements", "round/1/propose/ada", "round/1/propose/bo"}), step
    asked = json.loads(stage.gateway.asked("synthesis").schema)["properties"]
    assert asked["requirements_met"]["required"] == ["R1", "R2"]
    assert "unfulfilled_requirements" not in asked


async def test_a_debate_goes_on_without_a_list_of_requirements_and_the_judge_names_them_itself(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail("requirements", refusal("PROVIDER_UNAVAILABLE", "try later"))
    unmet = [{"text": "must float", "hard": True}]
    stage.gateway.judge = lambda schema: judgement(schema, unfulfilled_requirements=unmet)
    events = await stage.comes_to(await replica.create(make_debate(2, 1)), "COMPLETED")
    (warning,) = [event.payload.message for event in events if isinstance(event.payload, Warned)]
    assert warning == "what the question requires was not listed, and the debate goes on without: try later"
    (concluded,) = [event.payload for event in events if isinstance(event.payload, Concluded)]
    assert list(concluded.outcome.details.unfulfilled_requirements) == [
        UnfulfilledRequirement(text="must float", hard=True)
    ]


async def test_where_nothing_is_required_nothing_is_said_of_it(stage: Backstage, replica: Replica) -> None:
    await hold_debate(stage, replica, make_debate(2, 1))
    prompts = [stage.gateway.asked(step).prompt for step in stage.gateway.steps() if step != "requirements"]
    assert not [prompt for prompt in prompts if "What the answer has to meet" in prompt]
    asked = json.loads(stage.gateway.asked("synthesis").schema)["properties"]
    assert not {"requirements_met", "unfulfilled_requirements"} & asked.keys()


async def test_scores_are_asked_for_with_what_they_mean(stage: Backstage, replica: Replica) -> None:
    ends = Termination(rule=TERMINATION_RULE_QUALITY)
    await hold_debate(stage, replica, make_debate(2, 2, termination=ends))
    assert score_anchors(10) in stage.gateway.asked("synthesis").prompt
    assert score_anchors(100) in stage.gateway.asked("round/1/quality").prompt


async def test_a_judges_answer_that_cannot_be_read_is_asked_for_once_more(
    stage: Backstage, replica: Replica
) -> None:
    answers = ['{"description": ""}']
    stage.gateway.judge = lambda schema: answers.pop() if answers else judgement(schema)
    outcome = await hold_debate(stage, replica, make_debate(2, 1))
    assert (outcome.description, outcome.HasField("stand_in")) == ("The answer.", False)
    assert stage.gateway.steps("synthesis*") == ["synthesis", "synthesis/again"]
