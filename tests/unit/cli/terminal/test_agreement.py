"""Who agreed, in the line below an answer."""

from itertools import permutations

from parley.cli.terminal.agreement import agreement_texts
from parley.cli.terminal.remark import summary_line
from parley.client import Debate
from parley.v1.critique_pb2 import Critique
from parley.v1.debate_pb2 import Contribution, DraftGroup, DraftGroups, Reply, Work


def critique(number: int, critic: str, author: str, agrees: bool | None) -> Contribution:
    work = Work(agent_id=critic, activity="critique", round=number, target_agent_id=author)
    return Contribution(work=work, reply=Reply(text="…", critique=Critique(agrees=agrees)))


def test_who_agrees_with_whom_is_what_critics_of_the_last_round_said() -> None:
    debate = Debate(
        contributions=[
            critique(1, "ada", "bo", agrees=True),
            critique(2, "bo", "ada", agrees=True),
            critique(2, "cy", "ada", agrees=True),
            critique(2, "ada", "bo", agrees=False),
            critique(2, "ada", "cy", agrees=None),
        ],
        calls=5,
    )
    assert list(agreement_texts(debate)) == ["in round 2 bo and cy agreed with ada"]
    assert summary_line(debate).startswith("in round 2 bo and cy agreed with ada · 5 calls")


def test_all_and_none_are_said_in_a_word() -> None:
    pairs = list(permutations(("ada", "bo", "cy"), 2))
    for agrees, told in ((True, "every critic agreed"), (False, "no critic agreed")):
        debate = Debate(contributions=[critique(1, *pair, agrees=agrees) for pair in pairs])
        assert list(agreement_texts(debate)) == [f"in round 1 {told}"]


def test_many_are_counted() -> None:
    pairs = list(permutations("abcd", 2))
    made = [critique(1, *pair, agrees=place > 0) for place, pair in enumerate(pairs)]
    assert list(agreement_texts(Debate(contributions=made))) == ["in round 1 11 of 12 critiques agreed"]


def test_what_critics_said_stands_behind_the_first_drafts_and_nothing_where_nothing_was_said() -> None:
    drafts = DraftGroups(groups=[DraftGroup(agent_ids=["ada", "bo"])], majority=True)
    debate = Debate(first_drafts=drafts, contributions=[critique(3, "ada", "bo", agrees=False)])
    assert list(agreement_texts(debate)) == [
        "2 of 2 first drafts agree (ada, bo)",
        "in round 3 no critic agreed",
    ]
    assert not list(agreement_texts(Debate(contributions=[critique(1, "ada", "bo", agrees=None)])))
