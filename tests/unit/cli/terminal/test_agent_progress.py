"""What agents are at, as a fold of events and text."""

from google.protobuf.message import Message

from parley.cli.terminal.progress import MAX_TEXT, AgentsProgress, apply_event, apply_text
from parley.client import TextPiece
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DebateSpec, Participant, Work
from parley.v1.event_pb2 import (
    Claimed,
    DebateCreated,
    ParticipantJoined,
    Paused,
    StepFailed,
    StepStarted,
    TeamSelected,
)
from tests.support.made_events import made_event
from tests.unit.cli.terminal.events import ADA, end_step, reply, start_step

CREATED = DebateCreated(
    spec=DebateSpec(
        agents=[
            Participant(agent=Agent(id=each, role=role)) for each, role in (("ada", "security"), ("bo", ""))
        ]
    )
)


def after(*seen: Message | tuple[str, Message] | TextPiece) -> AgentsProgress:
    agents: AgentsProgress = {}
    for each in (CREATED, *seen):
        if isinstance(each, TextPiece):
            agents = apply_text(agents, each)
        else:
            key, payload = each if isinstance(each, tuple) else ("k", each)
            agents = apply_event(agents, made_event(payload, key))
    return agents


def test_those_that_debate_stand_in_their_order_and_others_only_once_they_work() -> None:
    judging = StepStarted(work=Work(activity="synthesis", agent_id="judge"))
    agents = after(judging, ParticipantJoined(agent=Agent(id="cy", role="testing")))
    assert [(each.id, each.role, each.debates) for each in agents.values()] == [
        ("ada", "security", True),
        ("bo", "", True),
        ("judge", "", False),
        ("cy", "testing", True),
    ]


def test_who_was_not_chosen_does_not_stand_there() -> None:
    assert list(after(TeamSelected(agent_ids=["bo"]))) == ["bo"]


def test_text_is_kept_with_its_step_until_the_step_ends() -> None:
    coming = (start_step(ADA), TextPiece("k", 1, 1, 0, "Use o"), TextPiece("k", 1, 1, 5, "ne."))
    assert after(*coming)["ada"].steps["k"].text == "Use one."
    said = reply()
    said.position = "One service."
    ended = after(*coming, end_step(ADA, said))["ada"]
    assert (dict(ended.steps), ended.latest_text, ended.latest_phase, ended.position) == (
        {},
        "text",
        "round 1 proposal",
        "One service.",
    )


def test_a_new_attempt_voids_the_text_before_and_repeated_text_counts_once() -> None:
    step = after(
        start_step(ADA),
        TextPiece("k", 1, 1, 0, "wrong"),
        TextPiece("k", 1, 2, 0, "right"),
        TextPiece("k", 1, 2, 0, "right on"),
        TextPiece("k", 1, 1, 5, "late"),
        TextPiece("other", 1, 1, 0, "nobody's"),
    )["ada"].steps["k"]
    assert (step.text, step.length) == ("right on", 8)


def test_of_a_long_text_the_end_is_kept_while_it_comes() -> None:
    step = after(
        start_step(ADA), TextPiece("k", 1, 1, 0, "a" * MAX_TEXT), TextPiece("k", 1, 1, MAX_TEXT, "z")
    )["ada"].steps["k"]
    assert (len(step.text), step.text[-1], step.length) == (MAX_TEXT, "z", MAX_TEXT + 1)


def test_what_a_person_reads_is_kept_rather_than_json() -> None:
    said = reply()
    said.text, said.rendered = '{"stance": 1}', "agrees"
    assert after(start_step(ADA), end_step(ADA, said))["ada"].latest_text == "agrees"


def test_a_failure_is_told_in_place_of_what_was_said() -> None:
    failed = StepFailed(work=ADA, reason="CALL_TIMEOUT")
    ada = after(start_step(ADA), end_step(ADA, reply()), ("b", start_step(ADA)), ("b", failed))["ada"]
    assert (dict(ada.steps), ada.latest_text, ada.latest_phase) == (
        {},
        "",
        "round 1 proposal failed: CALL_TIMEOUT",
    )


def test_work_of_an_earlier_owner_is_void() -> None:
    for ending in (Claimed(owner="y"), Paused()):
        assert not after(start_step(ADA), ending)["ada"].steps
