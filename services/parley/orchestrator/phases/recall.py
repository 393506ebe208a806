"""Recall: past debates like this one, shown to the agents from their first prompt on."""

from collections.abc import Sequence
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.peers.services import truncate_text
from parley.v1.event_pb2 import Recalled, StepFailed
from parley.v1.memory_pb2 import PastDebate, RecallRequest

RECALL: Final = Activity("recall", "looking for past debates", title="search for past debates")
_KEY: Final = "recall"


async def recall(debate: Debate) -> Sequence[PastDebate]:
    """Return past debates like the question, best first, with texts shortened; none if there are none, or memory gives none in time."""
    spec = debate.spec
    if spec.history_limit == 0:
        return ()
    request = RecallRequest(
        text=truncate_text(spec.question), limit=spec.history_limit, excluded_debate_ids=[debate.id]
    )
    found = await debate.call_service(
        _KEY, RECALL.create_work(), request, lambda: debate.services.memory.recall(request)
    )
    if isinstance(found, StepFailed):
        debate.warn(_KEY, f"past debates could not be recalled: {found.message}")
        return ()
    if found.debates:
        ids = [each.debate_id for each in found.debates]
        debate.record_event(f"{_KEY}/found", Recalled(debate_ids=ids))
    if spec.HasField("knowledge") and not spec.knowledge:
        for each in found.debates:
            each.ClearField("evidence")
    return found.debates
