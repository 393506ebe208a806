"""The vote over the first drafts: how they group before anyone has read another's. A debate has to beat it."""

from collections.abc import Callable, Sequence

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.peers.services import truncate_text
from parley.orchestrator.phases.settle_agreement import settle_agreement
from parley.orchestrator.phases.stands import stands_of
from parley.v1.convergence_pb2 import GroupPositionsRequest, GroupPositionsResponse, SettledPair
from parley.v1.debate_pb2 import DraftGroup, DraftGroups
from parley.v1.event_pb2 import DraftsGrouped, StepFailed, Warned

__all__ = ["FIRST_DRAFT_VOTE", "draft_groups", "group_drafts"]

FIRST_DRAFT_VOTE = Activity(
    "first-draft-vote", "comparing the first drafts", title="vote over the first drafts"
)


async def group_drafts(
    debate: Debate, drafts: Sequence[Contribution], asked: Callable[[], AgentSpec] | None = None
) -> DraftGroups | None:
    """Record how the first drafts group by position, and whether that is certain; None where it cannot be told.

    Who `asked` returns reads all positions where the model is unsure of some; without it nobody is asked.
    """
    if not drafts:
        return None
    key = FIRST_DRAFT_VOTE.name
    found = await _compared(debate, drafts, key)
    if isinstance(found, StepFailed):
        message = f"the first drafts could not be grouped: {found.message}"
        debate.record_event(f"{key}/warning", Warned(message=message))
        return None
    groups = _noted(debate, key, found)
    if asked is None or not found.unsure:
        return groups
    settled = await settle_agreement(debate, 1, asked(), drafts, found.unsure, ())
    again = await _compared(debate, drafts, f"{key}/settled", settled) if settled else None
    return _noted(debate, f"{key}/settled", again) if isinstance(again, GroupPositionsResponse) else groups


def _noted(debate: Debate, key: str, found: GroupPositionsResponse) -> DraftGroups:
    groups = _groups(found)
    debate.record_event(f"{key}/groups", DraftsGrouped(drafts=groups))
    return groups


async def draft_groups(debate: Debate, drafts: Sequence[Contribution], key: str) -> DraftGroups | StepFailed:
    """Return how drafts group by position; the step is recorded under `key`."""
    found = await _compared(debate, drafts, key)
    return found if isinstance(found, StepFailed) else _groups(found)


async def _compared(
    debate: Debate, drafts: Sequence[Contribution], key: str, settled: Sequence[SettledPair] = ()
) -> GroupPositionsResponse | StepFailed:
    request = GroupPositionsRequest(
        question=truncate_text(debate.spec.question), positions=stands_of(drafts), settled=settled
    )
    work = FIRST_DRAFT_VOTE.create_work(round_number=1)
    return await debate.call_service(
        key, work, request, lambda: debate.services.convergence.group_positions(request)
    )


def _groups(found: GroupPositionsResponse) -> DraftGroups:
    groups = [DraftGroup(agent_ids=each.agent_ids, position=each.position) for each in found.groups]
    return DraftGroups(groups=groups, majority=found.majority, certain=found.certain)
