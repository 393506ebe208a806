"""How votes are counted: the terms that a format's settings say, the result that is recorded, and the result in words."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from parley.orchestrator.model import voting
from parley.orchestrator.model.effect_text import count_of
from parley.orchestrator.model.voting import Rule
from parley.runtime.agent_names import Names
from parley.runtime.contract_settings import with_defaults
from parley.runtime.validation import Violations
from parley.v1.voting_pb2 import (
    VOTE_BALLOTS_FIRST_DRAFTS,
    VOTE_BALLOTS_LAST_VOTE,
    VOTE_STRENGTH_UNSPECIFIED,
    VOTE_WEIGHTS_RATINGS,
    VOTE_WEIGHTS_UNSPECIFIED,
    VOTING_METHOD_MAJORITY,
    VOTING_METHOD_SUPERMAJORITY,
    VOTING_METHOD_UNANIMOUS,
    VOTING_METHOD_WEIGHTED,
    Ballot,
    ChoiceGroup,
    Vote,
    VoteBallots,
    VoteOption,
    VoteStrength,
    VoteWeights,
    VotingMethod,
    VotingSettings,
)

_RULES: Final = {
    VOTING_METHOD_MAJORITY: Rule.MAJORITY,
    VOTING_METHOD_SUPERMAJORITY: Rule.SUPERMAJORITY,
    VOTING_METHOD_UNANIMOUS: Rule.UNANIMOUS,
    VOTING_METHOD_WEIGHTED: Rule.MAJORITY,
}


class VoteTerms(Struct, frozen=True):
    """On what terms a vote is taken.

    Attributes:
        weighted_by: What ballots weigh by; unspecified: each counts 1.
        self_votes: Whether an agent may vote for its own proposal.
        early_end: Whether it ends as soon as neither winner nor strength can change.
        group_choices: Whether proposals that say the same count as one.
        has_open_critiques: Whether critiques of severity 7 or more are open: a vote without majority is contested then.
        shared_family: The model family that all voters share, as `model_families.shared_family` finds it; empty for none.
        key: What the keys of its steps begin with; one for each vote of a debate.
        round: The round that it belongs to; 0: none.
        records_terms: Whether the result says on what terms it came about. Results of panels do not: theirs are always the same.
    """

    method: VotingMethod.ValueType = VOTING_METHOD_MAJORITY
    weighted_by: VoteWeights.ValueType = VOTE_WEIGHTS_UNSPECIFIED
    self_votes: bool = True
    early_end: bool = True
    group_choices: bool = True
    has_open_critiques: bool = False
    shared_family: str = ""
    key: str = "vote"
    round: int = 0
    records_terms: bool = True

    @property
    def rule(self) -> Rule:
        """How much an option must have to win."""
        return _RULES[self.method]


PANEL_TERMS: Final = VoteTerms(group_choices=False, records_terms=False)
"""A plain majority, as panels take it."""


def vote_terms(
    settings: VotingSettings,
    *,
    ballots: VoteBallots.ValueType = VOTE_BALLOTS_FIRST_DRAFTS,
    has_open_critiques: bool = False,
    one_voice: str = "",
    key: str = "vote",
    round_number: int = 0,
) -> VoteTerms:
    """Return the terms that checked settings come to, in a debate that these `ballots` decide."""
    said = with_defaults(settings)
    weighted_by = said.weighted_by
    if said.method == VOTING_METHOD_WEIGHTED and weighted_by == VOTE_WEIGHTS_UNSPECIFIED:
        weighted_by = VOTE_WEIGHTS_RATINGS
    return VoteTerms(
        method=said.method,
        weighted_by=weighted_by,
        self_votes=said.allow_self_votes,
        # The judge's ballot comes after the vote, so that nothing is decided before.
        early_end=said.early_end and not (said.judge_ballot and ballots == VOTE_BALLOTS_LAST_VOTE),
        group_choices=said.group_choices,
        has_open_critiques=has_open_critiques,
        shared_family=one_voice,
        key=key,
        round=round_number,
    )


def check_self_votes(violations: Violations, path: str, settings: VotingSettings, voters: int) -> None:
    """Note settings below `path` that forbid votes for one's own proposal, if too few agents vote."""
    forbids_self_votes = settings.HasField("allow_self_votes") and not settings.allow_self_votes
    violations.check(
        that=voters > 2 or not forbids_self_votes,
        field=f"{path}.allow_self_votes",
        otherwise="without votes for one's own proposal, at least three agents must vote",
    )


