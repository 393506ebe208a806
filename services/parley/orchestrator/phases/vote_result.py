"""What ballots come to, as it is recorded: of a vote, and of the decision that is made from ballots."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from parley.orchestrator.model import voting
from parley.orchestrator.phases.vote_terms import VoteTerms
from parley.v1.voting_pb2 import (
    VOTE_STRENGTH_UNSPECIFIED,
    VOTE_WEIGHTS_UNSPECIFIED,
    Ballot,
    ChoiceGroup,
    Vote,
    VoteOption,
    VoteStrength,
)

__all__ = ["Electorate", "counted", "surest"]


@dataclass(frozen=True, slots=True)
class Electorate:
    """Who votes on what, on which terms.

    Attributes:
        voters: Everybody that may cast a ballot.
        options: The agents whose work is voted on.
    """

    voters: Sequence[str]
    options: Sequence[str]
    terms: VoteTerms

    def result(
        self, ballots: Sequence[Ballot], groups: Sequence[voting.Group], left_out: Sequence[str] = ()
    ) -> Vote:
        """Return what ballots come to; `left_out`: voters that were not waited for."""
        found = self._count(ballots, groups)
        strength = voting.discount_strength(found.strength) if self.terms.one_voice else found.strength
        cast = {each.agent_id for each in ballots}
        vote = Vote(
            winner_agent_id=found.winner or "",
            strength=_strength(strength),
            options=self._options(ballots, found),
            ballots=ballots,
            abstained_agent_ids=sorted(set(self.voters).difference(cast, left_out)),
            tied_agent_ids=found.leaders if len(found.leaders) > 1 else (),
            left_out_agent_ids=left_out,
        )
        if self.terms.are_told:
            vote.MergeFrom(self._told_terms(ballots, groups, found))
        return vote

    def _count(
        self, ballots: Sequence[Ballot], groups: Sequence[voting.Group], *, by_weight: bool = True
    ) -> voting.VoteCount:
        return voting.count_votes(
            counted(ballots, by_weight=by_weight),
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

    def _told_terms(
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
            strength_by_ballots=_strength(by_ballots) if is_weighted else VOTE_STRENGTH_UNSPECIFIED,
            shared_family=terms.one_voice,
            undiscounted_strength=_strength(found.strength) if terms.one_voice else VOTE_STRENGTH_UNSPECIFIED,
        )


def counted(ballots: Sequence[Ballot], *, by_weight: bool = True) -> list[voting.Ballot]:
    """Return ballots as they are counted."""
    return [
        voting.Ballot(each.agent_id, each.choice_agent_id, each.weight if by_weight else 1.0)
        for each in ballots
    ]


def surest(vote: Vote) -> str:
    """Return whose proposal stands: the winner's, or else of those that are first the one whose voters are the surest."""
    if vote.winner_agent_id:
        return vote.winner_agent_id
    groups = [tuple(each.agent_ids) for each in vote.groups]
    found = voting.count_votes(counted(vote.ballots), len(vote.ballots), groups=groups)
    return voting.most_confident_option(
        found, [(each.choice_agent_id, each.confidence) for each in vote.ballots]
    )


def _strength(strength: voting.Strength) -> VoteStrength.ValueType:
    return VoteStrength.Value(f"VOTE_STRENGTH_{strength.name}")
