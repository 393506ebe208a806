"""How far the agents agreed, in few words: by their first drafts, and by what critics said last."""

from collections.abc import Iterator, Sequence

from parley.client import Debate
from parley.v1.debate_pb2 import Contribution, DraftGroups

__all__ = ["agreement_texts"]

_MAX_PAIRS = 6
"""Who agrees with whom is told for no more critiques than this; then they are counted."""


def agreement_texts(debate: Debate) -> Iterator[str]:
    """Yield `2 of 3 first drafts agree (ada, bo)` and `in round 3 bo agreed with ada`; nothing for what is not certain."""
    if debate.first_drafts.groups:
        yield _drafts_text(debate.first_drafts)
    said = [each for each in debate.contributions if each.reply.critique.HasField("agrees")]
    if said:
        last = max(each.work.round for each in said)
        yield f"in round {last} {_critics_text([each for each in said if each.work.round == last])}"


def _drafts_text(drafts: DraftGroups) -> str:
    voters = sum(len(group.agent_ids) for group in drafts.groups)
    if not drafts.majority:
        return f"no majority among {voters} first drafts"
    agreeing = drafts.groups[0].agent_ids
    return f"{len(agreeing)} of {voters} first drafts agree ({', '.join(agreeing)})"


def _critics_text(said: Sequence[Contribution]) -> str:
    agreed = [each.work for each in said if each.reply.critique.agrees]
    if not agreed:
        return "no critic agreed"
    if len(agreed) == len(said):
        return "every critic agreed"
    if len(agreed) > _MAX_PAIRS:
        return f"{len(agreed)} of {len(said)} critiques agreed"
    authors = dict.fromkeys(each.target_agent_id for each in agreed)
    return "; ".join(
        f"{' and '.join(each.agent_id for each in agreed if each.target_agent_id == author)} agreed with {author}"
        for author in authors
    )
