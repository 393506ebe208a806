"""What the edge answers, as the contract's messages."""

from datetime import timedelta
from typing import Any

import pytest

from parley.orchestrator.api.conversion import (
    status_from_proto,
    status_to_proto,
    summary_to_proto,
    with_answer,
    without_texts,
)
from parley.orchestrator.api.folding import fold
from parley.orchestrator.formats.panel import V1
from parley.orchestrator.log import debate_record
from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.model.times import timestamp
from parley.v1 import debate_pb2
from parley.v1.agent_pb2 import Agent, SummarySettings
from parley.v1.debate_pb2 import (
    AgentScore,
    Answer,
    AnswerDetails,
    Approval,
    Clarification,
    DebateFailure,
    Direction,
    DraftGroup,
    DraftGroups,
    Intervention,
    Outcome,
    Question,
    Questions,
    UnfulfilledRequirement,
    Work,
)
from parley.v1.event_pb2 import (
    CheckpointClosed,
    CheckpointOpened,
    Claimed,
    Concluded,
    DebateFailed,
    DraftsGrouped,
    ParticipantJoined,
    Recalled,
    RoundStarted,
    StepStarted,
    WaitStarted,
    Warned,
)
from parley.v1.panel_pb2 import (
    TERMINATION_RULE_CONVERGENCE,
    TERMINATION_RULE_FIXED,
    TERMINATION_RULE_QUALITY,
    PanelOutcome,
    Termination,
    TerminationRule,
)
from tests.support.debate_records import create_record
from tests.support.orchestration import panel_settings
from tests.unit.orchestrator.made_logs import (
    CREATED,
    DEBATE,
    START,
    log,
    make_created,
    make_failure,
    make_success,
)

CLAIMED = Claimed(owner="a")
PROPOSAL = Work(activity="proposal", agent_id="ada", round=1)
CRITIQUE = Work(activity="critique", agent_id="bo", round=1, target_agent_id="ada")
UNTIL = timestamp(START + timedelta(hours=1))


@pytest.mark.parametrize(
    "status",
    [
        debate_record.PENDING,
        debate_record.RUNNING,
        debate_record.WAITING,
        debate_record.PAUSED,
        debate_record.COMPLETED,
        debate_record.FAILED,
        debate_record.CANCELLED,
    ],
)
def test_every_state_has_its_number(status: str) -> None:
    assert status_from_proto(status_to_proto(status)) == status


@pytest.mark.parametrize("number", [0, 99])
def test_a_number_that_is_no_state_is_refused(number: int) -> None:
    with pytest.raises(ValueError):
        status_from_proto(number)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "rule", [TERMINATION_RULE_FIXED, TERMINATION_RULE_CONVERGENCE, TERMINATION_RULE_QUALITY]
)
def test_the_settings_that_a_debate_was_made_with_are_told(rule: TerminationRule.ValueType) -> None:
    settings = panel_settings(
        termination=Termination(rule=rule, threshold_percent=70), summaries=SummarySettings(threshold=9)
    )
    spec = make_created(settings=settings)

    said = fold(log(spec))

    assert said.spec == spec.spec
    assert said.spec.panel == settings
    assert said.spec.panel.termination.threshold_percent == 70


def test_a_debate_is_told_whole() -> None:
    drafts = DraftGroups(
        groups=[DraftGroup(agent_ids=["ada", "bo"], position="A.")], majority=True, certain=True
    )
    outcome = Outcome(
        description="This one.",
        scores=[AgentScore(agent_id="ada", score=8), AgentScore(agent_id="bo", score=4.5)],
        details=AnswerDetails(
            unfulfilled_requirements=[UnfulfilledRequirement(text="Free.", hard=True)],
            confidence=40,
        ),
        panel=PanelOutcome(synthesized_by="judge"),
    )
    state = fold(
        log(
            CREATED,
            CLAIMED,
            Recalled(debate_ids=["deb-1"]),
            RoundStarted(number=1, total=1),
            StepStarted(work=PROPOSAL, digest="digest"),
            make_success(PROPOSAL, "Use A."),
            make_failure(CRITIQUE),
            DraftsGrouped(drafts=drafts),
            Warned(message="the answer is without a score of agents A, B"),
            Concluded(outcome=outcome),
        )
    )

    said = with_answer(state, V1)

    assert (said.id, said.status) == (DEBATE, debate_pb2.DEBATE_STATUS_COMPLETED)
    assert (said.phase, said.current_round, said.calls, said.last_sequence) == ("round 1 proposal", 1, 2, 10)
    made = said.contributions[0]
    assert made.work == PROPOSAL
    assert (made.reply.text, made.reply.model, made.reply.latency.ToMilliseconds()) == (
        "Use A.",
        "small",
        1500,
    )
    assert (made.attempt, made.recorded_at) == (1, timestamp(START + timedelta(seconds=5)))
    lost = said.failures[0]
    assert (lost.work, lost.reason, lost.message, lost.attempt) == (
        CRITIQUE,
        "CALL_TIMEOUT",
        "no answer",
        1,
    )
    assert not made.is_answer
    assert said.outcome == outcome
    assert said.answer == (
        "## In short\n\n"
        "- **Decision:** This one. Written by the judge from the work of Ada.\n"
        "- **Confidence:** By the judge's own word 40 of 100, or more: at most 40 counts while a must is not met.\n"
        "- **Dissent:** No agent was asked whether it agrees with the answer.\n\n"
        "## Answer\n\nThis one.\n\n"
        "## Requirements\n\n- **Not met:** Free. (a must)\n"
    )
    assert said.first_drafts == drafts
    assert list(said.warnings) == ["the answer is without a score of Ada, Bo"]
    assert without_texts(state).warnings == said.warnings
    assert list(said.recalled_debate_ids) == ["deb-1"]
    assert said.usage == state.usage
    assert (said.create_time, said.update_time) == (timestamp(START), timestamp(START + timedelta(seconds=9)))
    assert not said.HasField("failure")
    assert not said.HasField("waiting")


