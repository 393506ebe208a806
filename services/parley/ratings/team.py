"""The selection of a team: most seats go to the best candidates, and a share to less known ones."""

import hashlib
import random
from collections.abc import Sequence
from typing import Final

from parley.ratings.elo import START, expectation
from parley.ratings.table import Rating, Table
from parley.v1.ratings_pb2 import Candidate

EXPLORATION_SHARE: Final = 0.25
"""The default share of the seats for candidates that are drawn at random."""


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
    lucky = sorted(others, key=lambda each: (-each.draw, each.agent_id))[:drawn]
    for each in best:
        each.chosen = True
    for each in lucky:
        each.chosen = each.explored = True
    for each in ranked:
        each.reason = _explain(each, table.rating(each.agent_id).matches)
    return sorted(ranked, key=lambda each: (not each.chosen, _rank(each)))


def _candidate(table: Table, debate_id: str, agent_id: str, domain: str) -> Candidate:
    """Return a candidate that is not chosen yet."""
    overall, own = table.rating(agent_id), table.rating(agent_id, domain)
    scores = (expectation(overall.elo, START), overall.record.calibration, expectation(own.elo, START))
    return Candidate(
        agent_id=agent_id,
        score=sum(scores) / len(scores),
        rating_score=scores[0],
        calibration_score=scores[1],
        domain_score=scores[2],
        draw=_draw(debate_id, own if own.matches else overall),
    )


def _draw(debate_id: str, rating: Rating) -> float:
    """Draw an agent's value from its wins, losses, and right and wrong answers."""
    seed = hashlib.blake2b(f"{debate_id}/{rating.agent_id}".encode(), digest_size=16).digest()
    dice = random.Random(seed)  # noqa: S311 - dice, not secrets
    won = rating.wins + rating.draws / 2 + rating.record.right
    lost = rating.losses + rating.draws / 2 + rating.record.wrong
    return dice.betavariate(1 + won, 1 + lost)


def _explain(candidate: Candidate, matches: int) -> str:
    scores = (
        f"score {candidate.score:.2f} (rating {candidate.rating_score:.2f}, calibration"
        f" {candidate.calibration_score:.2f}, domain {candidate.domain_score:.2f}), {matches}"
        f" {'match' if matches == 1 else 'matches'} known"
    )
    if candidate.explored:
        return f"drawn to learn of it: draw {candidate.draw:.2f}, {scores}"
    if candidate.chosen:
        return f"among the best: {scores}"
    return f"neither among the best nor drawn: draw {candidate.draw:.2f}, {scores}"


def _rank(candidate: Candidate) -> tuple[float, str]:
    return -candidate.score, candidate.agent_id
