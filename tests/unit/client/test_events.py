"""What other debate systems call the events of a debate, as the contract says it."""

import pytest

from parley.client.events import event_name
from parley.orchestrator.formats.shipped import all_formats
from parley.runtime.watching import TextPiece
from parley.v1.event_pb2 import (
    Concluded,
    DebateFailed,
    Event,
    StepSucceeded,
    Warned,
    common_names,
)
from tests.support.kept_logs import KEPT, read_log

UNNAMED = {
    "clarification": "a person is asked, not the agents",
    "judge-vote": "it is no vote on the question",
    "requirements": "they are drawn up for all",
    "analysis": "it is drawn up for all",
    "position": "it is taken of the proposal",
    "grouping": "it is about texts that have been sent",
    "discussion": "it is about the rounds",
    "support": "it is about texts that have been sent",
    "assessment": "it is about texts that have been sent",
    "summary": "it is made of texts that have been sent",
    "completion": "it is made of texts that have been sent",
}
"""Activities of agents that other systems have no name for, and why."""
EVERY = [
    "debate_start",
    "round_start",
    "agent_message",
    "critique",
    "vote",
    "consensus",
    "synthesis",
    "debate_end",
]


@pytest.mark.parametrize(
    ("kept", "names"),
    [
        ("arena@1-adversarial", EVERY),
        ("panel@1-voting", [each for each in EVERY if each not in {"consensus", "synthesis"}]),
        ("panel@1-rounds", [each for each in EVERY if each not in {"vote", "consensus"}]),
        ("moderated@1-unsteered", [each for each in EVERY if each not in {"vote", "consensus"}]),
    ],
)
def test_a_debate_of_each_format_has_its_events_by_their_names_in_order(kept: str, names: list[str]) -> None:
    told = [event_name(event.message) for event in read_log(KEPT[kept])]
    assert "" not in told
    assert sorted(names, key=told.index) == names
    assert [each for each in EVERY if each in told] == names
    assert told.count("debate_start") == told.count("debate_end") == 1


def test_a_debate_ends_when_it_fails_or_is_cancelled_too() -> None:
    assert event_name(Event(debate_failed=DebateFailed())) == "debate_end"
    assert event_name(Event(concluded=Concluded())) == "debate_end"


def test_what_others_have_no_name_for_is_called_by_its_kind() -> None:
    assert event_name(Event(warned=Warned())) == "warned"
    assert event_name(Event(step_succeeded=StepSucceeded())) == "step_succeeded"
    assert event_name(Event()) == "", "a kind of a later version"
    assert event_name(TextPiece("k", 1, 1, 0, "Wa")) == "token_delta"


def test_the_contract_names_the_work_of_every_agent_in_every_format() -> None:
    told = StepSucceeded.DESCRIPTOR.GetOptions().Extensions[common_names]
    named = [activity for each in told for activity in each.of]
    known = {each.name for debate_format in all_formats().all() for each in debate_format.activities}
    assert known == {*named, *UNNAMED}, (
        "add it to `common_names` of StepSucceeded in protos/parley/v1/event.proto, or to UNNAMED here"
    )
    assert len(named) == len(set(named)), "each has one name"
