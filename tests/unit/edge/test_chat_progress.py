"""What of a debate's events is shown as reasoning."""

from parley.edge.chat.progress import Progress
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DebateSpec, Participant, Reply, Work
from parley.v1.event_pb2 import (
    DebateCreated,
    Event,
    LimitReached,
    ParticipantJoined,
    RoundStarted,
    StepFailed,
    StepStarted,
    StepSucceeded,
    TeamSelected,
    Warned,
)

_WORK = Work(activity="critique", agent_id="ann", target_agent_id="bob")


def contribution(text: str, key: str = "k", rendered: str = "") -> Event:
    reply = Reply(text=text, rendered=rendered)
    return Event(key=key, step_succeeded=StepSucceeded(work=_WORK, reply=reply))


def test_a_contribution_is_shown_with_who_made_it_as_people_read_it() -> None:
    shown = Progress().tell(contribution('{"a": 1}', rendered="It leaks."))
    assert shown == "**ann · critique of bob**\n\nIt leaks.\n\n"


def test_what_agents_wrote_is_shown_without_control_characters_and_bounded() -> None:
    shown = Progress().tell(contribution("\x1b[2Jred\x07" + "x" * 100_000))
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert len(shown) < 8100


def test_names_and_messages_stay_on_their_line() -> None:
    assert Progress().tell(Event(warned=Warned(message="a\n\n# b\x1b[1m"))) == "warning: a # b\n\n"
    failed = StepFailed(work=_WORK, reason="LATE", message="one\ntwo")
    assert Progress().tell(Event(step_failed=failed)) == "ann · critique of bob failed: LATE: one two\n\n"


def test_the_answer_is_no_reasoning() -> None:
    progress = Progress()
    started = Event(key="answer", step_started=StepStarted(work=_WORK, is_answer=True))
    assert "begins" in progress.tell(started)
    assert progress.tell(contribution("The answer.", key="answer")) == ""
    assert "Another." in progress.tell(contribution("Another."))


def test_agents_are_called_by_their_names_where_they_call_each_other_by_letters_and_ballots_are_shown() -> (
    None
):
    progress = Progress()
    team = [Participant(agent_id="ann"), Participant(agent_id="bob"), Participant(agent_id="cy")]
    progress.tell(Event(debate_created=DebateCreated(spec=DebateSpec(agents=team))))
    progress.tell(Event(team_selected=TeamSelected(agent_ids=["bob", "cy"])))
    assert "As cy says in issue 2 of cy, bob errs." in progress.tell(
        contribution("As agent B says in B.2, agent A errs.")
    )
    progress.tell(Event(participant_joined=ParticipantJoined(agent=Agent(id="dee"))))
    ballot = Work(activity="vote", agent_id="bob")
    assert progress.tell(Event(key="v", step_started=StepStarted(work=ballot, is_answer=True))) == ""
    assert "I choose dee" in progress.tell(contribution("I choose agent C.", key="v"))


def test_an_event_of_no_interest_or_of_a_later_version_is_passed_over() -> None:
    assert Progress().tell(Event()) == ""
    assert Progress().tell(Event(round_started=RoundStarted(number=2, total=3))) == "### Round 2 of 3\n\n"


def test_a_limit_is_said_with_what_follows_from_it() -> None:
    reached = Event(limit_reached=LimitReached(limit="cost_budget"))
    assert (
        Progress().tell(reached)
        == "ended early by its budget of money; only the answer is still asked for\n\n"
    )
