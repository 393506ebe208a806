"""Which routes the judge of a new debate answers by, and why: it is known only here which agents debate, and what the gateway offers."""

from parley.orchestrator.model.judge_choice import Offer, choose_route, describe_relation
from parley.orchestrator.model.model_families import UNKNOWN_FAMILY, family_of
from parley.orchestrator.model.spec import agents_of
from parley.orchestrator.peers.roster import Roster
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DebateSpec
from parley.v1.event_pb2 import DebateCreated


def set_model_families(spec: DebateSpec, known: Roster) -> None:
    """Set the family of each agent's model. None that debates is called stronger than those that do."""
    for agent in agents_of(spec):
        _set_family(agent, known)
        agent.stronger = False
    _set_family(spec.judge.agent, known)


def set_judge_route(created: DebateCreated, known: Roster) -> None:
    """Give a judge that names no route one of another family than the panel's, if there is any, and record why.

    The default routes stand behind it, for when it fails.
    """
    team, judge = agents_of(created.spec), created.spec.judge.agent
    why = "its routes are given" if judge.routes else "it has the default routes"
    if not judge.routes:
        chosen = choose_route([_offer_of(each, known) for each in team], _offers(known))
        if chosen is not None:
            judge.routes[:] = dict.fromkeys((chosen.route, *known.default_routes))
            why = chosen.reason
        judge.stronger = False
    _set_family(judge, known)
    own, others = _offer_of(judge, known), [_offer_of(each, known) for each in team]
    is_stronger_route = own.stronger and not any(each.stronger for each in others)
    judge.stronger = own.route not in {each.route for each in others} and (
        judge.stronger or is_stronger_route
    )
    stronger = "; it counts as stronger than the agents" if judge.stronger else ""
    created.judge_reason = f"{why}; {describe_relation(judge, team)}{stronger}"


def _offers(known: Roster) -> list[Offer]:
    names = (each for each in known.default_routes if each not in known.demonstrations)
    return [Offer(each, known.family_of(each), each in known.stronger) for each in names]


def _offer_of(agent: Agent, known: Roster) -> Offer:
    route = next(iter(known.routes_of(agent)), "")
    return Offer(route, known.family_of(route), route in known.stronger)


def _set_family(agent: Agent, known: Roster) -> None:
    offer = _offer_of(agent, known)
    agent.model_family = offer.family or (UNKNOWN_FAMILY if family_of(offer.route) else "")
