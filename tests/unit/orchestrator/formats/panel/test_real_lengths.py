"""The panel at real lengths: what is told whole, what gives way, and what the judge reads."""

import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.formats.panel import V1
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.model.spec import agents_of
from parley.v1 import agent_pb2
from parley.v1.agent_pb2 import SummarySettings
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONVERGED,
    CONVERGENCE_VERDICT_STABLE_DISAGREEMENT,
    AssessResponse,
)
from parley.v1.debate_pb2 import StopReason
from parley.v1.event_pb2 import DebateCreated, RoundsEnded, StepSucceeded
from parley.v1.panel_pb2 import (
    SYNTHESIS_METHOD_MERGE,
    TERMINATION_RULE_CONVERGENCE,
    TERMINATION_RULE_QUALITY,
    Termination,
)
from tests.support.debate_logs import check_log
from tests.support.orchestration import (
    Backstage,
    Replica,
    agent,
    backstage,
    make_debate,
    with_fields,
    with_spec,
)
from tests.support.scripted_answers import judgement
from tests.support.show_prompts import make_long_answer

LENGTH = 3000


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Backstage]:
    async with backstage(tmp_path) as behind:
        behind.gateway.text = lambda step, name: make_long_answer(step, name, LENGTH)
        yield behind


@pytest.fixture
async def replica(stage: Backstage) -> AsyncIterator[Replica]:
    async with stage.replica() as started:
        yield started


def in_context(spec: DebateCreated, tokens: int) -> DebateCreated:
    """The debate on models that have so much context."""
    agents = tuple(with_fields(each, context_tokens=tokens) for each in agents_of(spec.spec))
    return with_spec(spec, agents=agents, judge=with_fields(spec.spec.judge.agent, context_tokens=tokens))


async def hold_debate(stage: Backstage, replica: Replica, spec: DebateCreated) -> Sequence[Envelope]:
    events = await stage.comes_to(await replica.create(spec), "COMPLETED")
    check_log(events)
    return events


def is_whole(step: str, prompt: str) -> bool:
    """Whether an answer of `make_long_answer` stands in a prompt from its first word to its last."""
    _, _, rest = prompt.partition(f"Begin of {step}. ")
    middle, end, _ = rest.partition(f" End of {step}.")
    return bool(end) and "left out" not in middle and "Begin of" not in middle


def list_mentioned(prompt: str) -> list[str]:
    """The answers of which a prompt has the beginning, in order."""
    return re.findall(r"Begin of (\S+?)\. ", prompt)


async def test_nothing_is_summarized_of_36_contributions_of_3000_characters_in_128k(
    stage: Backstage, replica: Replica
) -> None:
    await hold_debate(stage, replica, in_context(make_debate(3, 3), 128_000))
    plain = [step for step in stage.gateway.steps("round/*") if "critique" not in step]
    assert len(stage.gateway.steps("round/*")) == 3 * (3 + 6 + 3)
    assert not stage.gateway.steps("*summarize*")
    judged = stage.gateway.asked("synthesis").prompt
    assert all(is_whole(step, judged) for step in plain)


async def test_a_peers_earlier_work_is_told_whole_in_later_rounds(stage: Backstage, replica: Replica) -> None:
    await hold_debate(stage, replica, in_context(make_debate(3, 3), 128_000))
    for step in ("round/3/propose/ada", "round/3/critique/ada/of/bo", "round/3/refine/ada"):
        prompt = stage.gateway.asked(step).prompt
        for earlier in (1, 2):
            for peer in ("bo", "cy"):
                assert is_whole(f"round/{earlier}/propose/{peer}", prompt), step
                assert is_whole(f"round/{earlier}/refine/{peer}", prompt), step
        assert "[round 1, critique by agent B of agent C's proposal]" in prompt


