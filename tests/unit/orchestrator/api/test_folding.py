"""A debate as its log tells it."""

from datetime import timedelta

import pytest

from parley.orchestrator.api.conversion import status_from_proto
from parley.orchestrator.api.folding import DebateFold, fold
from parley.orchestrator.log.envelope import Envelope, create_event
from parley.orchestrator.log.events import CorruptEventError, Payload
from parley.orchestrator.model.spec import participants_of
from parley.orchestrator.model.times import time_of, timestamp
from parley.v1.agent_pb2 import Agent, Usage
from parley.v1.debate_pb2 import (
    DEBATE_STATUS_PAUSED,
    DEBATE_STATUS_PENDING,
    DEBATE_STATUS_RUNNING,
    DEBATE_STATUS_WAITING,
    Approval,
    DebateEstimate,
    Direction,
    DraftGroup,
    DraftGroups,
    Outcome,
    Question,
    Questions,
    Waiting,
    Work,
)
from parley.v1.event_pb2 import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    Closed,
    Concluded,
    DebateCreated,
    DraftsGrouped,
    ParticipantJoined,
    Paused,
    PhaseEntered,
    Recalled,
    Resumed,
    RoundAssessed,
    RoundStarted,
    SourcesListed,
    StepStarted,
    StepSucceeded,
    TeamSelected,
    WaitFinished,
    WaitStarted,
    Warned,
)
from parley.v1.source_pb2 import Source
from tests.support.interventions import intervention
from tests.unit.orchestrator.api.folded_events import (
    ANSWERED,
    CANCELLED,
    CLAIMED,
    CRITIQUE,
    FAILURE,
    PROPOSAL,
)
from tests.unit.orchestrator.made_logs import (
    ADA,
    BO,
    CREATED,
    DEBATE,
    SPEC,
    START,
    key_of,
    log,
    make_failure,
    make_success,
    with_foreign,
)

VOTE = Work(activity="first-draft-vote", title="vote over the first drafts", round=1)


PAUSE = intervention("pause", "w")


def test_what_was_expected_stands_with_the_debate() -> None:
    created = DebateCreated(estimate=DebateEstimate(min_calls=14, max_calls=42))
    assert fold(log(created, ANSWERED)).estimate == created.estimate
    assert not fold(log(CREATED, ANSWERED)).HasField("estimate")


def test_an_accepted_debate_is_pending_and_says_what_it_is_about() -> None:
    state = fold(log(CREATED))

    assert state.status == DEBATE_STATUS_PENDING
    assert (state.id, state.spec, state.phase) == (DEBATE, SPEC, "")
    assert (time_of(state.create_time), time_of(state.update_time), state.last_sequence) == (START, START, 1)
    assert state.usage == Usage()


@pytest.mark.parametrize(
    ("happened", "status"),
    [
        ([CLAIMED], "RUNNING"),
        ([CLAIMED, PAUSE], "RUNNING"),
        ([CLAIMED, PAUSE, Paused()], "PAUSED"),
        ([CLAIMED, Paused(), CLAIMED], "PAUSED"),
        ([CLAIMED, Paused(), CLAIMED, Resumed()], "RUNNING"),
        ([CLAIMED, FAILURE], "FAILED"),
        ([CLAIMED, FAILURE, Paused()], "FAILED"),
        ([CLAIMED, FAILURE, CLAIMED, intervention("guide", "w", text="think")], "FAILED"),
        ([CLAIMED, FAILURE, CLAIMED, Resumed()], "RUNNING"),
        ([CLAIMED, FAILURE, CLAIMED, CANCELLED], "CANCELLED"),
        ([CLAIMED, ANSWERED], "COMPLETED"),
        ([CLAIMED, ANSWERED, CLAIMED, Closed()], "COMPLETED"),
    ],
)
def test_the_status_follows_the_log(happened: list[Payload], status: str) -> None:
    assert status_from_proto(fold(log(CREATED, *happened)).status) == status


def test_a_failed_debate_says_why_until_it_goes_on() -> None:
    begun = log(CREATED, CLAIMED, FAILURE, Resumed())

    assert fold(begun[:3]).failure == FAILURE.failure
    assert not fold(begun).HasField("failure")


def test_contributions_stand_in_the_order_in_which_they_came() -> None:
    state = fold(log(CREATED, CLAIMED, make_success(PROPOSAL, "Use A."), make_success(CRITIQUE, "Why A?")))

    assert [(made.work.agent_id, made.reply.text) for made in state.contributions] == [
        ("ada", "Use A."),
        ("bo", "Why A?"),
    ]
    assert time_of(state.contributions[1].recorded_at) > time_of(state.contributions[0].recorded_at)


def test_a_step_that_succeeds_after_a_failure_is_no_failure_and_both_attempts_are_paid_for() -> None:
    state = fold(log(CREATED, CLAIMED, make_failure(PROPOSAL), make_success(PROPOSAL, "Use A.", attempt=2)))

    assert not state.failures
    assert [(made.reply.text, made.attempt) for made in state.contributions] == [("Use A.", 2)]
    assert state.calls == 2
    assert state.usage == Usage(input_tokens=13, output_tokens=5, cost_micros=107, requests=3)


