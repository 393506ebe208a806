"""Refinements: an agent revises its proposal by the critiques it received."""

from collections.abc import Sequence

from parley.orchestrator import prompts
from parley.orchestrator.contributions import Contribution
from parley.orchestrator.debate import Debate
from parley.orchestrator.events import StepFailed, Work
from parley.orchestrator.recorded import Wishes
from parley.orchestrator.spec import AgentSpec
from parley.orchestrator.tasks import Task

__all__ = ["refine"]


async def refine(
    debate: Debate,
    agent: AgentSpec,
    proposal: Contribution,
    critiques: Sequence[Contribution],
    history: str,
    wishes: Wishes,
) -> Contribution | StepFailed:
    """Ask an agent for its revised proposal."""
    work = Work("refinement", agent.id, proposal.round)
    prompt = prompts.refine(debate.spec, agent, proposal, critiques, history, wishes.guidance)
    task = Task(work, prompt, max_output_tokens=debate.spec.max_output_tokens)
    reply = await debate.ask(f"round/{proposal.round}/refine/{agent.id}", agent, task)
    if isinstance(reply, StepFailed):
        return reply
    return Contribution(agent.id, "refinement", proposal.round, reply.text, reply.position)