class Electorate(Struct, frozen=True):
    """Who votes on what, on which terms.

    Attributes:
        voters: Everybody that may cast a ballot.
        options: The agents whose work is voted on.
    """

    voters: Sequence[str]
    options: Sequence[str]
    terms: VoteTerms

    def create_result(
        self, ballots: Sequence[Ballot], groups: Sequence[voting.Group], left_out: Sequence[str] = ()
    ) -> Vote:
        """Return what ballots come to; `left_out`: voters that were not waited for."""
        found = self._count(ballots, groups)
        strength = voting.discount_strength(found.strength) if self.terms.shared_family else found.strength
        cast = {each.agent_id for each in ballots}
        vote = Vote(
            winner_agent_id=found.winner or "",
            strength=strength,
            options=self._options(ballots, found),
            ballots=ballots,
            abstained_agent_ids=sorted(set(self.voters).difference(cast, left_out)),
            tied_agent_ids=found.leaders if len(found.leaders) > 1 else (),
            left_out_agent_ids=left_out,
        )
        if self.terms.records_terms:
            vote.MergeFrom(self._describe_terms(ballots, groups, found))
        return vote

    def _count(
        self, ballots: Sequence[Ballot], groups: Sequence[voting.Group], *, by_weight: bool = True
    ) -> voting.VoteCount:
        return voting.count_votes(
            to_voting_ballots(ballots, by_weight=by_weight),
            len(self.voters),
            self.terms.rule,
            has_open_critiques=self.terms.has_open_critiques,
            groups=groups,
        )

    def _options(self, ballots: Sequence[Ballot], found: voting.VoteCount) -> list[VoteOption]:
        votes = Counter(each.choice_agent_id for each in ballots)
        return [
            VoteOption(agent_id=agent, votes=votes[agent], share=float(found.shares.get(agent, 0)))
            for agent in sorted(self.options, key=lambda agent: (-found.shares.get(agent, 0), agent))
        ]

    def _describe_terms(
        self, ballots: Sequence[Ballot], groups: Sequence[voting.Group], found: voting.VoteCount
    ) -> Vote:
        """Return what a result says of the terms that it came about on."""
        terms, votes = self.terms, Counter(each.choice_agent_id for each in ballots)
        joined = [
            ChoiceGroup(
                agent_ids=group,
                votes=sum(votes[agent] for agent in group),
                share=float(found.group_shares.get(group, 0)),
            )
            for group in groups
            if len(group) > 1
        ]
        is_weighted = terms.weighted_by != VOTE_WEIGHTS_UNSPECIFIED
        by_ballots = self._count(ballots, groups, by_weight=False).strength
        return Vote(
            method=terms.method,
            weighted_by=terms.weighted_by,
            quorum=voting.quorum(len(self.voters)),
            self_votes_allowed=terms.self_votes,
            groups=sorted(joined, key=lambda each: (-each.share, each.agent_ids[0])),
            strength_by_ballots=by_ballots if is_weighted else VOTE_STRENGTH_UNSPECIFIED,
            shared_family=terms.shared_family,
            undiscounted_strength=found.strength if terms.shared_family else VOTE_STRENGTH_UNSPECIFIED,
        )


def to_voting_ballots(ballots: Sequence[Ballot], *, by_weight: bool = True) -> list[voting.Ballot]:
    """Return ballots as they are counted."""
    return [
        voting.Ballot(each.agent_id, each.choice_agent_id, each.weight if by_weight else 1.0)
        for each in ballots
    ]


def most_confident_choice(vote: Vote) -> str:
    """Return whose proposal stands: the winner's, or else of those that are first the one whose voters are the surest."""
    if vote.winner_agent_id:
        return vote.winner_agent_id
    groups = [tuple(each.agent_ids) for each in vote.groups]
    found = voting.count_votes(to_voting_ballots(vote.ballots), len(vote.ballots), groups=groups)
    return voting.most_confident_option(
        found, [(each.choice_agent_id, each.confidence) for each in vote.ballots]
    )


def tied_option(vote: Vote, chosen: str) -> str:
    """Return the tied option that a choice is for, by itself or as one with it; empty for none."""
    alike = list_alike(vote, chosen)
    return next((each for each in vote.tied_agent_ids if each in alike), "")


def list_alike(vote: Vote, agent: str) -> Sequence[str]:
    """Return the agents whose proposals count as one with this agent's, itself among them."""
    return next((each.agent_ids for each in vote.groups if agent in each.agent_ids), [agent])


def strength_name(vote: Vote) -> str:
    """Return how clear a vote was, such as `strong`."""
    return name_of_strength(vote.strength)


def name_of_strength(strength: VoteStrength.ValueType) -> str:
    """Return the name of a strength, such as `strong`."""
    return VoteStrength.Name(strength).removeprefix("VOTE_STRENGTH_").lower()