def test_a_failed_debate_has_a_failure_and_no_answer() -> None:
    failure = DebateFailure(
        reason="PROVIDER_AUTH",
        message="no key",
        agent_id="ada",
        phase="round 1 proposal",
        steps=["1/proposal/ada"],
    )

    said = fold(log(CREATED, CLAIMED, DebateFailed(failure=failure)))

    assert said.failure == failure
    assert not said.HasField("outcome")
    assert not said.HasField("first_drafts")
    assert said.answer == ""


def test_who_joined_is_told() -> None:
    cy = Agent(id="cy", name="Cy", role="testing")

    assert list(fold(log(CREATED, CLAIMED, ParticipantJoined(agent=cy))).joined) == [cy]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            {"questions": Questions(questions=[Question(id="q1", agent_id="ada", text="How many?")])},
            "- How many?",
        ),
        ({"direction": Direction(text="Go on?")}, "Go on?"),
        ({"approval": Approval(text="This?")}, "This?"),
    ],
)
def test_what_is_put_to_a_person_is_told_whole(request_: dict[str, Any], message: str) -> None:
    opened = CheckpointOpened(until=UNTIL, **request_)

    said = fold(log(CREATED, CLAIMED, opened))

    assert said.status == debate_pb2.DEBATE_STATUS_WAITING
    waiting = debate_pb2.Waiting(checkpoint="key/3", message=message, until=UNTIL, **request_)
    assert said.waiting == waiting


def test_why_providers_are_waited_for_is_told() -> None:
    wait = WaitStarted(reason="R", message="m", agent_id="ada", phase="round 1 proposal", until=UNTIL)

    said = fold(log(CREATED, CLAIMED, wait))

    assert said.waiting == debate_pb2.Waiting(
        message="m", until=UNTIL, reason="R", agent_id="ada", phase="round 1 proposal"
    )


def test_a_record_is_listed_with_its_times() -> None:
    record = create_record("default", DEBATE, START, "RUNNING", question="Which store?")

    said = summary_to_proto(record)

    assert (said.id, said.status) == (DEBATE, debate_pb2.DEBATE_STATUS_RUNNING)
    assert (said.question, said.format) == ("Which store?", "panel@1")
    assert said.create_time.ToDatetime(START.tzinfo) == said.update_time.ToDatetime(START.tzinfo) == START


def test_whether_it_is_a_demonstration_is_frozen_with_the_debate_and_told() -> None:
    for demonstration in (True, False):
        events = log(make_created(demonstration=demonstration))
        assert fold(events).demonstration == demonstration


def test_questions_that_are_closed_are_told_with_what_was_said() -> None:
    questions = Questions(questions=[Question(id="ada-1", agent_id="ada", text="How many?")])
    closed = CheckpointClosed(intervention=Intervention(answer=Answer(text="Ten.")))
    drafts = (
        create_event("clarify/1", CheckpointOpened(questions=questions), 1),
        create_event("clarify/1", closed, 1),
    )
    (told,) = fold(log(CREATED, CLAIMED, *drafts)).clarifications
    assert told == Clarification(checkpoint="clarify/1", questions=questions, answer=Answer(text="Ten."))
    assert not fold(log(CREATED, CLAIMED, drafts[0])).clarifications
