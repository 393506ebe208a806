"""The vote over the first drafts: how they group before anyone has read another's. A debate has to beat it."""

from collections.abc import Sequence

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.peers.services import readable
from parley.orchestrator.phases.stands import stands_of
from parley.v1.convergence_pb2 import GroupPositionsRequest
from parley.v1.debate_pb2 import DraftGroup, DraftGroups
from parley.v1.event_pb2 import DraftsGrouped, StepFailed, Warned

__all__ = ["FIRST_DRAFT_VOTE", "draft_groups", "group_drafts"]

FIRST_DRAFT_VOTE = Activity(
    "first-draft-vote", "comparing the first drafts", title="vote over the first drafts"
)


async def group_drafts(debate: Debate, drafts: Sequence[Contribution]) -> DraftGroups | None:
    """Record how the first drafts group by position, and whether that is certain; None where it cannot be told."""
    if not drafts:
        return None
    key = FIRST_DRAFT_VOTE.name
    found = await draft_groups(debate, drafts, key)
    if isinstance(found, StepFailed):
        message = f"the first drafts could not be grouped: {found.message}"
        debate.note(f"{key}/warning", Warned(message=message))
        return None
    debate.note(f"{key}/groups", DraftsGrouped(drafts=found))
    return found


async def draft_groups(debate: Debate, drafts: Sequence[Contribution], key: str) -> DraftGroups | StepFailed:
    """Return how drafts group by position; the step is recorded under `key`."""
    request = GroupPositionsRequest(question=readable(debate.spec.question), stands=stands_of(drafts))
    work = FIRST_DRAFT_VOTE.work(round_number=1)
    grouped = await debate.step(key, work, request, lambda: debate.services.convergence.group(request))
    if isinstance(grouped, StepFailed):
        return grouped
    groups = [DraftGroup(agent_ids=each.agent_ids, position=each.position) for each in grouped.groups]
    return DraftGroups(groups=groups, majority=grouped.majority, certain=grouped.certain)