def describe_result(vote: Vote, names: Names, standing: str) -> str:
    """Return who voted for what stands, and how clear that was; `standing`: the agent whose proposal stands."""
    votes = count_votes_for(vote, standing)
    others = [each for each in list_alike(vote, standing) if each != standing and _count(vote, [each])]
    verb = "say" if len(others) > 1 else "says"
    same = f" or {names.list_of(others)}, which {verb} the same" if others else ""
    for_it = f"{votes[:1].upper()}{votes[1:]} went to the proposal of {names.of(standing)}{same}"
    if vote.winner_agent_id:
        return f"{for_it} ({strength_name(vote)})."
    if vote.tied_agent_ids:
        return f"The vote is tied ({strength_name(vote)}) between {names.list_of(vote.tied_agent_ids)}: the proposal of {names.of(standing)} stands, since {describe_tie_break(vote)}."
    return f"No proposal has enough votes ({strength_name(vote)}). {for_it}, and it stands."


def count_votes_for(vote: Vote, standing: str) -> str:
    """Return in words how many voted for what stands, or for what says the same, such as `two of three votes`."""
    return count_of(_count(vote, list_alike(vote, standing)), len(vote.ballots), "vote")


def _count(vote: Vote, options: Sequence[str]) -> int:
    return sum(each.choice_agent_id in options for each in vote.ballots)


def describe_tie_break(vote: Vote) -> str:
    """Return why one of the tied proposals stands."""
    sure = {
        tied: sum(each.confidence for each in vote.ballots if each.choice_agent_id in list_alike(vote, tied))
        for tied in vote.tied_agent_ids
    }
    most = max(sure.values())
    if sum(each == most for each in sure.values()) == 1:
        return "its voters were the surest"
    return "it comes first by name, and the voters of others were as sure"


def describe_voters_word(vote: Vote, standing: str) -> str:
    """Return how sure those who voted for what stands are, by their own word; empty if they do not say."""
    stated = [
        each.confidence for each in vote.ballots if each.choice_agent_id == standing and each.confidence
    ]
    if not stated:
        return ""
    least, most = round(100 * min(stated)), round(100 * max(stated))
    sure = f"{least} %" if least == most else f"{least} to {most} %"
    return f"Those who voted for it are {sure} sure, by their own word."


def describe_minority(vote: Vote, names: Names, standing: str) -> Iterator[str]:
    """Yield who voted for another proposal than the one that stands, and why."""
    for each in vote.ballots:
        if each.choice_agent_id not in list_alike(vote, standing):
            whose = (
                "its own proposal"
                if each.choice_agent_id == each.agent_id
                else f"the proposal of {names.of(each.choice_agent_id)}"
            )
            reason = f": {names.put_in(each.reason)}" if each.reason else "."
            yield f"{names.of(each.agent_id)} voted for {whose}{reason}"


def result_lines(vote: Vote, names: Names) -> Iterator[str]:
    """Yield what a vote came to, by the names of agents."""
    strength = strength_name(vote)
    if vote.winner_agent_id:
        yield f"{names.of(vote.winner_agent_id)} has won ({strength})"
    elif vote.tied_agent_ids:
        yield f"no agent has won ({strength}): {names.list_of(vote.tied_agent_ids)} are tied"
    else:
        yield f"no agent has won ({strength}): no proposal has enough votes"
    if vote.shared_family:
        yield f"all voters share one model family ({vote.shared_family}): they are one voice"


def vote_lines(vote: Vote, names: Names, *, with_shares: bool) -> Iterator[str]:
    """Yield who voted for what, line by line, by the names of agents.

    `with_shares`: whether the options say their share next to their votes: the two differ if votes are weighted.
    """
    counted = [
        (f"{names.list_of(each.agent_ids)}, which say the same and count as one", each.votes, each.share)
        for each in vote.groups
    ]
    counted += [(names.of(each.agent_id), each.votes, each.share) for each in vote.options]
    for whose, votes, share in counted:
        weighed = f" votes, {share:.0%} of what counts" if with_shares else ""
        yield f"{whose}: {votes} of {len(vote.ballots)}{weighed}"
    for ballot in vote.ballots:
        weight = "" if ballot.weight == 1 else f", weight {ballot.weight:.2f}"
        chosen = names.of(ballot.choice_agent_id)
        yield f"{names.of(ballot.agent_id)} chose {chosen}{weight}: {names.put_in(ballot.reason)}"
    if vote.abstained_agent_ids:
        yield f"abstained: {names.list_of(vote.abstained_agent_ids)}"
    if vote.left_out_agent_ids:
        yield f"not waited for: {names.list_of(vote.left_out_agent_ids)}"
