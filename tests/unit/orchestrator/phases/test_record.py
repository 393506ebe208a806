"""What ratings and memory get of a debate: who was right and how sure, how agents did in phases, how they met."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

from google.protobuf.message import Message

from parley.orchestrator.engine.documents import Documents
from parley.orchestrator.phases.record import match_of, record
from parley.v1.arena_pb2 import ArenaOutcome
from parley.v1.critique_pb2 import (
    ISSUE_STATUS_NOT_ANSWERED,
    ISSUE_STATUS_REJECTED,
    ISSUE_STATUS_TAKEN_UP,
    Critique,
    Issue,
    IssueAnswer,
)
from parley.v1.debate_pb2 import AgentScore, Outcome, Reply, Work
from parley.v1.event_pb2 import StepSucceeded
from parley.v1.ratings_pb2 import Encounter, JudgedAnswer, MatchResult, PhaseResult, RecordMatchRequest
from parley.v1.voting_pb2 import Ballot, ChoiceGroup, Vote
from tests.unit.orchestrator.made_logs import ADA, BO, JUDGE, SPEC

SCORED = Outcome(
    description="Yes.", scores=[AgentScore(agent_id="ada", score=7), AgentScore(agent_id="bo", score=8)]
)


class _Debate:
    """As much of a debate as a follow-up uses; `recorded` are the keys of its steps."""

    id, services, replies, documents = "deb-1", None, (), Documents(())

    def __init__(self, *, demonstration: bool) -> None:
        self.spec, self.is_demonstration = SPEC, demonstration
        self.participants, self.judge = (ADA, BO), JUDGE
        self.documents = Documents(())
        self.recorded: list[str] = []
        self.asked: dict[str, Message] = {}

    async def call_service(self, key: str, _work: object, request: Message, _call: object) -> object:
        self.recorded.append(key)
        self.asked[key] = request
        return object()


async def run_record(debate: _Debate, outcome: Outcome = SCORED) -> list[str]:
    await record(cast(Any, debate), outcome, datetime(2026, 11, 22, tzinfo=UTC))
    return sorted(debate.recorded)


async def test_a_debate_is_rated_and_remembered() -> None:
    assert await run_record(_Debate(demonstration=False)) == ["after/memory", "after/ratings"]


async def test_a_debate_of_one_scored_agent_is_no_match() -> None:
    alone = Outcome(description="Yes.", scores=[AgentScore(agent_id="ada", score=7)])
    assert await run_record(_Debate(demonstration=False), alone) == ["after/memory"]


async def test_the_ratings_get_the_whole_match() -> None:
    debate = _Debate(demonstration=False)
    await run_record(debate)
    match = debate.asked["after/ratings"]
    assert match == match_of("deb-1", SPEC.domain, SCORED, ())
    assert isinstance(match, RecordMatchRequest)
    assert match.results == [MatchResult(agent_id="ada", score=7), MatchResult(agent_id="bo", score=8)]


async def test_a_demonstration_is_neither_rated_nor_remembered() -> None:
    assert await run_record(_Debate(demonstration=True)) == []


SCORES = [AgentScore(agent_id=each, score=score) for each, score in (("ada", 9), ("bo", 6), ("cy", 7))]


def make_match(outcome: Outcome, *replies: StepSucceeded) -> RecordMatchRequest:
    return match_of("deb-1", "storage", outcome, replies)


def make_voted_outcome(*ballots: tuple[str, str, float], groups: Sequence[Sequence[str]] = ()) -> Outcome:
    """An arena with a first vote, which does not count, and a last one."""
    cast = [Ballot(agent_id=one, choice_agent_id=of, confidence=sure) for one, of, sure in ballots]
    last = Vote(ballots=cast, groups=[ChoiceGroup(agent_ids=each) for each in groups])
    first = Vote(ballots=[Ballot(agent_id="ada", choice_agent_id="cy", confidence=1)])
    return Outcome(scores=SCORES, arena=ArenaOutcome(votes=[first, last]))


def make_critique(critic: str, target: str, critique: Critique) -> StepSucceeded:
    return StepSucceeded(work=Work(agent_id=critic, target_agent_id=target), reply=Reply(critique=critique))


def make_answers(*statuses: tuple[str, int]) -> StepSucceeded:
    answers = [IssueAnswer(critic_agent_id=critic, status=status) for critic, status in statuses]  # type: ignore[arg-type]
    return StepSucceeded(work=Work(agent_id="ada"), reply=Reply(issue_answers=answers))


def phases(match: RecordMatchRequest, phase: str) -> dict[str, float]:
    return {each.agent_id: each.score for each in match.phases if each.phase == phase}


def test_a_ballot_is_right_where_the_judge_scored_nothing_above_its_choice() -> None:
    match = make_match(make_voted_outcome(("ada", "ada", 0.9), ("bo", "ada", 0.6), ("cy", "bo", 0.8)))
    assert list(match.answers) == [
        JudgedAnswer(agent_id="ada", right=True, confidence=0.9),
        JudgedAnswer(agent_id="bo", right=True, confidence=0.6),
        JudgedAnswer(agent_id="cy", right=False, confidence=0.8),
    ]
    assert phases(match, "vote") == {"ada": 10, "bo": 10, "cy": 0}


def test_a_choice_that_counts_as_one_with_the_best_is_right_too() -> None:
    match = make_match(make_voted_outcome(("cy", "bo", 0.8), groups=[("ada", "bo")]))
    assert [each.right for each in match.answers] == [True]


def test_who_was_not_scored_is_not_told_of() -> None:
    match = make_match(
        make_voted_outcome(("dee", "ada", 0.8), ("ada", "dee", 0.8)),
        make_critique("dee", "ada", Critique(agrees=True)),
    )
    assert not match.answers
    assert not match.encounters


def test_without_a_vote_an_agents_own_work_is_its_answer_right_where_it_is_sound() -> None:
    match = make_match(Outcome(scores=SCORES))
    assert list(match.answers) == [
        JudgedAnswer(agent_id="ada", right=True),
        JudgedAnswer(agent_id="bo", right=False),
        JudgedAnswer(agent_id="cy", right=True),
    ]
    assert [each for each in match.phases if each.phase == "proposal"] == [
        PhaseResult(agent_id=each.agent_id, phase="proposal", score=each.score) for each in SCORES
    ]
    assert not phases(match, "vote")


def test_a_critic_is_as_good_as_the_share_of_its_issues_that_was_taken_up() -> None:
    replies = (
        make_answers(
            ("bo", ISSUE_STATUS_TAKEN_UP), ("bo", ISSUE_STATUS_REJECTED), ("cy", ISSUE_STATUS_TAKEN_UP)
        ),
        make_answers(("bo", ISSUE_STATUS_NOT_ANSWERED), ("bo", ISSUE_STATUS_TAKEN_UP)),
        make_answers(("dee", ISSUE_STATUS_TAKEN_UP)),
    )
    assert phases(make_match(Outcome(scores=SCORES), *replies), "critique") == {"bo": 10 * 2 / 3, "cy": 10}


def test_agents_meet_where_they_criticize_and_where_they_vote_for_each_other() -> None:
    match = make_match(
        make_voted_outcome(("cy", "ada", 0.9), ("ada", "ada", 0.9)),
        make_critique("ada", "bo", Critique(agrees=False)),
        make_critique("bo", "ada", Critique(agrees=True, issues=[Issue(number=1, text="small")])),
        make_critique("bo", "cy", Critique()),
        make_critique("cy", "bo", Critique(issues=[Issue(number=1, text="what of it?")])),
    )
    assert list(match.encounters) == [
        Encounter(agent_id="ada", other_agent_id="bo", agreements=1, disagreements=1),
        Encounter(agent_id="ada", other_agent_id="cy", agreements=1, disagreements=0),
        Encounter(agent_id="bo", other_agent_id="cy", agreements=1, disagreements=0),
    ]
