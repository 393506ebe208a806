from collections.abc import Sequence

import pytest

from parley.orchestrator.model.best_work import choose_best_work
from parley.orchestrator.model.contributions import Contribution
from parley.v1.critique_pb2 import ISSUE_STATUS_REJECTED, ISSUE_STATUS_TAKEN_UP, Critique, Issue, IssueAnswer
from parley.v1.debate_pb2 import DraftGroup, DraftGroups

WORKS = [Contribution(agent, "refinement", 2, f"{agent}'s work") for agent in ("ada", "bo", "cy")]


def critique(
    critic: str, target: str, *severities: int, agrees: bool = False, number: int = 2
) -> Contribution:
    issues = [Issue(number=place, text="x", severity=each) for place, each in enumerate(severities, 1)]
    return Contribution(
        critic, "critique", number, "", target=target, critique=Critique(issues=issues, agrees=agrees)
    )


def refinement(author: str, critic: str, status: "IssueAnswer.ValueType") -> Contribution:  # type: ignore[name-defined]
    answer = IssueAnswer(critic_agent_id=critic, number=1, status=status)
    return Contribution(author, "refinement", 2, "", answers=(answer,))


@pytest.mark.parametrize(
    ("said", "best", "reason"),
    [
        ([], "ada", "nothing is known that puts another one above it, and it comes first"),
        ([critique("ada", "bo", agrees=True)], "bo", "1 of 1 critics agree with it"),
        (
            [
                critique("ada", "bo", agrees=True),
                *(critique(each, "cy", agrees=True) for each in ("ada", "bo")),
            ],
            "cy",
            "2 of 2 critics agree with it",
        ),
        (
            [critique("bo", "ada", 9), critique("ada", "bo", 4), critique("ada", "cy", 5, 5)],
            "bo",
            "it has the fewest serious issues left open (0)",
        ),
        (
            [
                critique("bo", "ada", 9),
                critique("cy", "bo", 9),
                critique("bo", "cy", 9),
                refinement("cy", "bo", ISSUE_STATUS_TAKEN_UP),
            ],
            "cy",
            "it has the fewest serious issues left open (0)",
        ),
        (
            [
                critique("bo", "ada", 9),
                critique("cy", "bo", 9),
                critique("bo", "cy", 9),
                refinement("cy", "bo", ISSUE_STATUS_REJECTED),
            ],
            "ada",
            "nothing is known that puts another one above it, and it comes first",
        ),
        (
            [critique("ada", "bo", agrees=True, number=1), critique("ada", "bo", number=2)],
            "ada",
            "nothing is known that puts another one above it, and it comes first",
        ),
    ],
    ids=["nothing", "agreed", "more agree", "fewer issues", "taken up", "rejected", "only once"],
)
def test_the_best_work_is_what_critics_say_last(said: Sequence[Contribution], best: str, reason: str) -> None:
    chosen = choose_best_work(WORKS, said)
    assert (chosen.work.agent, chosen.reason) == (best, reason)


def test_one_work_alone_is_the_best() -> None:
    assert choose_best_work(WORKS[:1], []).reason == "there is no other"


def test_of_equals_the_position_of_most_first_drafts_counts() -> None:
    groups = [DraftGroup(agent_ids=["bo", "cy"]), DraftGroup(agent_ids=["ada"])]
    chosen = choose_best_work(WORKS, [], DraftGroups(groups=groups, majority=True))
    assert (chosen.work.agent, chosen.reason) == (
        "bo",
        "2 of 3 first drafts take the position of its author's",
    )
    assert choose_best_work(WORKS, [], DraftGroups(groups=groups)).work.agent == "ada", "no majority is known"
    agreed = choose_best_work(
        WORKS, [critique("bo", "ada", agrees=True)], DraftGroups(groups=groups, majority=True)
    )
    assert agreed.work.agent == "ada", "who has read it knows more"
