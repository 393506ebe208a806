"""Whose proposal stands after a vote, by what the result says of it."""

from parley.orchestrator.phases.vote_result import surest
from parley.v1.voting_pb2 import Ballot, ChoiceGroup, Vote, VoteOption


def vote(choices: str, groups: tuple[str, ...] = (), winner: str = "", sure: str = "") -> Vote:
    """A vote in which each letter is somebody's choice; those who chose `sure` are surer than the others."""
    return Vote(
        winner_agent_id=winner,
        options=[VoteOption(agent_id=each, votes=1, share=1 / len(choices)) for each in sorted(set(choices))],
        ballots=[
            Ballot(
                agent_id=f"v{place}", choice_agent_id=each, weight=1, confidence=0.9 if each in sure else 0.4
            )
            for place, each in enumerate(choices)
        ],
        groups=[ChoiceGroup(agent_ids=each) for each in groups],
    )


def test_the_winner_stands() -> None:
    assert surest(vote("aabc", winner="b")) == "b"


def test_the_largest_group_stands_also_where_each_of_its_proposals_has_one_vote() -> None:
    assert surest(vote("abcde", groups=("de",), sure="a")) == "d"


def test_of_tied_proposals_that_of_the_surest_voters_stands() -> None:
    assert surest(vote("abc", sure="b")) == "b"
    assert surest(vote("abcd", groups=("ab", "cd"), sure="d")) == "c"
    assert surest(vote("abc")) == "a"
