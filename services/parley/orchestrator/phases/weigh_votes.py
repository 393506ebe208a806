"""What a vote needs of other services: what each ballot weighs, and which choices say the same."""

from collections.abc import Mapping, Sequence
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.model.voting import Group, group_options
from parley.orchestrator.peers.services import truncate_text
from parley.orchestrator.phases.stands import stands_of
from parley.orchestrator.phases.vote_terms import VoteTerms
from parley.v1.convergence_pb2 import GroupPositionsRequest
from parley.v1.event_pb2 import StepFailed, Warned
from parley.v1.ratings_pb2 import (
    WEIGHT_RULE_ACCURACY,
    WEIGHT_RULE_ELO,
    WEIGHT_RULE_UNSPECIFIED,
    GetWeightsRequest,
)
from parley.v1.voting_pb2 import (
    VOTE_WEIGHTS_ACCURACY,
    VOTE_WEIGHTS_ELO,
    VOTE_WEIGHTS_RATINGS,
    VOTE_WEIGHTS_UNSPECIFIED,
)

__all__ = ["CHOICE_GROUPS", "VOTE_WEIGHTS", "alike_choices", "vote_weights"]

VOTE_WEIGHTS = Activity("vote-weights", "looking up what votes weigh", title="weights of the votes")
CHOICE_GROUPS = Activity("choice-groups", "comparing the choices", title="comparison of the choices")

_RULES: Final = {
    VOTE_WEIGHTS_RATINGS: WEIGHT_RULE_UNSPECIFIED,
    VOTE_WEIGHTS_ELO: WEIGHT_RULE_ELO,
    VOTE_WEIGHTS_ACCURACY: WEIGHT_RULE_ACCURACY,
}


async def vote_weights(debate: Debate, voters: Sequence[AgentSpec], terms: VoteTerms) -> Mapping[str, float]:
    """Return what each voter's ballot weighs: 1 each where votes are not weighted, or the ratings are away."""
    equal = {each.id: 1.0 for each in voters}
    if terms.weighted_by == VOTE_WEIGHTS_UNSPECIFIED:
        return equal
    key = f"{terms.key}-weights"
    request = GetWeightsRequest(
        agent_ids=sorted(equal), domain=debate.spec.domain, rule=_RULES[terms.weighted_by]
    )
    work = VOTE_WEIGHTS.create_work(round_number=terms.round)
    found = await debate.call_service(
        key, work, request, lambda: debate.services.ratings.get_weights(request)
    )
    if isinstance(found, StepFailed):
        message = f"every vote weighs the same, since its weight could not be looked up: {found.message}"
        debate.record_event(f"{key}/warning", Warned(message=message))
        return equal
    return equal | {each.agent_id: each.weight for each in found.weights}


async def alike_choices(debate: Debate, work: Sequence[Contribution], terms: VoteTerms) -> tuple[Group, ...]:
    """Return the proposals in groups of those that say the same; whoever it cannot be told of stands alone.

    Convergence joins none but those of which every two are the same answer, whatever is unsure of others.
    """
    options = [each.agent for each in work]
    alone = group_options(options, (), ())
    if not terms.group_choices or len(options) < 2:
        return alone
    key = f"{terms.key}-groups"
    request = GroupPositionsRequest(question=truncate_text(debate.spec.question), positions=stands_of(work))
    doing = CHOICE_GROUPS.create_work(round_number=terms.round)
    found = await debate.call_service(
        key, doing, request, lambda: debate.services.convergence.group_positions(request)
    )
    if isinstance(found, StepFailed):
        message = f"every choice is counted alone, since they could not be compared: {found.message}"
        debate.record_event(f"{key}/warning", Warned(message=message))
        return alone
    apart = [(each.agent_id, each.other_agent_id) for each in found.contradictions]
    return group_options(options, [each.agent_ids for each in found.groups], apart)
