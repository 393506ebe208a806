"""The choice of a judge: not the author of what it judges, and of another model family if the roster allows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from parley.orchestrator.model.model_families import family_of
from parley.v1.agent_pb2 import Agent


class Distance(IntEnum):
    """How far a judge stands from what it judges, nearest first."""

    AUTHOR = 0
    SAME_FAMILY = 1
    UNKNOWN_FAMILY = 2
    OTHER_FAMILY = 3


_REASONS = {
    Distance.OTHER_FAMILY: "no author's model is of its family ({family})",
    Distance.UNKNOWN_FAMILY: "it is no author; whether its model shares a family with an author's is not known",
    Distance.SAME_FAMILY: "it is no author; no agent that is known to be of another model family could judge",
    Distance.AUTHOR: "every agent that could judge is an author",
}


@dataclass(frozen=True, slots=True)
class Nominee:
    """One who may judge, and why it is preferred to those after it, in a few words."""

    agent: Agent
    reason: str


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The judge, how far it stands from what it judges, and why it was chosen, in a line."""

    agent: Agent
    distance: Distance
    reason: str


def choose_judge(candidates: Sequence[Agent], authors: Sequence[Agent]) -> JudgeChoice:
    """Return the candidate that stands farthest from the authors, of several the first.

    Args:
        candidates: Those who may judge, in the order of preference (drawn, voted, by rating), at least one.
        authors: Those whose work is judged.
    """
    distances = [_distance(each, authors) for each in candidates]
    farthest = max(distances)
    agent = candidates[distances.index(farthest)]
    return JudgeChoice(agent, farthest, _REASONS[farthest].format(family=_family(agent)))


def _distance(candidate: Agent, authors: Sequence[Agent]) -> Distance:
    if any(candidate.id == author.id for author in authors):
        return Distance.AUTHOR
    own, others = _family(candidate), {_family(author) for author in authors}
    if any(candidate.routes == author.routes for author in authors) or (own and own in others):
        return Distance.SAME_FAMILY
    return Distance.OTHER_FAMILY if own and "" not in others else Distance.UNKNOWN_FAMILY


def _family(agent: Agent) -> str:
    return family_of(agent.routes[0]) if agent.routes else ""
