"""On what terms a vote is held, and how a format's settings say so."""

from dataclasses import dataclass
from typing import Final

from parley.orchestrator.model.voting import Rule
from parley.runtime.contract_settings import with_defaults
from parley.runtime.validation import Violations
from parley.v1.voting_pb2 import (
    VOTE_BALLOTS_FIRST_DRAFTS,
    VOTE_BALLOTS_LAST_VOTE,
    VOTE_WEIGHTS_RATINGS,
    VOTE_WEIGHTS_UNSPECIFIED,
    VOTING_METHOD_MAJORITY,
    VOTING_METHOD_SUPERMAJORITY,
    VOTING_METHOD_UNANIMOUS,
    VOTING_METHOD_WEIGHTED,
    VoteBallots,
    VoteWeights,
    VotingMethod,
    VotingSettings,
)

__all__ = [
    "PANEL_TERMS",
    "VoteTerms",
    "check_self_votes",
    "vote_terms",
]

_RULES: Final = {
    VOTING_METHOD_MAJORITY: Rule.MAJORITY,
    VOTING_METHOD_SUPERMAJORITY: Rule.SUPERMAJORITY,
    VOTING_METHOD_UNANIMOUS: Rule.UNANIMOUS,
    VOTING_METHOD_WEIGHTED: Rule.MAJORITY,
}


@dataclass(frozen=True, slots=True)
class VoteTerms:
    """On what terms a vote is held.

    Attributes:
        weighted_by: What ballots weigh by; unspecified: each counts 1.
        self_votes: Whether an agent may vote for its own proposal.
        early_end: Whether it ends as soon as neither winner nor strength can change.
        group_choices: Whether proposals that say the same count as one.
        has_open_critiques: Whether critiques of severity 7 or more are open: a vote without majority is contested then.
        one_voice: The model family that all voters share, as `model_families.one_voice` finds it; empty for none.
        key: What the keys of its steps begin with; one for each vote of a debate.
        round: The round that it belongs to; 0: none.
        are_told: Whether the result says on what terms it came about. Results of panels do not: theirs are always the same.
    """

    method: VotingMethod.ValueType = VOTING_METHOD_MAJORITY
    weighted_by: VoteWeights.ValueType = VOTE_WEIGHTS_UNSPECIFIED
    self_votes: bool = True
    early_end: bool = True
    group_choices: bool = True
    has_open_critiques: bool = False
    one_voice: str = ""
    key: str = "vote"
    round: int = 0
    are_told: bool = True

    @property
    def rule(self) -> Rule:
        """How much an option must have to win."""
        return _RULES[self.method]


PANEL_TERMS: Final = VoteTerms(group_choices=False, are_told=False)
"""A plain majority, as panels have held it from the first version on."""


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
        one_voice=one_voice,
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
