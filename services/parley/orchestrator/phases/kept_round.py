"""A round that is over, as the log has it: its outcomes stand, and nothing of what was asked is made again."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.topology import Edge
from parley.orchestrator.phases.critique import create_critique, critique_key
from parley.orchestrator.phases.propose import create_proposal, propose_key
from parley.orchestrator.phases.refine import create_refinement, refine_key
from parley.v1.debate_pb2 import Reply
from parley.v1.event_pb2 import StepFailed

Made = Contribution | StepFailed | None
"""What came of a step: a text, a failure that leaves its agent out, or nothing, if it was not asked."""


class KeptRound(Struct, frozen=True):
    """What became of the steps of a round.

    Attributes:
        works: The last work of each agent that has some, in this round or before.
    """

    proposals: Mapping[str, Made]
    critiques: Mapping[Edge, Made]
    refinements: Mapping[str, Made]
    works: Mapping[str, Contribution]


def find_kept_round(
    debate: Debate,
    number: int,
    agents: Sequence[str],
    edges: Sequence[Edge],
    carried: Mapping[str, Contribution],
    works: Mapping[str, Contribution],
) -> KeptRound | None:
    """Return a round of these agents by the log; None if it is to be run, since it is not over or something is asked again.

    `carried` are proposals that came from the round before; `works` is the last work of each agent before the round.
    """
    if not debate.kept_steps.has_round(number):
        return None
    try:
        proposals: dict[str, Made] = {
            each: carried.get(each) or _proposal(debate, number, each) for each in agents
        }
        critiques = {
            (critic, target): _critique(debate, number, critic, target)
            if isinstance(proposals[target], Contribution)
            else None
            for critic, target in edges
        }
        asked = {target for _, target in edges}
        heard = {target for (_, target), made in critiques.items() if isinstance(made, Contribution)}
        refinements = {
            each: _refinement(debate, number, each)
            if isinstance(proposals[each], Contribution) and (each in heard or each not in asked)
            else None
            for each in agents
        }
    except LookupError:
        return None
    made = {
        **proposals,
        **{agent: each for agent, each in refinements.items() if isinstance(each, Contribution)},
    }
    now = {agent: each for agent, each in made.items() if isinstance(each, Contribution)}
    return KeptRound(proposals, critiques, refinements, {**works, **now})


def _proposal(debate: Debate, number: int, agent: str) -> Made:
    reply = debate.kept_steps.find_reply(propose_key(number, agent))
    return create_proposal(agent, number, reply) if isinstance(reply, Reply) else reply


def _critique(debate: Debate, number: int, critic: str, target: str) -> Made:
    reply = debate.kept_steps.find_reply(critique_key(number, critic, target))
    if isinstance(reply, StepFailed):
        return reply
    return create_critique(critic, number, target, reply.critique, reply.rendered)


def _refinement(debate: Debate, number: int, agent: str) -> Made:
    reply = debate.kept_steps.find_reply(refine_key(number, agent))
    return create_refinement(agent, number, reply) if isinstance(reply, Reply) else reply
