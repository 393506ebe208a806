"""Who cited which source, and where."""

import pytest

from parley.orchestrator.model.source_uses import list_source_uses
from parley.orchestrator.model.sources import count_citations
from parley.v1.critique_pb2 import IssueAnswer
from parley.v1.debate_pb2 import (
    AnswerDetails,
    ContextDocument,
    Contribution,
    Debate,
    DebateSpec,
    Outcome,
    Reply,
    StandIn,
    Work,
)
from parley.v1.source_pb2 import Source
from tests.support.growth import check_growth

SOURCES = [Source(number=1), Source(number=2)]


def make_contribution(
    agent: str, text: str, *, number: int = 1, key: str = "", **fields: object
) -> Contribution:
    work = Work(agent_id=agent, activity="proposal", round=number)
    made = Contribution(key=key or f"{number}/{agent}", work=work, reply=Reply(text=text))
    made.MergeFrom(Contribution(**fields))  # type: ignore[arg-type]
    return made


def uses(*made: Contribution, outcome: Outcome | None = None) -> list[tuple[int, str, str, int, bool]]:
    debate = Debate(sources=SOURCES, contributions=made, outcome=outcome)
    return [
        (each.source, each.agent_id, each.phase, each.count, each.in_answer)
        for each in list_source_uses(debate)
    ]


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("Otters float [S1].", {1: 1}),
        ("Otters float [S1, S2].", {1: 1, 2: 1}),
        ("Otters float [S2][S1], and dive[S2].", {2: 2, 1: 1}),
        ("Otters [S1; S2], [S1,S3], [S4 and S5] and [S6 & S7].", {1: 2, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1}),
        ("S1 says so, and so do (S2), [1], [s1], [S], [S0], [S01], [S1234] and [S3 buckets].", {}),
        ("See [S3](https://store.example).", {}),
    ],
)
def test_citations_are_numbers_in_brackets(text: str, cited: dict[int, int]) -> None:
    assert count_citations(text) == cited


def test_who_cited_a_source_is_listed_with_place_and_count() -> None:
    assert uses(
        make_contribution("ada", "So [S1], and again [S1]."),
        make_contribution("bo", "No."),
        make_contribution("bo", "Yes [S2].", number=2),
    ) == [
        (1, "ada", "round 1 proposal", 2, False),
        (2, "bo", "round 2 proposal", 1, False),
    ]


def test_a_structured_contribution_is_read_as_people_read_it() -> None:
    assert uses(
        make_contribution("ada", '{"issue": "[S1]", "more": "[S1]"}', reply=Reply(rendered="Wrong [S2]."))
    ) == [(2, "ada", "round 1 proposal", 1, False)]


def test_a_reason_for_which_an_issue_is_rejected_counts() -> None:
    answers = [IssueAnswer(reason="It is measured [S2].")]
    assert uses(make_contribution("ada", "As before.", reply=Reply(issue_answers=answers))) == [
        (2, "ada", "round 1 proposal", 1, False)
    ]


def test_what_only_repeats_others_does_not_count() -> None:
    summary = make_contribution("ada", "They say [S1].", work=Work(summarized_characters=900))
    after = make_contribution("judge", "It rests on [S1].", key="after/grounding", number=0)
    assert uses(summary, after) == []


def test_the_answer_counts_for_who_wrote_it() -> None:
    answer = make_contribution("judge", "Float [S1].", number=0, is_answer=True)
    assert uses(answer, outcome=Outcome(description="Float [S1].")) == [(1, "judge", "proposal", 1, True)]


def test_a_proposal_that_became_the_answer_counts_as_both() -> None:
    winner = make_contribution("ada", "Float [S1].", is_answer=True)
    outcome = Outcome(description="Float [S1].", details=AnswerDetails(recommendations=["Swim [S2]."]))
    assert uses(winner, outcome=outcome) == [
        (1, "ada", "round 1 proposal", 1, False),
        (1, "ada", "answer", 1, True),
        (2, "ada", "answer", 1, True),
    ]


def test_work_that_stands_in_for_the_answer_counts_for_its_author() -> None:
    outcome = Outcome(description="Float [S1].", stand_in=StandIn(agent_id="bo"))
    assert uses(outcome=outcome) == [(1, "bo", "answer", 1, True)]


def test_nothing_is_known_of_a_debate_whose_documents_have_no_numbers() -> None:
    spec = DebateSpec(context=[ContextDocument(path="otters.md")])
    assert list_source_uses(Debate(spec=spec, contributions=[make_contribution("ada", "So [S1].")])) == []


def test_a_text_full_of_numbers_fills_neither_the_debate_nor_the_time() -> None:
    cited = count_citations("".join(f"[S{number}]" for number in range(1, 1_000)) * 100)
    assert cited == dict.fromkeys(range(1, 101), 100)
    check_growth(lambda size: count_citations("[S1," * size + "[S1 and " * size), 200_000)
