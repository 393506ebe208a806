"""Which acts close which checkpoint."""

from itertools import product

import pytest

from parley.orchestrator.engine.checkpoints import (
    ACTS_FOR_CHECKPOINT,
    CLOSING_ACTS,
    CheckpointRequest,
    closes,
    opened_event,
)
from parley.orchestrator.model.times import timestamp
from parley.v1.debate_pb2 import Approval, Direction, Intervention, Question, Questions
from parley.v1.event_pb2 import CheckpointOpened
from tests.unit.orchestrator.made_logs import START

ACTS = [each.name for each in Intervention.DESCRIPTOR.oneofs_by_name["act"].fields]
UNTIL = timestamp(START)
QUESTIONS = Questions(
    text="Before we begin:", questions=[Question(id="q1", agent_id="ada", text="How many?")]
)
DIRECTION = Direction(text="Two rounds are held.")
APPROVAL = Approval(text="The answer.")
CLOSED_BY = {
    "questions": {"answer", "continue_debate"},
    "direction": {"continue_debate", "guide", "end"},
    "approval": {"approve"},
}


@pytest.mark.parametrize(
    ("request_", "kind"), [(QUESTIONS, "questions"), (DIRECTION, "direction"), (APPROVAL, "approval")]
)
def test_a_request_is_put_as_it_is(request_: CheckpointRequest, kind: str) -> None:
    checkpoint = opened_event(request_, UNTIL)
    assert checkpoint.WhichOneof("request") == kind
    assert getattr(checkpoint, kind) == request_
    assert checkpoint.until == UNTIL


@pytest.mark.parametrize(("request_", "act"), list(product((QUESTIONS, DIRECTION, APPROVAL), ACTS)))
def test_an_act_closes_the_kinds_that_it_is_meant_for_and_no_other(
    request_: CheckpointRequest, act: str
) -> None:
    checkpoint = opened_event(request_, UNTIL)
    assert closes(act, checkpoint) == (act in CLOSED_BY[checkpoint.WhichOneof("request") or ""])


def test_every_kind_of_request_that_the_contract_has_can_be_closed() -> None:
    kinds = {each.name for each in CheckpointOpened.DESCRIPTOR.oneofs_by_name["request"].fields}
    assert kinds == CLOSED_BY.keys()
    assert set().union(*CLOSED_BY.values()) == CLOSING_ACTS


def test_a_request_of_a_kind_that_is_not_known_is_closed_by_nothing() -> None:
    assert not any(closes(act, CheckpointOpened(until=UNTIL)) for act in ACTS)


def test_what_means_nothing_without_a_checkpoint_closes_one_and_guidance_and_the_end_stand_alone() -> None:
    assert {"guide", "end"} == CLOSING_ACTS - ACTS_FOR_CHECKPOINT
    assert ACTS_FOR_CHECKPOINT < CLOSING_ACTS <= set(ACTS)
