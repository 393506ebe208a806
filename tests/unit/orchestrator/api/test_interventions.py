"""What a request to intervene may say."""

from typing import Any

import pytest

from parley.orchestrator.api.interventions import intervention_event
from parley.orchestrator.engine.checkpoints import CLOSING_ACTS
from parley.runtime.errors import ParleyError
from parley.v1.debate_pb2 import (
    Answer,
    Approve,
    Cancel,
    Continue,
    EndRounds,
    Guide,
    Intervention,
    Mute,
    Pause,
    QuestionAnswer,
    Resume,
    Unmute,
)
from parley.v1.event_pb2 import Intervened
from parley.v1.orchestrator_pb2 import InterveneRequest
from tests.unit.orchestrator.made_logs import DEBATE

KIB_8 = "ä" * 4096
ACTS: dict[str, Any] = {
    "cancel": Cancel(reason="enough"),
    "pause": Pause(stop_calls=True),
    "resume": Resume(),
    "end": EndRounds(),
    "guide": Guide(text="Mind the cost."),
    "mute": Mute(agent_id="bo"),
    "unmute": Unmute(agent_id="bo"),
    "continue_debate": Continue(),
    "answer": Answer(text="Ten."),
    "approve": Approve(approved=True, text="Well done."),
}


def make_event(debate_id: str = DEBATE, request_id: str = "r-1", **intervention: Any) -> Intervened:
    given = Intervention(**intervention)
    return intervention_event(
        InterveneRequest(request_id=request_id, debate_id=debate_id, intervention=given)
    )


def list_bad_fields(**given: Any) -> list[str]:
    with pytest.raises(ParleyError) as refused:
        make_event(**given)
    assert refused.value.code.name == "INVALID_ARGUMENT"
    return [each.field for each in refused.value.violations]


@pytest.mark.parametrize("act", [each.name for each in Intervention.DESCRIPTOR.oneofs_by_name["act"].fields])
def test_every_act_becomes_the_event_that_records_it(act: str) -> None:
    event = make_event(**{act: ACTS[act]})
    assert event == Intervened(request_id="r-1", intervention=Intervention(**{act: ACTS[act]}))


def test_every_bad_field_is_listed() -> None:
    assert list_bad_fields(debate_id="deb-1", request_id="a b", checkpoint="A") == [
        "request_id",
        "debate_id",
        "intervention",
        "intervention.checkpoint",
    ]
    answers = [QuestionAnswer(question_id="q", text="x"), QuestionAnswer(question_id="q", text=" ")]
    assert list_bad_fields(request_id="", answer=Answer(text="\0", answers=answers)) == [
        "request_id",
        "intervention.answer.text",
        "intervention.answer.answers[1].question_id",
        "intervention.answer.answers[1].text",
    ]


@pytest.mark.parametrize("act", ACTS)
def test_only_an_act_that_may_close_a_checkpoint_can_name_one(act: str) -> None:
    given = {act: ACTS[act], "checkpoint": "round/1/ask"}
    if act in CLOSING_ACTS:
        assert make_event(**given).intervention.checkpoint == "round/1/ask"
    else:
        assert list_bad_fields(**given) == ["intervention.checkpoint"]


def test_the_refusal_names_the_acts_that_a_checkpoint_goes_with() -> None:
    with pytest.raises(ParleyError) as refused:
        make_event(resume=Resume(), checkpoint="ask")
    (violation,) = refused.value.violations
    assert violation.description == "goes with answer, approve, continue_debate, end and guide alone"


@pytest.mark.parametrize("checkpoint", ["a//b", "/a", "a/", "a b", "Ask", "a" * 257, "ask\n"])
def test_a_checkpoint_is_named_by_its_key(checkpoint: str) -> None:
    assert list_bad_fields(continue_debate=Continue(), checkpoint=checkpoint) == ["intervention.checkpoint"]


@pytest.mark.parametrize("text", ["", " \n", KIB_8 + "x", "a\0b"])
def test_guidance_says_something_that_can_be_kept(text: str) -> None:
    assert list_bad_fields(guide=Guide(text=text)) == ["intervention.guide.text"]


def test_what_is_said_may_be_8_kib_long() -> None:
    answers = [QuestionAnswer(question_id="q", text=KIB_8)]
    for act in (
        {"guide": Guide(text=KIB_8)},
        {"answer": Answer(text=KIB_8, answers=answers)},
        {"approve": Approve(text=KIB_8)},
        {"cancel": Cancel(reason="ä" * 1000)},
    ):
        make_event(**act)


def test_an_answer_says_something_as_a_whole_or_to_single_questions() -> None:
    assert list_bad_fields(answer=Answer()) == ["intervention.answer.text"]
    assert list_bad_fields(answer=Answer(text=" ")) == ["intervention.answer.text"]
    make_event(answer=Answer(answers=[QuestionAnswer(question_id="q", text="ten")]))


def test_single_answers_are_64_at_most_one_a_question() -> None:
    def answers(count: int) -> list[QuestionAnswer]:
        return [QuestionAnswer(question_id=f"q{number}", text="x") for number in range(count)]

    assert len(make_event(answer=Answer(answers=answers(64))).intervention.answer.answers) == 64
    assert list_bad_fields(answer=Answer(answers=answers(65))) == ["intervention.answer.answers"]
    twice = [*answers(2), *answers(1)]
    assert list_bad_fields(answer=Answer(answers=twice)) == ["intervention.answer.answers[2].question_id"]


@pytest.mark.parametrize("text", [KIB_8 + "x", "a\0b"])
def test_what_is_said_to_an_approval_may_be_left_out_but_must_be_kept(text: str) -> None:
    make_event(approve=Approve())
    assert list_bad_fields(approve=Approve(text=text)) == ["intervention.approve.text"]


@pytest.mark.parametrize("reason", ["x" * 1001, "a\0b"])
def test_a_reason_to_cancel_may_be_left_out_but_must_be_kept(reason: str) -> None:
    make_event(cancel=Cancel())
    assert list_bad_fields(cancel=Cancel(reason=reason)) == ["intervention.cancel.reason"]
