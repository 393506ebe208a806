"""How votes are counted: the terms that settings say, and whose proposal stands."""

import pytest

from parley.orchestrator.model.voting import Rule
from parley.orchestrator.phases.count_votes import (
    VoteTerms,
    check_self_votes,
    count_votes_for,
    describe_result,
    describe_tie_break,
    most_confident_choice,
    tied_option,
    vote_lines,
    vote_terms,
)
from parley.runtime.agent_names import Names
from parley.runtime.contract_settings import check_settings
from parley.runtime.validation import Violations
from parley.v1.agent_pb2 import Agent
from parley.v1.voting_pb2 import (
    VOTE_BALLOTS_FIRST_DRAFTS,
    VOTE_BALLOTS_LAST_VOTE,
    VOTE_WEIGHTS_ELO,
    VOTE_WEIGHTS_RATINGS,
    VOTE_WEIGHTS_UNSPECIFIED,
    VOTING_METHOD_SUPERMAJORITY,
    VOTING_METHOD_WEIGHTED,
    Ballot,
    ChoiceGroup,
    Vote,
    VoteBallots,
    VoteOption,
    VotingSettings,
)
from tests.support.catching import list_violations


def test_settings_that_say_nothing_are_a_majority_of_weight_that_ends_early_and_groups_choices() -> None:
    expected = VoteTerms(method=VOTING_METHOD_WEIGHTED, weighted_by=VOTE_WEIGHTS_RATINGS)
    assert vote_terms(VotingSettings()) == expected
    assert expected.rule is Rule.MAJORITY
    terms = vote_terms(VotingSettings(), key="round/7/vote", round_number=7, one_voice="meta")
    assert (terms.key, terms.round, terms.shared_family) == ("round/7/vote", 7, "meta")


def test_a_vote_that_the_judges_ballot_is_added_to_does_not_end_early() -> None:
    def ends_early(ballots: VoteBallots.ValueType, *, judge_ballot: bool) -> bool:
        return vote_terms(VotingSettings(judge_ballot=judge_ballot), ballots=ballots).early_end

    assert not ends_early(VOTE_BALLOTS_LAST_VOTE, judge_ballot=True)
    assert ends_early(VOTE_BALLOTS_LAST_VOTE, judge_ballot=False)
    assert ends_early(VOTE_BALLOTS_FIRST_DRAFTS, judge_ballot=True), "this vote decides nothing"


def test_what_settings_say_holds() -> None:
    terms = vote_terms(
        VotingSettings(
            method=VOTING_METHOD_SUPERMAJORITY, allow_self_votes=False, early_end=False, group_choices=False
        )
    )
    assert terms.rule is Rule.SUPERMAJORITY
    assert (terms.self_votes, terms.early_end, terms.group_choices) == (False, False, False)
    assert terms.weighted_by == VOTE_WEIGHTS_UNSPECIFIED


@pytest.mark.parametrize("said", [VOTE_WEIGHTS_UNSPECIFIED, VOTE_WEIGHTS_ELO])
def test_a_weighted_vote_weighs_by_the_ratings_unless_it_says_by_what(said: int) -> None:
    settings = VotingSettings(method=VOTING_METHOD_WEIGHTED, weighted_by=said)  # type: ignore[arg-type]
    terms = vote_terms(settings)
    assert terms.rule is Rule.MAJORITY
    assert terms.weighted_by == (said or VOTE_WEIGHTS_RATINGS)


def test_settings_that_no_vote_can_be_held_by_are_refused_together() -> None:
    violations = Violations()
    settings = VotingSettings(method=9, weighted_by=9, ballots=9, allow_self_votes=False)  # type: ignore[arg-type]
    check_settings(violations, "spec.voting", settings)
    check_self_votes(violations, "spec.voting", settings, 2)
    assert [each.field for each in list_violations(violations)] == [
        "spec.voting.method",
        "spec.voting.weighted_by",
        "spec.voting.ballots",
        "spec.voting.allow_self_votes",
    ]


def test_three_agents_may_vote_without_their_own_proposals() -> None:
    violations = Violations()
    check_self_votes(violations, "spec.voting", VotingSettings(allow_self_votes=False), 3)
    check_self_votes(violations, "spec.voting", VotingSettings(allow_self_votes=True), 2)
    violations.refuse()


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
    assert most_confident_choice(vote("aabc", winner="b")) == "b"


def test_the_largest_group_stands_also_where_each_of_its_proposals_has_one_vote() -> None:
    assert most_confident_choice(vote("abcde", groups=("de",), sure="a")) == "d"


def test_of_tied_proposals_that_of_the_surest_voters_stands() -> None:
    assert most_confident_choice(vote("abc", sure="b")) == "b"
    assert most_confident_choice(vote("abcd", groups=("ab", "cd"), sure="d")) == "c"
    assert most_confident_choice(vote("abc")) == "a"


def test_why_one_of_tied_proposals_stands_is_told_as_it_was() -> None:
    tied = vote("abc", groups=("bc",), sure="b")
    tied.tied_agent_ids.extend("ab")
    assert describe_tie_break(tied) == "its voters were the surest"
    for each in tied.ballots:
        each.confidence = 0.4 if each.choice_agent_id == "a" else 0.2
    assert describe_tie_break(tied).startswith("it comes first by name")


def test_options_that_counted_as_one_are_told_as_one() -> None:
    won = vote("abcc", groups=("ab",), winner="a")
    names = Names([Agent(id=each, name=each.upper()) for each in "abcd"], Agent(id="judge"))
    told = describe_result(won, names, "a")
    assert told.startswith("Two of four votes went to the proposal of A or B, which says the same (")
    assert count_votes_for(won, "b") == "two of four votes"
    won.groups[0].votes, won.groups[0].share = 2, 0.5
    lines = list(vote_lines(won, names, with_shares=True))
    assert lines[0] == "A and B, which say the same and count as one: 2 of 4 votes, 50% of what counts"
    assert describe_result(vote("aa", groups=("ab",), winner="a"), names, "a").startswith(
        "Both votes went to the proposal of A ("
    )


@pytest.mark.parametrize(
    ("chosen", "option"), [("ada", "ada"), ("bo", "ada"), ("cy", "cy"), ("dee", ""), ("", "")]
)
def test_a_judge_breaks_a_tie_for_an_option_or_for_one_that_was_counted_as_one_with_it(
    chosen: str, option: str
) -> None:
    vote = Vote(tied_agent_ids=["ada", "cy"], groups=[ChoiceGroup(agent_ids=["ada", "bo"])])
    assert tied_option(vote, chosen) == option
    assert not tied_option(Vote(winner_agent_id="ada"), chosen), "nothing is tied"
