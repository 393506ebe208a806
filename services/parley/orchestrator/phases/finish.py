"""The last refinement: each agent writes its proposal as it goes to the vote, with the work of the others before it."""

from collections.abc import Sequence
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.positions import POSITION_INSTRUCTION
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity, Task
from parley.orchestrator.phases.cite import note_claims
from parley.orchestrator.phases.prompting import instruction, quotation
from parley.orchestrator.phases.refine import CONCURRENCY
from parley.orchestrator.phases.refine import SECTION as ROLE_SECTION
from parley.orchestrator.phases.situation import Situation, opening, present_work
from parley.v1.event_pb2 import StepFailed

__all__ = ["FINAL_REFINEMENT", "SECTION", "finish"]

FINAL_REFINEMENT = Activity(
    "final-refinement", "writes its final proposal", "Final refinements", title="final refinement"
)
SECTION: Final = "finish"
"""Names the phase where the manner of a debate is said; the role's section is that of refinements."""
_TOLD: Final = (
    "This is the last time that you write before the vote. Write your final proposal, complete in itself: those who vote see it"
    " alone, without your name and without the debate, so name no agents in it. Take over from the others what is better than yours, answer in the text"
    " itself what is still held against it, and take nothing back that has stood up to the critiques. Where you have come to"
    f" agree with another agent, say the same thing and do not invent a difference. {POSITION_INSTRUCTION}"
)


async def finish(
    debate: Debate,
    agent: AgentSpec,
    own: Contribution,
    others: Sequence[Contribution],
    issues: str,
    situation: Situation,
) -> Contribution | StepFailed:
    """Ask an agent for its final proposal. `issues`: what was held against its work, with what became of it."""
    spec = debate.spec
    prompt = (
        *opening(debate, agent, situation),
        *present_work(debate, others, "Present proposal"),
        quotation(f"Your proposal, your {own.activity} of round {own.round}", own.text),
        *([quotation("What was held against your work, and what became of it", issues)] if issues else []),
        instruction(agent, ROLE_SECTION, situation.told(SECTION, _TOLD), spec.max_output_tokens),
    )
    work = FINAL_REFINEMENT.create_work(agent.id, situation.number)
    annotate = note_claims if situation.cites else None
    task = Task(
        work,
        prompt,
        spec.max_output_tokens,
        concurrency=CONCURRENCY,
        annotate=annotate,
        retry_once=True,
    )
    reply = await debate.ask(f"round/{situation.number}/finish/{agent.id}", agent, task)
    if isinstance(reply, StepFailed):
        return reply
    return Contribution(
        agent.id,
        FINAL_REFINEMENT.title,
        situation.number,
        reply.rendered or reply.text,
        reply.position,
        claims=tuple(reply.claims_to_cite),
    )