async def test_without_full_history_an_agent_is_told_its_own_line_of_work_alone(
    stage: Backstage, replica: Replica
) -> None:
    await hold_debate(stage, replica, make_debate(3, 2, include_full_history=False))
    prompt = stage.gateway.asked("round/2/propose/ada").prompt
    assert "Your part of the debate so far" in prompt
    assert is_whole("round/1/refine/ada", prompt)
    assert "[round 1, critique by agent C of your proposal]" in prompt
    assert "round/1/refine/bo" not in prompt
    assert "of agent C's proposal]" not in prompt


async def test_in_a_small_context_the_oldest_gives_way_to_a_summary_that_is_carried_on(
    stage: Backstage, replica: Replica
) -> None:
    def text(step: str, name: str) -> str:
        return f"GIST of {step}." if "summarize" in step else make_long_answer(step, name, 1000)

    stage.gateway.text = text
    await hold_debate(stage, replica, in_context(make_debate(2, 5), 8192))
    summarized = stage.gateway.steps("round/*/summarize/ada*")
    assert summarized, "five rounds do not fit"
    first = summarized[0]
    number = int(first.split("/")[1])
    shortened, told = (
        stage.gateway.asked(first).prompt,
        stage.gateway.asked(f"round/{number}/refine/ada").prompt,
    )
    assert list_mentioned(shortened)[0] == "round/1/propose/ada", "the oldest first"
    assert f"GIST of {first}." in told
    assert is_whole(f"round/{number - 1}/refine/bo", told), "the newest stays"
    assert "round/1/propose/ada" not in told
    before, last = summarized[-2:]
    assert f"GIST of {before}." in stage.gateway.asked(last).prompt, "each covers the one before"
    assert "Keep the critiques that matter" in stage.gateway.asked(last).prompt


async def test_in_a_small_context_the_judge_still_reads_every_final_proposal_whole(
    stage: Backstage, replica: Replica
) -> None:
    await hold_debate(stage, replica, in_context(make_debate(2, 4), 8192))
    assert stage.gateway.steps("synthesis/summarize*")
    judged = stage.gateway.asked("synthesis")
    for name in ("ada", "bo"):
        assert is_whole(f"round/4/refine/{name}", judged.prompt)
    assert "Final proposal of agent B, its refinement of round 4" in judged.prompt


async def test_what_does_not_fit_is_left_out_and_said_where_there_are_to_be_no_summaries(
    stage: Backstage, replica: Replica
) -> None:
    spec = make_debate(3, 3, summaries=agent_pb2.SummarySettings(enabled=False))
    await hold_debate(stage, replica, in_context(spec, 8192))
    assert not stage.gateway.steps("*summarize*")
    prompt = stage.gateway.asked("round/3/propose/ada").prompt
    assert re.search(r"\d+ earlier contributions are left out here", prompt)


