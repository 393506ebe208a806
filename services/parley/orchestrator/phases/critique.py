"""Critiques: one agent examines another's proposal."""

from parley.orchestrator import prompts
from parley.orchestrator.contributions import Contribution
from parley.orchestrator.debate import Debate
from parley.orchestrator.events import StepFailed, Work
from parley.orchestrator.recorded import Wishes
from parley.orchestrator.spec import AgentSpec
from parley.orchestrator.tasks import Task

__all__ = ["critique"]


async def critique(
    debate: Debate, critic: AgentSpec, proposal: Contribution, history: str, wishes: Wishes
) -> Contribution | StepFailed:
    """Ask an agent what it makes of a proposal."""
    work = Work("critique", critic.id, proposal.round, proposal.agent)
    prompt = prompts.critique(debate.spec, critic, proposal, history, wishes.guidance)
    task = Task(work, prompt, max_output_tokens=debate.spec.max_output_tokens)
    key = f"round/{proposal.round}/critique/{critic.id}/of/{proposal.agent}"
    reply = await debate.ask(key, critic, task)
    if isinstance(reply, StepFailed):
        return reply
    return Contribution(critic.id, "critique", proposal.round, reply.text, target=proposal.agent)
