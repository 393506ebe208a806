"""The selection of a team: most seats go to the best candidates, and a share to less known ones."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from parley.ratings.elo import START, expectation
from parley.ratings.table import Rating, Table

EXPLORATION_SHARE: Final = 0.25
"""The default share of the seats for candidates that are drawn at random."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate, and whether it was chosen.

    Attributes:
        explored: Whether it has its seat because it was drawn.
        rating: The expected share of points of its overall rating against a start rating, 0 to 1.
        calibration: How well its confidence matches its record, 0 to 1.
        domain: The expected share of points of its rating in the domain against a start rating, 0 to 1.
        draw: Its value in the random draw, 0 to 1.
        reason: Why it was chosen or not, in one line.
    """

    agent_id: str
    chosen: bool
    explored: bool
    rating: float
    calibration: float
    domain: float
    draw: float
    reason: str

    @property
    def score(self) -> float:
        """The mean of rating, calibration and record in the domain."""
        return (self.rating + self.calibration + self.domain) / 3


def select_team(
    table: Table,
    debate_id: str,
    agent_ids: Sequence[str],
    size: int,
    domain: str,
    exploration_share: float = EXPLORATION_SHARE,
) -> list[Candidate]:
    """Return all candidates, chosen ones first, best score first; the order of `agent_ids` does not matter.

    Of `size` seats, a share goes to those of the others that are drawn to be worth most: each is drawn from the Beta
    distribution of its points and answers so far (Thompson, "On the likelihood that one unknown probability exceeds another",
    Biometrika 25, 1933), so that those of whom little is known are drawn high at times. Each agent's dice are its own, seeded
    by debate and agent.
    """
    ranked = sorted((_candidate(table, debate_id, each, domain) for each in agent_ids), key=_rank)
    drawn = min(int(size * exploration_share + 0.5), size)
    best, others = ranked[: size - drawn], ranked[size - drawn :]
    lucky = {each.agent_id for each in sorted(others, key=lambda each: (-each.draw, each.agent_id))[:drawn]}
    told = [
        _with_decision(table, each, chosen=each in best, explored=each.agent_id in lucky) for each in ranked
    ]
    return sorted(told, key=lambda each: (not each.chosen, _rank(each)))


def _candidate(table: Table, debate_id: str, agent_id: str, domain: str) -> Candidate:
    overall, own = table.rating(agent_id), table.rating(agent_id, domain)
    known = own if own.matches else overall
    return Candidate(
        agent_id=agent_id,
        chosen=False,
        explored=False,
        rating=expectation(overall.elo, START),
        calibration=overall.record.calibration,
        domain=expectation(own.elo, START),
        draw=_draw(debate_id, known),
        reason="",
    )


def _draw(debate_id: str, rating: Rating) -> float:
    """Draw an agent's value from its wins, losses, and right and wrong answers."""
    seed = hashlib.blake2b(f"{debate_id}/{rating.agent_id}".encode(), digest_size=16).digest()
    dice = random.Random(seed)  # noqa: S311 - dice, not secrets
    won = rating.wins + rating.draws / 2 + rating.record.right
    lost = rating.losses + rating.draws / 2 + rating.record.wrong
    return dice.betavariate(1 + won, 1 + lost)


def _with_decision(table: Table, candidate: Candidate, *, chosen: bool, explored: bool) -> Candidate:
    matches = table.rating(candidate.agent_id).matches
    known = f"{matches} {'match' if matches == 1 else 'matches'} known"
    scores = (
        f"score {candidate.score:.2f} (rating {candidate.rating:.2f}, calibration {candidate.calibration:.2f},"
        f" domain {candidate.domain:.2f}), {known}"
    )
    if chosen:
        why = f"among the best: {scores}"
    elif explored:
        why = f"drawn to learn of it: draw {candidate.draw:.2f}, {scores}"
    else:
        why = f"neither among the best nor drawn: draw {candidate.draw:.2f}, {scores}"
    return Candidate(
        agent_id=candidate.agent_id,
        chosen=chosen or explored,
        explored=explored,
        rating=candidate.rating,
        calibration=candidate.calibration,
        domain=candidate.domain,
        draw=candidate.draw,
        reason=why,
    )


def _rank(candidate: Candidate) -> tuple[float, str]:
    return -candidate.score, candidate.agent_id
