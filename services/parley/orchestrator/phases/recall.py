"""Recall: past debates like this one, shown to the agents before the first proposal."""

from parley.orchestrator.debate import Debate
from parley.orchestrator.events import Json, Recalled, StepFailed, Warned, Work

__all__ = ["recall"]

_KEY = "recall"


async def recall(debate: Debate) -> str:
    """Return past debates as text for the agents; empty where there are none, or memory is away."""
    spec = debate.spec
    if spec.history_limit == 0:
        return ""
    request: dict[str, Json] = {"question": spec.question, "limit": spec.history_limit}
    found = await debate.step(
        _KEY, Work("recall"), request, lambda: debate.services.memory.recall(debate.id, spec)
    )
    if isinstance(found, StepFailed):
        debate.note(f"{_KEY}/warning", Warned(f"past debates could not be recalled: {found.message}"))
        return ""
    past = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    if past:
        debate.note(f"{_KEY}/found", Recalled(tuple(str(each["debate"]) for each in past)))
    return "\n\n".join(
        f"[{each['debate']}] Question: {each['question']}\nConclusion: {each['conclusion']}" for each in past
    )
