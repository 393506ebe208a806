"""A vote in words."""

from collections.abc import Iterator

from parley.v1.voting_pb2 import Vote, VoteStrength

__all__ = ["strength_word", "vote_lines"]


def strength_word(vote: Vote) -> str:
    """Return how clear a vote was, such as `strong`."""
    return VoteStrength.Name(vote.strength).removeprefix("VOTE_STRENGTH_").lower()


def vote_lines(vote: Vote, *, without_winner: str, with_shares: bool) -> Iterator[str]:
    """Yield how a vote went, line by line, by the ids of agents.

    Args:
        without_winner: What follows where nobody has won and nobody is tied.
        with_shares: Whether the options say their share beside their votes: the two differ where votes are weighted.
    """
    strength = strength_word(vote)
    if vote.winner_agent_id:
        yield f"{vote.winner_agent_id} has won ({strength})"
    elif vote.tied_agent_ids:
        yield f"nobody has won ({strength}): {', '.join(vote.tied_agent_ids)} are tied; the surest voters decided"
    else:
        yield f"nobody has won ({strength}); {without_winner}"
    if vote.shared_family:
        yield f"all voters share one model family ({vote.shared_family}): they are one voice"
    for option in vote.options:
        share = f" votes, {option.share:.0%} of what counts" if with_shares else ""
        yield f"{option.agent_id}: {option.votes} of {len(vote.ballots)}{share}"
    for ballot in vote.ballots:
        weight = "" if ballot.weight == 1 else f", weight {ballot.weight:.2f}"
        yield f"{ballot.agent_id} chose {ballot.choice_agent_id}{weight}: {ballot.reason}"
    if vote.abstained_agent_ids:
        yield f"abstained: {', '.join(vote.abstained_agent_ids)}"
    if vote.left_out_agent_ids:
        yield f"not waited for: {', '.join(vote.left_out_agent_ids)}"
