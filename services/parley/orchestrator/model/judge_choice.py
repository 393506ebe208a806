"""The choice of a judge and of its route: no author of what it judges, and of another model family where there is one."""

from collections.abc import Sequence
from enum import IntEnum

from msgspec import Struct

from parley.orchestrator.model.model_families import family_of_agent, shared_family
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


class Nominee(Struct, frozen=True):
    """One who may judge, and why it is preferred to those after it, in a few words."""

    agent: Agent
    reason: str


class JudgeChoice(Struct, frozen=True):
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
    return JudgeChoice(agent, farthest, _REASONS[farthest].format(family=family_of_agent(agent)))


def _distance(candidate: Agent, authors: Sequence[Agent]) -> Distance:
    if any(candidate.id == author.id for author in authors):
        return Distance.AUTHOR
    own, others = family_of_agent(candidate), {family_of_agent(author) for author in authors}
    if any(candidate.routes == author.routes for author in authors) or (own and own in others):
        return Distance.SAME_FAMILY
    return Distance.OTHER_FAMILY if own and "" not in others else Distance.UNKNOWN_FAMILY


def describe_relation(judge: Agent, team: Sequence[Agent]) -> str:
    """Return in a few words how the judge's model is related to those of the agents that debate."""
    if shared := shared_family([*team, judge]):
        return f"all models are of one family ({shared}): they make the same mistakes, so that their agreement shows less"
    match _distance(judge, team):
        case Distance.OTHER_FAMILY:
            return f"no agent's model is of its family ({family_of_agent(judge)})"
        case Distance.UNKNOWN_FAMILY:
            return "whether its model shares a family with an agent's is not known"
        case _:
            return "an agent's model is of its family too, or the same"


class Offer(Struct, frozen=True):
    """A route that may be asked. `family`: of its model, empty if unknown; `stronger`: whether the configuration calls it so."""

    route: str
    family: str
    stronger: bool = False


class RouteChoice(Struct, frozen=True):
    """The route of a judge, and why it was chosen, in a few words."""

    route: str
    reason: str


def choose_route(panel: Sequence[Offer], offered: Sequence[Offer]) -> RouteChoice | None:
    """Return the route of a judge that names none: the strongest of another family than the panel's, else one that is stronger.

    Of several the configuration's word counts, that a route is stronger, and then its order. None if no route is either.

    Args:
        panel: By which routes the agents that debate are answered.
        offered: The routes of agents that name none, in the configuration's order.
    """
    families, taken = {each.family for each in panel}, {each.route for each in panel}
    apart = [each for each in offered if each.family and not families & {each.family, ""}]
    if apart:
        best = next((each for each in apart if each.stronger), apart[0])
        called = "the configuration calls it stronger" if best.stronger else "it is the first of these"
        return RouteChoice(
            best.route, f"{best.route} is of another family than the agents' models, and {called}"
        )
    if any(each.stronger for each in panel):
        return None
    best_of_all = next((each for each in offered if each.stronger and each.route not in taken), None)
    if best_of_all is None:
        return None
    return RouteChoice(
        best_of_all.route,
        f"no route is known to be of another family than the agents' models; the configuration calls {best_of_all.route} stronger",
    )