async def test_what_a_summary_is_recorded_with_is_what_prompts_carry(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.text = lambda step, name: (
        "word " * 200 if "summarize" in step else make_long_answer(step, name, 500)
    )
    short = SummarySettings(threshold=600, max_length=120)
    spec = make_debate(2, 2)
    ada = with_fields(spec.spec.agents[0].agent, summaries=short)
    events = await hold_debate(stage, replica, with_spec(spec, agents=(ada, spec.spec.agents[1].agent)))
    (made,) = [
        each.payload
        for each in events
        if isinstance(each.payload, StepSucceeded) and each.key == "round/2/summarize/ada"
    ]
    asked = stage.gateway.asked("round/2/summarize/ada").prompt
    quoted = asked.partition("<<<<\n")[2].partition("\n>>>>")[0]
    assert (made.work.summarized_characters, made.work.summary_method) == (len(quoted), "length-based")
    assert len(made.reply.text) <= 120
    assert made.reply.characters_cut == 999 - len(made.reply.text)
    told = stage.gateway.asked("round/2/refine/ada").prompt
    assert f"<<<\n{made.reply.text}\n>>>" in told
    assert (
        f"stands for {len(quoted):,} characters with {len(made.reply.text)}, length-based"
        in render_report(fold(events), V1)
    )


async def test_each_agent_is_told_its_letter_and_the_round(stage: Backstage, replica: Replica) -> None:
    await hold_debate(stage, replica, make_debate(3, 2))
    for letter, name in zip("ABC", ("ada", "bo", "cy"), strict=True):
        for step in stage.gateway.steps(f"round/*/{name}*"):
            asked = stage.gateway.asked(step)
            if asked.agent.id == name:
                assert f"You are agent {letter} of 3 agents." in asked.prompt, step
                number = step.split("/")[1]
                assert f"This is round {number} of {'at most ' if number == '1' else ''}2." in asked.prompt, (
                    step
                )
    assert "never options of the question" in stage.gateway.asked("synthesis").prompt


async def test_from_the_second_round_on_a_proposal_builds_on_the_agents_last_work(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail("round/2/refine/bo")
    await hold_debate(stage, replica, in_context(make_debate(2, 3), 128_000))
    first = stage.gateway.asked("round/1/propose/ada").prompt
    assert "start anew" not in first
    second = stage.gateway.asked("round/2/propose/ada").prompt
    assert second.count("End of round/1/refine/ada.") == 1, "it stands in the history"
    assert "Develop your refinement of round 1, which stands above; do not start anew" in second
    assert second.index("Develop your refinement") < second.index(
        "In round 1 you were asked for the following"
    )
    unrefined = stage.gateway.asked("round/3/propose/bo").prompt
    assert "Develop your proposal of round 2, which stands above; do not start anew" in unrefined


async def test_an_agents_last_work_that_gave_way_is_quoted_by_itself(
    stage: Backstage, replica: Replica
) -> None:
    await hold_debate(stage, replica, in_context(make_debate(3, 2), 4096))
    prompt = stage.gateway.asked("round/2/propose/ada").prompt
    assert "[round 1, refinement by you]" not in prompt
    assert "Your refinement of round 1 (quotation" in prompt
    assert is_whole("round/1/refine/ada", prompt)


async def test_a_panel_of_one_and_its_judge_hear_of_no_others(stage: Backstage, replica: Replica) -> None:
    await hold_debate(stage, replica, make_debate(1, 2))
    prompt = stage.gateway.asked("round/1/refine/ada").prompt
    assert "Examine it yourself" in prompt
    assert "critiques at hand" not in prompt
    assert "You work on this question alone" in prompt
    further = stage.gateway.asked("round/2/propose/ada").prompt
    assert "Your work so far (quotation" in further
    judged = stage.gateway.asked("synthesis").prompt
    assert "Agent A worked on this question alone." in judged
    assert "The work of agent A so far (quotation" in judged
    assert "Score the work of agent A, from 0 to 10." in judged
    for words in ("panel", "expert", "debate", "others", "every agent", "two may"):
        assert words not in further, words
        assert words not in judged, words


async def test_prompts_of_an_agent_have_all_in_common_that_stays_the_same(
    stage: Backstage, replica: Replica
) -> None:
    await hold_debate(stage, replica, in_context(make_debate(3, 3), 128_000))

    def common(one: str, other: str) -> int:
        pairs = zip(stage.gateway.asked(one).prompt, stage.gateway.asked(other).prompt, strict=False)
        return next(place for place, (a, b) in enumerate(pairs) if a != b)

    in_a_round = common("round/3/critique/ada/of/bo", "round/3/critique/ada/of/cy")
    assert in_a_round > stage.gateway.asked("round/3/critique/ada/of/bo").prompt.index("This is round 3")
    from_round_to_round = common("round/2/critique/ada/of/bo", "round/3/critique/ada/of/bo")
    grown = stage.gateway.asked("round/2/critique/ada/of/bo").prompt
    assert from_round_to_round > grown.index("End of round/1/refine/cy"), "the history only grows"


async def test_the_judge_is_told_who_failed_and_what_ended_the_rounds(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail("round/1/critique/cy/of/ada")
    stage.gateway.fail("round/2/refine/bo")
    await hold_debate(stage, replica, make_debate(3, 2))
    prompt = stage.gateway.asked("synthesis").prompt
    assert "All 2 rounds were held." in prompt
    assert "agent C failed in round 1: there is no critique of agent A's proposal by it" in prompt
    assert "agent B failed in round 2: there is no refinement by it" in prompt
    assert is_whole("round/2/propose/bo", prompt)
    assert "Final proposal of agent B, its proposal of round 2" in prompt


async def test_who_merges_reads_the_critiques_beside_the_final_proposals(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.judge = lambda schema: (
        '{"objects": false, "objection": ""}' if "objects" in schema else judgement(schema)
    )
    await hold_debate(stage, replica, make_debate(2, 1, synthesis_method=SYNTHESIS_METHOD_MERGE))
    prompt = stage.gateway.asked("merge").prompt
    assert is_whole("round/1/refine/ada", prompt)
    assert "by agent B of agent A's proposal" in prompt or "work of agent A" in prompt
    assert "The one round was held." in prompt


def verdict(kind: Any) -> Any:
    return lambda _request: AssessResponse(verdict=kind, agreement_percent=95)


QUALITY = Termination(rule=TERMINATION_RULE_QUALITY, threshold_percent=1)
CONVERGENCE = Termination(rule=TERMINATION_RULE_CONVERGENCE, threshold_percent=90)


@pytest.mark.parametrize(
    ("rounds", "fields", "assessed", "reason", "words"),
    [
        (1, {}, None, "ALL_ROUNDS_COMPLETED", "the one round was held"),
        (2, {}, None, "ALL_ROUNDS_COMPLETED", "all 2 rounds were held"),
        (2, {"termination": QUALITY}, None, "QUALITY_REACHED", "the judge scores the best work"),
        (2, {"termination": CONVERGENCE}, CONVERGENCE_VERDICT_CONVERGED, "CONVERGED", "the agents agree"),
        (
            2,
            {"termination": CONVERGENCE},
            CONVERGENCE_VERDICT_STABLE_DISAGREEMENT,
            "STABLE_DISAGREEMENT",
            "no longer move",
        ),
    ],
)
async def test_why_the_rounds_ended_stands_in_the_log_the_state_and_the_report(
    stage: Backstage,
    replica: Replica,
    rounds: int,
    fields: dict[str, Any],
    assessed: Any,
    reason: str,
    words: str,
) -> None:
    stage.gateway.assess = verdict(assessed) if assessed else None
    events = await hold_debate(stage, replica, make_debate(2, rounds, **fields))
    (ended,) = [each.payload for each in events if isinstance(each.payload, RoundsEnded)]
    assert StopReason.Name(ended.reason) == f"STOP_REASON_{reason}"
    assert words in ended.explanation
    folded = fold(events)
    assert (folded.stop_reason, folded.stop_explanation) == (ended.reason, ended.explanation)
    assert "Rounds ended:" in render_report(folded, V1)


async def test_a_person_who_ends_the_rounds_is_the_reason_and_so_is_one_who_cancels(
    stage: Backstage, replica: Replica
) -> None:
    hold = stage.gateway.hold("round/1/refine/ada")
    debate = await replica.create(make_debate(2, 3))
    await hold.reached.wait()
    await replica.intervene(debate, "end")
    hold.release()
    folded = fold(await stage.comes_to(debate, "COMPLETED"))
    assert folded.stop_explanation == "a person ended the rounds after round 1"
    assert "1 of at most 3 rounds was held. They ended early" in stage.gateway.asked("synthesis").prompt
    hold = stage.gateway.hold("round/1/propose/bo")
    debate = await replica.create(make_debate(2, 3))
    await hold.reached.wait()
    await replica.intervene(debate, "cancel")
    folded = fold(await stage.comes_to(debate, "CANCELLED"))
    assert folded.stop_explanation == "a person cancelled the debate"


async def test_an_agents_own_settings_for_summaries_go_before_the_debates(
    stage: Backstage, replica: Replica
) -> None:
    often = SummarySettings(threshold=10)
    await hold_debate(stage, replica, make_debate(2, 2, agents=(agent("ada", summaries=often), agent("bo"))))
    assert stage.gateway.steps("round/*/summarize/*") == ["round/2/summarize/ada"]
