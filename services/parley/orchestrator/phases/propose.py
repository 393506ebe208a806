"""Proposals: each agent's own solution."""

from parley.orchestrator import prompts
from parley.orchestrator.contributions import Contribution
from parley.orchestrator.debate import Debate
from parley.orchestrator.events import StepFailed, Work
from parley.orchestrator.recorded import Wishes
from parley.orchestrator.spec import AgentSpec
from parley.orchestrator.tasks import Task

__all__ = ["propose", "propose_key"]


def propose_key(number: int, agent: str) -> str:
    """Return the key of an agent's proposal in a round."""
    return f"round/{number}/propose/{agent}"


async def propose(
    debate: Debate, number: int, agent: AgentSpec, past: str, history: str, wishes: Wishes
) -> Contribution | StepFailed:
    """Ask an agent for its proposal. `past` is what is recalled of past debates."""
    work = Work("proposal", agent.id, number)
    prompt = prompts.propose(debate.spec, agent, past, history, wishes.guidance)
    task = Task(work, prompt, max_output_tokens=debate.spec.max_output_tokens)
    reply = await debate.ask(propose_key(number, agent.id), agent, task)
    if isinstance(reply, StepFailed):
        return reply
    return Contribution(agent.id, "proposal", number, reply.text, reply.position)
