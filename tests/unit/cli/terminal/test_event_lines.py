"""Events of a debate as lines, and what was contributed."""

import pytest
from google.protobuf.message import Message

from parley.cli.terminal.event_lines import contribution_text, event_lines
from parley.client import Event
from parley.v1.agent_pb2 import Agent
from parley.v1.analysis_pb2 import CLAIM_GROUNDING_UNSUPPORTED, Analysis, AnswerClaim
from parley.v1.arena_pb2 import TRICKSTER_VERDICT_CHALLENGED, TRICKSTER_VERDICT_SOUND, TricksterFinding
from parley.v1.debate_pb2 import (
    Answer,
    DraftGroup,
    DraftGroups,
    Intervention,
    Mute,
    Outcome,
    QuestionAnswer,
    Requirement,
    Unmute,
    Work,
)
from parley.v1.event_pb2 import (
    AnswerAnalysed,
    Concluded,
    ContributionObserved,
    CritiqueEdge,
    DraftsGrouped,
    Intervened,
    JudgeChosen,
    ParticipantJoined,
    PhaseEntered,
    PhaseFinished,
    PhaseStarted,
    RequirementsListed,
    RoundAssessed,
    RoundsEnded,
    Settled,
    SourcesListed,
    StepFailed,
    TeamSelected,
    TimerFired,
    TimerStarted,
    TopologyDrawn,
    TricksterChecked,
)
from parley.v1.rhetoric_pb2 import RhetoricalMark
from parley.v1.source_pb2 import Source
from tests.support.made_events import made_event
from tests.unit.cli.terminal.events import ADA, end_step, reply, start_step


def lines(*seen: Event) -> list[str]:
    return [line for each in seen for line in event_lines(each, "deb-20260102-030405-abcdefgh", None)]


def test_what_was_contributed_is_a_whole_and_as_people_read_it() -> None:
    assert contribution_text(made_event(start_step(ADA))) == ""
    assert contribution_text(made_event(end_step(ADA, reply()))) == "text"
    told = reply()
    told.text, told.rendered = '{"choice": "tea"}', "\nvotes for tea,\nsince it is warm\n"
    assert contribution_text(made_event(end_step(ADA, told))) == "votes for tea,\nsince it is warm"
    assert contribution_text(made_event(end_step(Work(activity="recall")))) == ""


def test_an_event_is_one_line_whatever_it_says() -> None:
    failed = StepFailed(work=ADA, reason="X", message="two\nlines \x1b[2J")
    assert lines(made_event(failed)) == ["1 ada proposal: failed: X: two lines"]


def timer() -> TimerStarted:
    begun = TimerStarted()
    begun.until.FromJsonString("2026-01-02T03:04:05Z")
    return begun


UNSUPPORTED = AnswerClaim(grounding=CLAIM_GROUNDING_UNSUPPORTED)
GROUPS = DraftGroups(
    groups=[DraftGroup(agent_ids=["ada", "bo"]), DraftGroup(agent_ids=["cy"])], majority=True, certain=True
)


