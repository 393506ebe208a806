"""A decision in words: what was counted, what it came to, and what the debate has changed."""

from collections.abc import Iterator, Sequence

from parley.orchestrator.phases.count_votes import strength_word, surest
from parley.v1.voting_pb2 import VOTE_BALLOTS_FIRST_DRAFTS, Decision, Vote

__all__ = ["decision_lines"]


def decision_lines(decision: Decision, last: Vote | None) -> Iterator[str]:
    """Yield what was decided, line by line, by the ids of agents. `last`: the last vote; None: too few have voted."""
    count, by_drafts = decision.count, decision.ballots == VOTE_BALLOTS_FIRST_DRAFTS
    drafts = "the first drafts, written before anyone had read another's"
    judge = f", and the choice of the judge {decision.judge_agent_id}" if decision.judge_agent_id else ""
    yield f"counted: {drafts if by_drafts else 'the ballots of the last vote'}{judge}"
    if decision.last_vote_reason:
        yield f"the first drafts were not counted: {decision.last_vote_reason}"
    yield _winner(decision, "the first draft" if by_drafts else "the proposal")
    if count.shared_family:
        yield f"all voters share one model family ({count.shared_family}): they are one voice"
    for each in decision.positions:
        first, share = _names(each.first_agent_ids), f"{each.share:.0%} of what counts"
        yield f"{each.position}: at first {first}; in the end {_names(each.last_agent_ids)}; {share}"
    yield from _ballots(decision)
    if by_drafts and last is not None:
        yield _change(decision, surest(last))
    core = decision.core_agent_id
    if decision.core_is_first_draft:
        yield f"no final proposal is known to take that position: the answer is written around the first draft of {core}"
    else:
        yield f"the answer is written around the proposal of {core}"


def _winner(decision: Decision, what: str) -> str:
    count = decision.count
    strength = strength_word(count)
    if count.winner_agent_id:
        return f"{what} of {count.winner_agent_id} has won ({strength})"
    if count.tied_agent_ids:
        return (
            f"nothing has won ({strength}): {', '.join(count.tied_agent_ids)} are tied; {_stands(decision)}"
        )
    return f"nothing has won ({strength}); {_stands(decision)}"


def _stands(decision: Decision) -> str:
    """Return what stands where nothing has won. Nobody was asked how sure of its first draft it is."""
    if decision.ballots == VOTE_BALLOTS_FIRST_DRAFTS:
        judge = "that the judge chose" if decision.judge_agent_id else "that the last vote went to most"
        return f"of those with the largest share the one stands {judge}"
    return "of those with the largest share the one whose voters are surest stands"


def _ballots(decision: Decision) -> Iterator[str]:
    """Yield the judge's choice, and what first drafts weigh; the ballots of a vote are told with it."""
    for ballot in decision.count.ballots:
        if ballot.agent_id == decision.judge_agent_id:
            reason = f": {ballot.reason}" if ballot.reason else ""
            yield f"the judge chose {_choice(decision, ballot.choice_agent_id)}, weight {ballot.weight:.2f}{reason}"
        elif decision.ballots == VOTE_BALLOTS_FIRST_DRAFTS and ballot.weight != 1:
            yield f"the draft of {ballot.agent_id} weighs {ballot.weight:.2f}"


def _choice(decision: Decision, agent: str) -> str:
    by_drafts = decision.ballots == VOTE_BALLOTS_FIRST_DRAFTS
    return f"the position of the first draft of {agent}" if by_drafts else f"the proposal of {agent}"


def _change(decision: Decision, voted: str) -> str:
    """Return what the debate has changed: whether the last vote would have decided otherwise."""
    core = decision.core_agent_id
    place = next((each for each in decision.positions if voted in each.last_agent_ids), None)
    if place is None:
        return "whether the last vote would have decided otherwise cannot be told: it is not known which of these positions the proposal that led it takes"
    if core in (place.first_agent_ids if decision.core_is_first_draft else place.last_agent_ids):
        return "the last vote would have decided the same"
    return f"the last vote would have decided otherwise: {place.position}"


def _names(agents: Sequence[str]) -> str:
    return ", ".join(agents) or "nobody"
