"""What memory gets of a debate: its decision, how clear and how sure, who disagrees, where agents stood, which issues came up."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from parley.orchestrator.phases.remember import create_record, decision_strength
from parley.runtime.agent_names import Names
from parley.v1.arena_pb2 import ArenaOutcome
from parley.v1.critique_pb2 import (
    ISSUE_STATUS_NOT_ANSWERED,
    ISSUE_STATUS_REJECTED,
    ISSUE_STATUS_TAKEN_UP,
    Critique,
    Issue,
    IssueAnswer,
)
from parley.v1.debate_pb2 import Outcome, Reply, Work
from parley.v1.effect_pb2 import DebateEffect, DecisionConfidence, TakenPosition
from parley.v1.event_pb2 import StepSucceeded
from parley.v1.memory_pb2 import Evidence, RecordDebateRequest
from parley.v1.moderated_pb2 import ModeratedOutcome
from parley.v1.panel_pb2 import Objection, PanelOutcome
from parley.v1.source_pb2 import Source
from parley.v1.voting_pb2 import (
    VOTE_STRENGTH_CONTESTED,
    VOTE_STRENGTH_MODERATE,
    VOTE_STRENGTH_SPLIT,
    VOTE_STRENGTH_STRONG,
    VOTE_STRENGTH_UNANIMOUS,
    VOTE_STRENGTH_UNSPECIFIED,
    Ballot,
    ChoiceGroup,
    Vote,
)
from tests.unit.orchestrator.made_logs import ADA, BO, JUDGE, SPEC

AT = datetime(2026, 3, 3, 12, tzinfo=UTC)
NAMES = Names((ADA, BO), JUDGE)
EFFECT = DebateEffect(
    positions=[
        TakenPosition(text="Use Kafka.", last_agent_ids=["ada"]),
        TakenPosition(text="Use RabbitMQ.", last_agent_ids=["bo"]),
    ],
    decided_position=1,
    confidence=DecisionConfidence(percent=82, votes=2, votes_cast=3),
)


SOURCES = (
    Source(number=1, path="docs/load.md"),
    Source(number=2, title="Queues compared", url="https://example.org/b"),
)


def make_record(
    outcome: Outcome, *replies: StepSucceeded, sources: Sequence[Source] = SOURCES
) -> RecordDebateRequest:
    return create_record("deb-1", SPEC, outcome, replies, NAMES, sources, AT)


def make_stand(agent: str, position: str, number: int = 1) -> StepSucceeded:
    return StepSucceeded(work=Work(agent_id=agent, round=number), reply=Reply(position=position))


def dissents(outcome: Outcome, *replies: StepSucceeded) -> list[tuple[str, str]]:
    return [(each.agent_id, each.text) for each in make_record(outcome, *replies).debate.dissents]


def test_a_record_says_what_was_asked_and_decided_and_when() -> None:
    past = make_record(Outcome(description="Use Kafka.", effect=EFFECT)).debate
    assert (past.debate_id, past.question, past.conclusion) == ("deb-1", SPEC.question, "Use Kafka.")
    assert past.concluded_at.ToDatetime(UTC) == AT
    assert past.confidence == EFFECT.confidence
    assert not make_record(Outcome(description="Use Kafka.")).debate.HasField("confidence"), "it is not known"


def make_outcome(votes: int, votes_cast: int) -> Outcome:
    return Outcome(effect=DebateEffect(confidence=DecisionConfidence(votes=votes, votes_cast=votes_cast)))


def test_a_decision_is_as_clear_as_its_vote_or_as_the_share_of_those_who_take_its_position() -> None:
    arena = Outcome(arena=ArenaOutcome(strength=VOTE_STRENGTH_CONTESTED), effect=EFFECT)
    assert decision_strength(arena) == VOTE_STRENGTH_CONTESTED
    panel = Outcome(panel=PanelOutcome(vote=Vote(strength=VOTE_STRENGTH_STRONG)), effect=EFFECT)
    assert decision_strength(panel) == VOTE_STRENGTH_STRONG
    assert decision_strength(make_outcome(2, 3)) == VOTE_STRENGTH_MODERATE
    assert decision_strength(make_outcome(3, 3)) == VOTE_STRENGTH_UNANIMOUS
    assert decision_strength(make_outcome(1, 3)) == VOTE_STRENGTH_SPLIT
    assert decision_strength(Outcome(moderated=ModeratedOutcome())) == VOTE_STRENGTH_UNSPECIFIED
    assert make_record(arena).debate.strength == VOTE_STRENGTH_CONTESTED


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(panel=PanelOutcome(objections=[Objection(agent_id="bo", text="Agent A is wrong.")])),
        Outcome(arena=ArenaOutcome(dissent=[Objection(agent_id="bo", text="Agent A is wrong.")])),
        Outcome(moderated=ModeratedOutcome(dissents=[Objection(agent_id="bo", text="Agent A is wrong.")])),
    ],
    ids=["panel", "arena", "moderated"],
)
def test_objections_of_each_format_are_dissents_and_name_agents(outcome: Outcome) -> None:
    assert dissents(outcome) == [("bo", "Ada is wrong.")]
    assert dissents(outcome, make_stand("bo", "Use RabbitMQ.")) == [("bo", "Ada is wrong.")]


def test_who_still_holds_another_position_disagrees_by_that() -> None:
    replies = (make_stand("ada", "Use Kafka."), make_stand("bo", "Use RabbitMQ."))
    assert dissents(Outcome(effect=EFFECT), *replies) == [("bo", "Use RabbitMQ.")]
    assert dissents(Outcome(), *replies) == [], "it is not known"


def test_who_voted_otherwise_disagrees_by_its_reason_unless_both_proposals_are_alike() -> None:
    ballots = [Ballot(agent_id="bo", choice_agent_id="bo", reason="Mine is simpler.")]
    vote = Vote(ballots=ballots)
    panel = PanelOutcome(synthesized_by="ada", vote=vote)
    assert dissents(Outcome(panel=panel)) == [("bo", "Mine is simpler.")]
    panel.vote.groups.append(ChoiceGroup(agent_ids=["ada", "bo"]))
    assert dissents(Outcome(panel=panel)) == []


def test_a_stand_is_the_last_position_of_a_round_and_says_if_it_was_decided_for() -> None:
    found = make_record(
        Outcome(effect=EFFECT),
        make_stand("ada", "Wait."),
        make_stand("bo", "Use RabbitMQ, agent A."),
        make_stand("ada", "Use Kafka.", 2),
        make_stand("cy", "Use neither."),
        make_stand("judge", "Not a stand.", 0),
        StepSucceeded(
            work=Work(agent_id="ada", target_agent_id="bo", round=2), reply=Reply(position="Not mine.")
        ),
    ).stands
    stands = [
        (
            each.agent_id,
            each.agent_name,
            each.text,
            each.for_decision if each.HasField("for_decision") else None,
        )
        for each in found
    ]
    assert stands == [
        ("ada", "Ada", "Use Kafka.", True),
        ("bo", "Bo", "Use RabbitMQ, Ada.", False),
        ("cy", "cy", "Use neither.", None),
    ]


def test_who_objects_does_not_stand_for_the_decision() -> None:
    panel = PanelOutcome(objections=[Objection(agent_id="ada", text="No.")])
    (stand,) = make_record(Outcome(effect=EFFECT, panel=panel), make_stand("ada", "Use Kafka.")).stands
    assert stand.HasField("for_decision")
    assert not stand.for_decision


def list_firsts(effect: DebateEffect, *replies: StepSucceeded) -> list[tuple[str, str, bool | None, int]]:
    return [
        (
            each.agent_id,
            each.first_text,
            each.first_for_decision if each.HasField("first_for_decision") else None,
            each.first_position,
        )
        for each in make_record(Outcome(effect=effect), *replies).stands
    ]


def test_a_stand_says_where_its_agent_stood_at_first_and_with_whom() -> None:
    effect = DebateEffect(
        positions=[
            TakenPosition(text="Use RabbitMQ.", first_agent_ids=["ada", "bo"]),
            TakenPosition(
                text="Use Kafka.", first_agent_ids=["cy"], last_agent_ids=["ada", "bo", "cy", "di"]
            ),
        ],
        decided_position=2,
    )
    replies = (
        make_stand("ada", ""),
        make_stand("ada", "RabbitMQ, agent B."),
        make_stand("bo", "Use RabbitMQ."),
        make_stand("cy", "Use Kafka."),
        make_stand("ada", "Kafka then.", 2),
        make_stand("di", "Kafka.", 2),
        make_stand("ada", "Use Kafka.", 3),
    )
    assert list_firsts(effect, *replies) == [
        ("ada", "RabbitMQ, Bo.", False, 1),
        ("bo", "Use RabbitMQ.", False, 1),
        ("cy", "Use Kafka.", True, 2),
        ("di", "Kafka.", None, 0),
    ]
    effect.decided_position = 0
    assert [each[2:] for each in list_firsts(effect, *replies)] == [
        (None, 1),
        (None, 1),
        (None, 2),
        (None, 0),
    ]


def make_critique(critic: str, target: str, *issues: Issue, number: int = 1) -> StepSucceeded:
    work = Work(agent_id=critic, target_agent_id=target, round=number)
    return StepSucceeded(work=work, reply=Reply(critique=Critique(issues=issues)))


def make_answers(agent: str, *answers: IssueAnswer) -> StepSucceeded:
    return StepSucceeded(work=Work(agent_id=agent, round=1), reply=Reply(issue_answers=answers))


def test_issues_come_with_their_answers_most_severe_first() -> None:
    found = make_record(
        Outcome(),
        make_critique(
            "bo", "ada", Issue(number=1, text="Slow."), Issue(number=2, text="Unsafe.", severity=9)
        ),
        make_critique(
            "ada", "bo", Issue(number=1, text="As agent B says.", severity=3, suggestion="Ask agent A.")
        ),
        make_answers(
            "ada",
            IssueAnswer(critic_agent_id="bo", number=2, status=ISSUE_STATUS_TAKEN_UP),
            IssueAnswer(critic_agent_id="bo", number=1, status=ISSUE_STATUS_REJECTED, reason="Agent B errs."),
        ),
    ).issues
    told = [(each.critic_agent_id, each.issue.text, each.status, each.reason) for each in found]
    assert told == [
        ("bo", "Unsafe.", ISSUE_STATUS_TAKEN_UP, ""),
        ("ada", "As Bo says.", ISSUE_STATUS_NOT_ANSWERED, ""),
        ("bo", "Slow.", ISSUE_STATUS_REJECTED, "Bo errs."),
    ]
    assert [each.target_agent_id for each in found] == ["ada", "bo", "ada"]
    assert not found[2].issue.HasField("severity")


def test_evidence_is_what_the_answer_names_a_source_for() -> None:
    answer = (
        "Use Kafka. It keeps order in a partition (docs/kafka.md). Latency matters. Tokens follow RFC 7519.\n\n"
        "- See https://example.org/a?b=1, which measured it.\n- As [S3] says, it is slow.\n"
        "- It is quick [S1; S2]. As [S9] says, it is old (RFC 2822)."
    )
    assert list(make_record(Outcome(description=answer)).debate.evidence) == [
        Evidence(text="It keeps order in a partition (docs/kafka.md).", source="docs/kafka.md"),
        Evidence(text="Tokens follow RFC 7519.", source="RFC 7519"),
        Evidence(
            text="See https://example.org/a?b=1, which measured it.", source="https://example.org/a?b=1"
        ),
        Evidence(
            text="It is quick (docs/load.md; Queues compared).",
            source="docs/load.md; Queues compared (https://example.org/b)",
        ),
        Evidence(text="As says, it is old (RFC 2822).", source="RFC 2822"),
    ]


def test_a_record_of_any_size_is_one_that_memory_accepts() -> None:
    many = [Issue(number=each + 1, text="é" * 5_000, severity=each % 11) for each in range(300)]
    objections = [Objection(agent_id=f"agent-{each:02}", text="é" * 5_000) for each in range(40)]
    outcome = Outcome(description="é" * 300_000, moderated=ModeratedOutcome(dissents=objections))
    found = make_record(outcome, make_critique("bo", "ada", *many))
    assert (len(found.issues), len(found.debate.dissents)) == (256, 32)
    assert found.issues[0].issue.severity == 10
    assert max(len(each.issue.text.encode()) for each in found.issues) <= 16 * 1024
    assert len(found.debate.conclusion.encode()) <= 256 * 1024


def test_numbers_of_sources_become_their_names_in_the_decision_and_are_left_out_of_other_texts() -> None:
    answer = "Use Kafka [S1]. It is quick [S7]."
    objection = Objection(agent_id="bo", text="It is dear [S2].")
    panel = PanelOutcome(objections=[objection])
    record = make_record(Outcome(description=answer, panel=panel))
    assert record.debate.conclusion == "Use Kafka (docs/load.md). It is quick."
    assert [each.source for each in record.debate.evidence] == ["docs/load.md"]
    assert [each.text for each in record.debate.dissents] == ["It is dear."]


def test_an_invented_source_is_none_in_memory() -> None:
    answer = "Use Kafka [S9]. It is quick [S1, S9]. It is cheap, as [S0] shows."
    issue = Issue(number=1, text="Not as [S9] says.", suggestion="Read [S9; S2000].")
    panel = PanelOutcome(objections=[Objection(agent_id="bo", text="It is dear [S9].")])
    record = make_record(
        Outcome(description=answer, panel=panel),
        make_stand("ada", "Kafka [S9]."),
        make_critique("bo", "ada", issue),
        sources=(),
    )
    assert not record.debate.evidence
    assert record.debate.conclusion == "Use Kafka. It is quick. It is cheap, as shows."
    assert not re.search(r"S\d", str(record))