@pytest.mark.parametrize(
    ("payload", "line"),
    [
        (PhaseStarted(activity="proposal", round=1, expected=2), "round 1 proposal: 2 to come"),
        (PhaseStarted(activity="ballot", title="vote", expected=3), "vote: 3 to come"),
        (PhaseFinished(activity="proposal", round=1), "round 1 proposal: done"),
        (PhaseEntered(name="VOTING"), "phase VOTING"),
        (
            TopologyDrawn(
                round=2,
                topology="ring",
                edges=[
                    CritiqueEdge(critic_agent_id="bo", target_agent_id="ada"),
                    CritiqueEdge(critic_agent_id="ada", target_agent_id="bo"),
                ],
            ),
            "ring: bo of ada, ada of bo",
        ),
        (TeamSelected(agent_ids=["ada", "cy"]), "team: ada, cy"),
        (
            JudgeChosen(agent_id="bo", reason="2 of 3 agents voted for it"),
            "judge: bo: 2 of 3 agents voted for it",
        ),
        (
            StepFailed(work=ADA, reason="ROUND_TIMEOUT", message="no answer", partial_text="Use a qu"),
            "ada proposal: failed: ROUND_TIMEOUT: no answer (8 characters were written, and are kept)",
        ),
        (DraftsGrouped(drafts=GROUPS), "vote over the first drafts: 2 of 3 agree"),
        (DraftsGrouped(drafts=DraftGroups(majority=True)), "vote over the first drafts: not certain"),
        (
            SourcesListed(
                sources=[Source(number=1, path="a.md"), Source(number=2, title="B", url="https://b")]
            ),
            "sources: S1 a.md, S2 B",
        ),
        (
            SourcesListed(sources=[Source(number=each, path="a.md") for each in range(1, 8)]),
            "sources: S1 a.md, S2 a.md, S3 a.md, S4 a.md, S5 a.md and 2 more",
        ),
        (
            RequirementsListed(requirements=[Requirement(text="a", hard=True), Requirement(text="b")]),
            "2 requirements, of which 1 must be met",
        ),
        (RoundAssessed(round=2, finding="not yet"), "after round 2: not yet"),
        (RoundAssessed(round=2, finding="they agree", ends_rounds=True), "ended after round 2: they agree"),
        (
            TricksterChecked(
                finding=TricksterFinding(
                    round=3,
                    verdict=TRICKSTER_VERDICT_CHALLENGED,
                    hollow_percent=87.4,
                    threshold_percent=50,
                )
            ),
            "after round 3: the agreement is hollow (87 %, threshold 50 %); it is challenged, and the rounds go on",
        ),
        (
            TricksterChecked(
                finding=TricksterFinding(
                    round=3, verdict=TRICKSTER_VERDICT_SOUND, hollow_percent=12, threshold_percent=50
                )
            ),
            "after round 3: the agreement is not hollow (12 %, threshold 50 %)",
        ),
        (
            ContributionObserved(
                work=ADA,
                patterns=[RhetoricalMark(name="concession", count=2)],
                fallacies=[RhetoricalMark(name="bandwagon", count=1)],
            ),
            "ada proposal: concession, bandwagon (fallacy)",
        ),
        (Settled(counted=["ada", "bo"], left_out=["cy"]), "going on with ada, bo; without cy"),
        (Settled(counted=["ada"]), "going on with ada"),
        (ParticipantJoined(agent=Agent(id="cy", role="security")), "cy joins (security)"),
        (timer(), "timer k: until 03:04:05 UTC"),
        (TimerFired(), "timer k: its time has come"),
        (Intervened(intervention=Intervention(mute=Mute(agent_id="bo"))), "asked to mute bo"),
        (Intervened(intervention=Intervention(unmute=Unmute(agent_id="bo"))), "asked to unmute bo"),
        (
            Intervened(intervention=Intervention(answer=Answer(answers=[QuestionAnswer(text="ten")]))),
            "asked to answer ten",
        ),
        (
            end_step(Work(activity="recall", title="search for past debates")),
            "search for past debates: done",
        ),
        (RoundsEnded(explanation="all 3 rounds were held"), "rounds ended: all 3 rounds were held"),
        (Concluded(outcome=Outcome(description="x")), "completed"),
        (
            Concluded(outcome=Outcome(description="x"), ended_by="cost_budget"),
            "completed, ended early by its budget of money",
        ),
        (Concluded(), "cancelled"),
        (AnswerAnalysed(analysis=Analysis(missing="no time")), "the answer was not analysed: no time"),
        (
            AnswerAnalysed(analysis=Analysis(claims=[UNSUPPORTED, AnswerClaim()], verdict=1, cruxes=[2])),
            "analysed: 2 claims, 1 not supported by anything said; the decision depends on 1 of them",
        ),
        (
            AnswerAnalysed(analysis=Analysis(claims=[AnswerClaim()], verdict=1)),
            "analysed: 1 claim, 0 not supported by anything said; the decision depends on none of them",
        ),
        (
            AnswerAnalysed(analysis=Analysis(claims=[AnswerClaim()])),
            "analysed: 1 claim, 0 not supported by anything said",
        ),
    ],
)
def test_an_event_is_a_line(payload: Message, line: str) -> None:
    assert lines(made_event(payload)) == [f"1 {line}"]


def test_an_event_of_a_later_version_is_passed_over() -> None:
    assert lines(made_event(None)) == []
