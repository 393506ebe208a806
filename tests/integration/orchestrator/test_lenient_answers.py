"""Nobody pays for a debate and gets nothing: whatever form a judge's answer has, it comes to a result."""

from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator.log.envelope import Envelope
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import StepSucceeded, Warned
from parley.v1.panel_pb2 import EFFORT_QUICK
from tests.integration.orchestrator.before_models import open_stage_before_models
from tests.integration.orchestrator.lenient_answers import DEVIATIONS, WHOLE, Deviation
from tests.support.debate_logs import check_log, leave_log, outcome_of
from tests.support.model_server import Fault, FaultKind, Match, ModelServer, Rule
from tests.support.orchestration import backstage, make_debate, panel_settings

QUICK = make_debate(2, settings=panel_settings(effort=EFFORT_QUICK))
"""The judge reads drafts: it is what it writes that matters here."""
JUDGE = Match(prompt="Score the work of every agent")
UNLISTED = Rule(Match(prompt="list what an answer has to meet"), answer="I cannot say.")
"""Nothing is listed at the start, so that the judge is asked in its own words for what is not met."""


async def hold_debate(folder: Path, server: ModelServer) -> list[Envelope]:
    async with open_stage_before_models(folder, server) as stage, stage.replica() as replica:
        events = await stage.comes_to(await replica.create(QUICK), "COMPLETED")
    check_log(events)
    return events


def read(outcome: Outcome) -> dict[str, Any]:
    """An outcome in the words of the judge's answer."""
    details = outcome.details
    letters = {"ada": "A", "bo": "B"}
    return {
        "description": outcome.description,
        "implementation": details.implementation,
        "tradeoffs": list(details.tradeoffs),
        "recommendations": list(details.recommendations),
        "unfulfilled_requirements": [
            {"text": each.text, "hard": each.hard} for each in details.unfulfilled_requirements
        ],
        "open_questions": list(details.open_questions),
        "confidence": details.confidence if details.HasField("confidence") else None,
        "scores": {letters[each.agent_id]: each.score for each in outcome.scores},
    }


def warnings_of(events: list[Envelope]) -> list[str]:
    return [
        event.payload.message
        for event in events
        if isinstance(event.payload, Warned) and event.key == "synthesis/warning"
    ]


def test_there_are_twenty_usual_deviations_and_more() -> None:
    assert len(DEVIATIONS) > 20


@pytest.mark.parametrize("deviation", DEVIATIONS.values(), ids=DEVIATIONS)
async def test_a_judges_answer_with_any_usual_deviation_comes_to_a_result(
    deviation: Deviation, tmp_path: Path
) -> None:
    async with ModelServer(rules=[UNLISTED, Rule(JUDGE, answer=deviation.said)]) as server:
        events = await hold_debate(tmp_path, server)
        asked = [call for call in server.ledger.calls if JUDGE.prompt and JUDGE.prompt in call.prompt]
    assert read(outcome_of(events)) == {**WHOLE, **deviation.meant}
    assert len(asked) == deviation.calls
    if deviation.warning:
        (warning,) = warnings_of(events)
        assert deviation.warning in warning
    else:
        assert not warnings_of(events)


@pytest.mark.parametrize(
    "name",
    [
        *("prose", "a score left out"),
        *(pytest.param(each, marks=pytest.mark.long) for each in ("an object of its own", "trailing commas")),
    ],
)
async def test_what_was_read_is_read_the_same_from_the_log(name: str, tmp_path: Path) -> None:
    async with ModelServer(rules=[UNLISTED, Rule(JUDGE, answer=DEVIATIONS[name].said)]) as server:
        events = await hold_debate(tmp_path / "first", server)
    end = next(place for place, event in enumerate(events) if event.kind == "concluded")
    async with backstage(tmp_path / "again") as stage, stage.replica():
        replayed = await stage.comes_to(await leave_log(stage, events[:end]), "COMPLETED")
    assert not stage.gateway.calls
    assert outcome_of(replayed) == outcome_of(events)
    assert warnings_of(replayed) == warnings_of(events)


async def test_the_fuller_of_two_answers_counts_where_neither_is_whole(tmp_path: Path) -> None:
    first = Rule(JUDGE, answer=DEVIATIONS["a score left out"].said, times=1)
    async with ModelServer(
        rules=[UNLISTED, first, Rule(JUDGE, answer="I have said all that I know. " * 40)]
    ) as server:
        events = await hold_debate(tmp_path, server)
    assert read(outcome_of(events)) == {**WHOLE, "scores": {"A": 9}}


async def test_an_answer_that_is_cut_off_is_asked_for_again_and_then_read_as_far_as_it_goes(
    tmp_path: Path,
) -> None:
    cut = Rule(JUDGE, answer=DEVIATIONS["nothing is wrong"].said, fault=Fault(FaultKind.CUT_SHORT))
    async with ModelServer(rules=[UNLISTED, cut]) as server:
        events = await hold_debate(tmp_path, server)
        asked = [call for call in server.ledger.calls if JUDGE.prompt and JUDGE.prompt in call.prompt]
    assert len(asked) == 2
    answer = read(outcome_of(events))
    assert (answer["description"], answer["implementation"]) == ("Keep one process.", "Begin today.")
    assert (answer["confidence"], answer["scores"]) == (None, {})
    assert warnings_of(events) == ["the judge's answer is without confidence and a score of agents A, B"]


@pytest.mark.parametrize(
    "said", ["{}", '{"description": " ", "confidence": 80}', '{"confidence": 80, "scores": {}}']
)
async def test_a_work_stands_in_for_the_answer_of_a_judge_that_gives_no_text_at_all(
    said: str, tmp_path: Path
) -> None:
    async with ModelServer(rules=[UNLISTED, Rule(JUDGE, answer=said)]) as server:
        events = await hold_debate(tmp_path, server)
        asked = [call for call in server.ledger.calls if JUDGE.prompt and JUDGE.prompt in call.prompt]
    assert outcome_of(events).stand_in.reason == "INVALID_STRUCTURED_ANSWER"
    assert len(asked) == 2


async def test_reasoning_never_reaches_another_agent(tmp_path: Path) -> None:
    rules = [
        Rule(JUDGE, answer=DEVIATIONS["nothing is wrong"].said),
        Rule(answer="<think>MY SECRET THOUGHT</think>\nKeep one.\nPosition: one"),
    ]
    async with ModelServer(rules=rules) as server:
        events = await hold_debate(tmp_path, server)
        assert not [call for call in server.ledger.calls if "SECRET" in call.prompt]
    replies = [event.payload.reply for event in events if isinstance(event.payload, StepSucceeded)]
    assert {each.text for each in replies[:-1]} >= {"Keep one.\nPosition: one"}
    assert not [each for each in replies if "SECRET" in each.text]
