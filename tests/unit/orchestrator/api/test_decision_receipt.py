"""What a receipt says of a debate: who took part, by which models, how it was decided, and what people did."""

import pytest

from parley.orchestrator.api.decision_receipt import create_decision_receipt
from parley.orchestrator.log.envelope import Envelope
from parley.v1.receipt_pb2 import DecisionReceipt
from parley.v1.voting_pb2 import VOTE_STRENGTH_UNSPECIFIED
from tests.support.kept_logs import KEPT, read_log


def read_until_answer(name: str) -> list[Envelope]:
    events = read_log(KEPT[name])
    return events[: next(place for place, each in enumerate(events, start=1) if each.kind == "concluded")]


def receipt_of(name: str) -> DecisionReceipt:
    return create_decision_receipt(read_until_answer(name), machine_only=False)


def test_it_names_the_debate_and_who_answered_by_which_model() -> None:
    events, receipt = read_until_answer("panel@1-voting"), receipt_of("panel@1-voting")
    spec = events[0].message.debate_created.spec
    assert (receipt.question, receipt.format) == (spec.question, spec.format)
    assert receipt.create_time == events[0].message.time
    assert receipt.conclude_time == events[-1].message.time
    agents = {each.agent.id for each in spec.agents}
    assert agents <= {each.agent_id for each in receipt.participants}
    answers = [
        each
        for each in events
        if each.kind == "step_succeeded" and each.message.step_succeeded.HasField("reply")
    ]
    assert sum(model.answers for each in receipt.participants for model in each.answered_by) == len(answers)
    for participant in receipt.participants:
        for model in participant.answered_by:
            assert model.route
            assert model.model
    assert receipt.calls >= len(answers)


def test_votes_are_in_it_with_their_strength_and_without_the_words_of_voters() -> None:
    receipt = receipt_of("panel@1-voting")
    (vote,) = receipt.votes
    assert receipt.strength == vote.strength != VOTE_STRENGTH_UNSPECIFIED
    assert vote.ballots
    assert not any(each.reason for each in vote.ballots)


def test_an_arenas_decision_and_dissent_are_in_it() -> None:
    receipt, events = receipt_of("arena@1-adversarial"), read_until_answer("arena@1-adversarial")
    arena = events[-1].message.concluded.outcome.arena
    assert receipt.strength == arena.strength
    assert list(receipt.dissents) == list(arena.dissent)
    assert receipt.HasField("decision") == arena.HasField("decision")
    assert not any(each.reason for each in receipt.decision.count.ballots)


def test_what_people_did_is_in_it_with_who_did_it() -> None:
    events = read_until_answer("moderated@1-steered")
    receipt = receipt_of("moderated@1-steered")
    recorded = [each for each in events if each.kind == "intervened"]
    assert recorded
    assert [(each.sequence, each.act) for each in receipt.interventions] == [
        (each.sequence, each.message.intervened.intervention.WhichOneof("act")) for each in recorded
    ]
    assert receipt.interventions[0].intervened_by == recorded[0].message.intervened.intervened_by
    assert receipt.approvals
    assert list(receipt.dissents) == list(events[-1].message.concluded.outcome.moderated.dissents)


@pytest.mark.parametrize("machine_only", [False, True])
def test_it_says_whether_a_machine_vouches_for_itself_alone(machine_only: bool) -> None:
    events = read_until_answer("panel@1-voting")
    assert create_decision_receipt(events, machine_only=machine_only).machine_only == machine_only
