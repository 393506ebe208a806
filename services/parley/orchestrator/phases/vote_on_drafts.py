"""The vote over the first drafts: how they group before anyone has read another's. A debate has to beat it."""

from collections.abc import Sequence

from parley.orchestrator.contributions import Contribution
from parley.orchestrator.debate import Debate
from parley.orchestrator.events import StepFailed, Warned, Work
from parley.orchestrator.state import FIRST_DRAFT_VOTE

__all__ = ["vote_on_drafts"]


async def vote_on_drafts(debate: Debate, drafts: Sequence[Contribution]) -> None:
    """Record how the first drafts group by position."""
    if not drafts:
        return
    spec = debate.spec
    request = {
        "question": spec.question,
        "drafts": [[each.agent, each.position, each.text] for each in drafts],
    }
    grouped = await debate.step(
        FIRST_DRAFT_VOTE,
        Work(FIRST_DRAFT_VOTE, round=1),
        request,  # type: ignore[arg-type]  # lists of text are JSON
        lambda: debate.services.convergence.group(spec, drafts),
    )
    if isinstance(grouped, StepFailed):
        message = f"the first drafts could not be grouped: {grouped.message}"
        debate.note(f"{FIRST_DRAFT_VOTE}/warning", Warned(message))