def test_a_step_that_is_made_again_stands_once_with_its_latest_outcome() -> None:
    again = fold(log(CREATED, make_success(PROPOSAL, "Use A."), make_success(PROPOSAL, "Use B.", attempt=2)))
    lost = fold(log(CREATED, make_success(PROPOSAL, "Use A."), make_failure(PROPOSAL, attempt=2)))

    assert [made.reply.text for made in again.contributions] == ["Use B."]
    assert not lost.contributions
    assert [failure.attempt for failure in lost.failures] == [2]


def test_a_price_that_is_unknown_once_leaves_the_cost_unknown() -> None:
    unknown = make_success(CRITIQUE, "Why?", usage=Usage(input_tokens=1, output_tokens=1, requests=1))

    usage = fold(log(CREATED, make_success(PROPOSAL, "Use A."), unknown)).usage
    assert not usage.HasField("cost_micros")


def test_a_service_answer_is_no_model_call() -> None:
    state = fold(log(CREATED, StepSucceeded(work=VOTE, digest="digest")))

    assert (state.calls, list(state.contributions)) == (0, [])


def test_how_the_first_drafts_group_is_told() -> None:
    groups = [DraftGroup(agent_ids=["ada", "bo"], position="A."), DraftGroup(agent_ids=["cy"], position="B.")]
    drafts = DraftGroups(groups=groups, majority=True, certain=True)

    assert not fold(log(CREATED)).HasField("first_drafts")
    assert fold(log(CREATED, DraftsGrouped(drafts=drafts))).first_drafts == drafts


def test_first_drafts_whose_groups_are_not_certain_are_not_told() -> None:
    drafts = DraftGroups(groups=[DraftGroup(agent_ids=["ada", "bo"], position="A.")], majority=True)

    assert not fold(log(CREATED, DraftsGrouped(drafts=drafts))).HasField("first_drafts")


def test_the_contribution_that_is_the_answer_is_known_by_its_start() -> None:
    synthesis = Work(activity="synthesis", agent_id="judge")
    begun = create_event(key_of(synthesis), StepStarted(work=synthesis, digest="digest", is_answer=True), 1)
    ballot = Work(activity="vote", agent_id="ada", round=2)
    voting = create_event(key_of(ballot), StepStarted(work=ballot, digest="digest", is_answer=True), 1)
    made = (
        make_success(PROPOSAL, "Use A."),
        voting,
        make_success(ballot, "{}"),
        begun,
        make_success(synthesis, "{}"),
    )
    state = fold(log(CREATED, *made))

    assert [made.is_answer for made in state.contributions] == [False, False, True]


def test_the_phase_is_that_of_the_step_started_last() -> None:
    state = fold(
        log(CREATED, StepStarted(work=PROPOSAL, digest="digest"), StepStarted(work=CRITIQUE, digest="digest"))
    )

    assert state.phase == "round 1 critique"


def test_the_phase_that_a_format_names_stands_until_the_next() -> None:
    entered = fold(log(CREATED, StepStarted(work=PROPOSAL, digest="digest"), PhaseEntered(name="VOTING")))

    assert entered.phase == "VOTING"


def test_rounds_warnings_interventions_and_recalled_debates_are_kept() -> None:
    guided = intervention("guide", "w", text="Mind the budget.")
    rounds = (RoundStarted(number=1, total=2), RoundStarted(number=2, total=2))

    state = fold(log(CREATED, Recalled(debate_ids=["deb-1"]), *rounds, Warned(message="late"), guided))

    assert (list(state.recalled_debate_ids), state.current_round, state.max_rounds) == (["deb-1"], 2, 2)
    assert (list(state.warnings), list(state.interventions)) == (["late"], [guided.intervention])


def test_sources_add_to_those_before() -> None:
    first, second = Source(number=1, path="a.md"), Source(number=2, url="https://b.example")

    state = fold(log(CREATED, SourcesListed(sources=[first]), SourcesListed(sources=[second])))

    assert list(state.sources) == [first, second]


def test_an_agent_that_joins_takes_part_from_then_on() -> None:
    cy = Agent(id="cy", name="Cy", role="testing")
    joined = ParticipantJoined(agent=cy, instructions={"system": "Test."})

    assert participants_of(fold(log(CREATED))) == (ADA, BO)
    state = fold(log(CREATED, CLAIMED, joined))
    assert (list(state.joined), participants_of(state)) == ([cy], (ADA, BO, cy))


def test_of_a_team_that_was_chosen_only_its_members_take_part() -> None:
    assert participants_of(fold(log(CREATED, CLAIMED, TeamSelected(agent_ids=["bo"])))) == (BO,)


def test_of_a_team_without_members_only_those_who_join_take_part() -> None:
    cy = Agent(id="cy", name="Cy", role="testing")
    joined = ParticipantJoined(agent=cy)

    assert participants_of(fold(log(CREATED, CLAIMED, TeamSelected(), joined))) == (cy,)


UNTIL = START + timedelta(hours=1)


