"""Counting votes: pure functions, the same for every format.

Shares are of the ballots cast, or of their weight. An abstention only makes the quorum harder to reach, and no vote is ever
invented. Options that are alike form a group, and a vote for one of them is a vote for the group.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from typing import Final

from msgspec import Struct

from parley.v1.voting_pb2 import (
    VOTE_STRENGTH_CONTESTED,
    VOTE_STRENGTH_MODERATE,
    VOTE_STRENGTH_SPLIT,
    VOTE_STRENGTH_STRONG,
    VOTE_STRENGTH_UNANIMOUS,
    VOTE_STRENGTH_WEAK,
    VoteStrength,
)

Group = tuple[str, ...]
"""Options that a vote counts as one, ordered."""


class Rule(Enum):
    """How much of the votes an option must have to win."""

    MAJORITY = "majority"
    SUPERMAJORITY = "supermajority"
    UNANIMOUS = "unanimous"


_HALF: Final = Fraction(1, 2)
_MIN_SHARES: Mapping[Rule, Fraction] = {Rule.SUPERMAJORITY: Fraction(2, 3), Rule.UNANIMOUS: Fraction(1)}
"""The share that is enough; a majority is more than half."""
_STRENGTHS = (
    (Fraction(8, 10), VOTE_STRENGTH_STRONG),
    (Fraction(6, 10), VOTE_STRENGTH_MODERATE),
    (_HALF, VOTE_STRENGTH_WEAK),
)
"""The share above which a vote is so clear."""
_ONE_STEP_WEAKER: Mapping[VoteStrength.ValueType, VoteStrength.ValueType] = {
    VOTE_STRENGTH_UNANIMOUS: VOTE_STRENGTH_STRONG,
    VOTE_STRENGTH_STRONG: VOTE_STRENGTH_MODERATE,
    VOTE_STRENGTH_MODERATE: VOTE_STRENGTH_WEAK,
}


class Ballot(Struct, frozen=True):
    """One vote. `weight` is positive."""

    voter: str
    choice: str
    weight: float = 1.0


class VoteCount(Struct, frozen=True):
    """The result of a vote.

    Attributes:
        winner: The option that has enough, with a quorum; None for none. Of a group, the option that represents it.
        leaders: The options with the largest share, ordered by name; several are tied. A group is there by one option.
        shares: Of each option that was chosen, 0 to 1.
        group_shares: Of each group with an option that was chosen, 0 to 1; an option without a group is one by itself.
    """

    winner: str | None
    strength: VoteStrength.ValueType
    leaders: tuple[str, ...]
    shares: Mapping[str, Fraction]
    group_shares: Mapping[Group, Fraction]


def quorum(voters: int) -> int:
    """Return how many of these agents must vote: half of them, rounded up, and at least two if there are two."""
    return min(voters, max(2, (voters + 1) // 2))


def group_options(
    options: Collection[str], groups: Iterable[Collection[str]], apart: Iterable[tuple[str, str]]
) -> tuple[Group, ...]:
    """Return the options in groups of those that are alike, each option in one.

    A group with both options of a pair in `apart` is dissolved into single options, since it is unknown to which of
    the two the others belong. An option in no group forms a group by itself. Names that are no option are ignored.
    Raise ValueError if an option is in two groups.
    """
    pairs = [frozenset(pair) for pair in apart]
    found: list[Group] = []
    for group in groups:
        members = tuple(sorted(set(options).intersection(group)))
        is_torn = any(pair <= set(members) for pair in pairs if len(pair) == 2)
        found += [(each,) for each in members] if is_torn else [members] if members else []
    grouped = [option for group in found for option in group]
    if len(set(grouped)) < len(grouped):
        raise ValueError("an option is in two groups")
    return tuple(sorted(found + [(option,) for option in set(options).difference(grouped)]))


def count_votes(
    ballots: Sequence[Ballot],
    voters: int,
    rule: Rule = Rule.MAJORITY,
    *,
    has_open_critiques: bool = False,
    groups: Iterable[Group] = (),
) -> VoteCount:
    """Return the result of the ballots, if there are so many voters.

    Weights are counted exactly, so that the order of the ballots never matters. A group is represented by the option with the largest share of its own, of several the first by name.

    Args:
        groups: As `group_options` makes them; an option in none forms a group by itself.

    Raise ValueError if a voter has more than one ballot, or a weight is not positive.
    """
    tally = _Tally(ballots, groups)
    largest = max(tally.groups.values(), default=Fraction(0))
    first = [group for group, weight in tally.groups.items() if weight == largest]
    share = largest / tally.cast if tally.cast else Fraction(0)
    leaders = tuple(sorted(tally.leading_option(group) for group in first))
    has_won = len(leaders) == 1 and len(ballots) >= quorum(voters) and _is_enough(share, rule)
    return VoteCount(
        winner=leaders[0] if has_won else None,
        strength=strength_of(share, has_open_critiques=has_open_critiques),
        leaders=leaders,
        shares={option: weight / tally.cast for option, weight in tally.options.items()},
        group_shares={group: weight / tally.cast for group, weight in tally.groups.items()},
    )


def most_confident_option(found: VoteCount, confidences: Iterable[tuple[str, float]]) -> str:
    """Return the winner, or else the leader whose voters are the surest.

    Of as sure ones it is the first by name. The voters of a group are those of all its options. There must be a leader.

    Args:
        found: The result of the ballots.
        confidences: Of each ballot the choice, and how sure the voter is, 0 to 1.
    """
    if found.winner is not None:
        return found.winner
    leading = {leader: group for group in found.group_shares for leader in found.leaders if leader in group}
    sure = dict.fromkeys(found.leaders, 0.0)
    for choice, confidence in confidences:
        for leader, group in leading.items():
            if choice in group:
                sure[leader] += confidence
    return min(found.leaders, key=lambda leader: (-sure[leader], leader))


def discount_strength(strength: VoteStrength.ValueType) -> VoteStrength.ValueType:
    """Return how clear a vote is whose voters share one model family: one step weaker; a weak vote stays weak.

    Models of one family make the same mistakes, so that their agreement shows less than that of different ones.
    """
    return _ONE_STEP_WEAKER.get(strength, strength)


def is_decided(
    ballots: Sequence[Ballot],
    missing: Mapping[str, float],
    options: Collection[str],
    voters: int,
    rule: Rule = Rule.MAJORITY,
    *,
    has_open_critiques: bool = False,
    groups: Iterable[Group] = (),
    self_votes: bool = True,
) -> bool:
    """Return whether neither winner nor strength can change, whatever those `missing`, with their weights, still do.

    Each may choose any option, or abstain; its own only with `self_votes`. If no option has won, a single
    leader must stay in front too, since its proposal may replace the winner's. A group's share is largest if all choose it
    and no other agent votes, and smallest if all choose another.
    """
    if not missing:
        return True
    joined = _with_single_groups(groups, options)
    now = count_votes(ballots, voters, rule, has_open_critiques=has_open_critiques, groups=joined)
    if len(ballots) < quorum(voters) <= len(ballots) + len(missing) or len(now.leaders) != 1:
        return False
    prospects = _Prospects(_Tally(ballots, joined), missing, options, self_votes=self_votes)
    leader = next(group for group in joined if now.leaders[0] in group)
    least, most = prospects.min_share(leader), prospects.max_share(leader)
    if not prospects.stays_leading(now.leaders[0], leader):
        return False
    if now.strength in (VOTE_STRENGTH_SPLIT, VOTE_STRENGTH_CONTESTED):
        others = [group for group in joined if group != leader]
        return all(prospects.max_share(group) <= _HALF for group in joined) and all(
            prospects.stays_behind(group, leader) for group in others
        )
    reaches_quorum = len(ballots) >= quorum(voters)
    return strength_of(least) == strength_of(most) and (
        not reaches_quorum or _is_enough(least, rule) == _is_enough(most, rule)
    )


class _Tally:
    """The weights of options and of groups, in order of their names."""

    def __init__(self, ballots: Sequence[Ballot], groups: Iterable[Group]) -> None:
        _check(ballots)
        weights: dict[str, Fraction] = {}
        for ballot in ballots:
            weights[ballot.choice] = weights.get(ballot.choice, Fraction(0)) + Fraction(ballot.weight)
        self.options = dict(sorted(weights.items()))
        self.cast = sum(weights.values(), Fraction(0))
        joined = _with_single_groups(groups, self.options)
        self.groups = {
            group: sum((weights.get(option, Fraction(0)) for option in group), Fraction(0))
            for group in joined
            if any(option in weights for option in group)
        }

    def weight_of(self, option: str) -> Fraction:
        return self.options.get(option, Fraction(0))

    def leading_option(self, group: Group) -> str:
        return min(group, key=lambda option: (-self.weight_of(option), option))


class _Prospects:
    """How the missing voters can still change a tally."""

    def __init__(
        self, tally: _Tally, missing: Mapping[str, float], options: Collection[str], *, self_votes: bool
    ) -> None:
        self._tally = tally
        self._options = options
        self._missing = {voter: Fraction(weight) for voter, weight in missing.items()}
        self._self_votes = self_votes

    def max_share(self, group: Group) -> Fraction:
        """Return the largest share that a group can reach."""
        gained = self._possible_weight(group)
        return self._share(self._current_weight(group) + gained, gained)

    def min_share(self, group: Group) -> Fraction:
        """Return the smallest share that a group can reach: each voter who can chooses another option."""
        against = self._possible_weight(tuple(option for option in self._options if option not in group))
        return self._share(self._current_weight(group), against)

    def stays_leading(self, option: str, group: Group) -> bool:
        """Return whether an option keeps representing its group."""
        return all(
            (-self._tally.weight_of(option), option)
            < (-self._tally.weight_of(other) - self._possible_weight((other,)), other)
            for other in group
            if other != option
        )

    def stays_behind(self, group: Group, leader: Group) -> bool:
        """Return whether a group cannot reach the share of the leading one."""
        return self._current_weight(group) + self._possible_weight(group) < self._current_weight(leader)

    def _current_weight(self, group: Group) -> Fraction:
        return self._tally.groups.get(group, Fraction(0))

    def _possible_weight(self, group: Group) -> Fraction:
        """Return the weight of those who may choose an option of a group."""
        may = (
            weight
            for voter, weight in self._missing.items()
            if any(self._self_votes or option != voter for option in group)
        )
        return sum(may, Fraction(0))

    def _share(self, weight: Fraction, added: Fraction) -> Fraction:
        cast = self._tally.cast + added
        return weight / cast if cast else Fraction(0)


def _with_single_groups(groups: Iterable[Group], options: Collection[str]) -> tuple[Group, ...]:
    """Return the groups, and each option that is in none of them alone."""
    joined = tuple(groups)
    grouped = {option for group in joined for option in group}
    return tuple(sorted((*joined, *((option,) for option in options if option not in grouped))))


def _check(ballots: Sequence[Ballot]) -> None:
    if len({ballot.voter for ballot in ballots}) < len(ballots):
        raise ValueError("a voter has more than one ballot")
    if any(ballot.weight <= 0 for ballot in ballots):
        raise ValueError("the weight of a ballot must be positive")


def _is_enough(share: Fraction, rule: Rule) -> bool:
    return share > _HALF if rule is Rule.MAJORITY else share >= _MIN_SHARES[rule]


def strength_of(share: Fraction, *, has_open_critiques: bool = False) -> VoteStrength.ValueType:
    """Return how clear a decision is that has this share of the votes: without a majority split, with open critiques contested."""
    if share == 1:
        return VOTE_STRENGTH_UNANIMOUS
    for above, strength in _STRENGTHS:
        if share > above:
            return strength
    return VOTE_STRENGTH_CONTESTED if has_open_critiques else VOTE_STRENGTH_SPLIT