@pytest.mark.parametrize(
    ("opened", "message"),
    [
        (
            CheckpointOpened(
                questions=Questions(text="First:", questions=[Question(id="a", text="How many?")])
            ),
            "First:\n- How many?",
        ),
        (CheckpointOpened(questions=Questions(questions=[Question(text="Why?")])), "- Why?"),
        (CheckpointOpened(direction=Direction(text="Go on?")), "Go on?"),
        (CheckpointOpened(approval=Approval(text="This?")), "This?"),
    ],
)
def test_a_debate_waits_at_a_checkpoint_until_it_is_closed_or_expires(
    opened: CheckpointOpened, message: str
) -> None:
    opened.until.CopyFrom(timestamp(UNTIL))
    begun = (CREATED, CLAIMED, create_event("ask", opened))
    kind = opened.WhichOneof("request") or ""

    waits = fold(log(*begun))
    assert (waits.status, waits.waiting) == (
        DEBATE_STATUS_WAITING,
        Waiting(checkpoint="ask", message=message, until=timestamp(UNTIL), **{kind: getattr(opened, kind)}),
    )
    for over in (CheckpointClosed(request_id="w"), CheckpointExpired()):
        state = fold(log(*begun, create_event("ask", over)))
        assert (state.status, state.HasField("waiting")) == (DEBATE_STATUS_RUNNING, False)


def test_a_debate_waits_for_providers_until_that_is_over() -> None:
    wait = WaitStarted(
        reason="R", message="m", agent_id="ada", phase="round 1 proposal", until=timestamp(UNTIL)
    )

    waits = fold(log(CREATED, CLAIMED, wait))
    told = Waiting(message="m", until=timestamp(UNTIL), reason="R", agent_id="ada", phase="round 1 proposal")
    assert (waits.status, waits.waiting) == (DEBATE_STATUS_WAITING, told)
    assert not fold(log(CREATED, CLAIMED, wait, WaitFinished())).HasField("waiting")
    assert fold(log(CREATED, CLAIMED, Paused(), wait)).status == DEBATE_STATUS_PAUSED


def test_why_the_rounds_ended_before_the_last_is_told_where_nothing_else_ended_the_debate() -> None:
    one = RoundStarted(number=1, total=2)
    agreed = RoundAssessed(round=1, ends_rounds=True, finding="the agents agree")
    goes_on = RoundAssessed(round=1, finding="the agents do not agree yet")

    assert fold(log(CREATED, one, agreed, ANSWERED)).rounds_ended_by == "the agents agree"
    assert fold(log(CREATED, one, goes_on, ANSWERED)).rounds_ended_by == ""
    assert fold(log(CREATED, one, intervention("end"), ANSWERED)).rounds_ended_by == "a person asked for it"
    last = RoundStarted(number=2, total=2)
    assert fold(log(CREATED, one, last, intervention("end"), ANSWERED)).rounds_ended_by == ""
    limited = fold(log(CREATED, one, agreed, Concluded(outcome=Outcome(), ended_by="total_timeout")))
    assert (limited.rounds_ended_by, limited.ended_by) == ("", "total_timeout")


@pytest.mark.parametrize("ignorable", [True, False])
def test_kinds_that_are_not_known_are_passed_over(ignorable: bool) -> None:
    events = log(CREATED, CLAIMED, Warned(message="late"))

    state, before = fold(with_foreign(events, ignorable=ignorable)), fold(events)

    assert (state.status, list(state.warnings), state.last_sequence) == (DEBATE_STATUS_RUNNING, ["late"], 4)
    assert (state.contributions, state.calls) == (before.contributions, before.calls)


@pytest.mark.parametrize("events", [[], log(CLAIMED)])
def test_a_log_that_does_not_begin_with_its_creation_is_refused(events: list[Envelope]) -> None:
    with pytest.raises(CorruptEventError, match="begins with its creation"):
        fold(events)


def test_an_answer_is_one_though_the_fold_was_cut_while_it_was_written() -> None:
    begins = create_event(key_of(CRITIQUE), StepStarted(work=CRITIQUE, digest="digest", is_answer=True), 1)
    events = log(CREATED, CLAIMED, begins, make_success(CRITIQUE, "This."))

    folded = DebateFold(events[:3])
    folded.extend(events[3:])
    (made,) = folded.debate.contributions
    assert made.is_answer


def test_events_that_were_folded_in_are_not_counted_again() -> None:
    events = log(CREATED, CLAIMED, make_success(PROPOSAL, "Use A."), Warned(message="late"))
    folded = DebateFold(events[:3])

    folded.extend(events[2:])
    folded.extend(events[1:])
    assert folded.debate == fold(events)


def test_each_outcome_names_its_event_and_the_debate_when_it_ended() -> None:
    events = log(CREATED, CLAIMED, make_success(PROPOSAL, "Use A."), make_failure(CRITIQUE))
    state, ended = fold(events), fold(log(CREATED, CLAIMED, CANCELLED, Closed()))

    assert (state.contributions[0].sequence, state.failures[0].sequence) == (3, 4)
    assert not state.HasField("end_time")
    assert time_of(state.update_time) == events[3].time
    assert ended.end_time.ToDatetime() < ended.update_time.ToDatetime()
