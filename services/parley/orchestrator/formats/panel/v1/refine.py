"""Refinements: an agent revises its proposal by the critiques it received."""

from collections.abc import Sequence

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.formats.panel.v1.prompting import instruction, preamble, quotation
from parley.orchestrator.log.replay import Steering
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.positions import POSITION_INSTRUCTION
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity, Task
from parley.v1.event_pb2 import StepFailed

__all__ = ["CONCURRENCY", "REFINEMENT", "SECTION", "refine"]

REFINEMENT = Activity("refinement", "refines", "Refinements")
SECTION = "refine"
CONCURRENCY = "refinements"


async def refine(
    debate: Debate,
    agent: AgentSpec,
    proposal: Contribution,
    critiques: Sequence[Contribution],
    history: str,
    steering: Steering,
) -> Contribution | StepFailed:
    """Ask an agent for its revised proposal."""
    spec = debate.spec
    told = f"Write your revised proposal, complete in itself. {POSITION_INSTRUCTION}"
    prompt = (
        *preamble(debate, agent, history, steering.guidance),
        quotation("Your proposal", proposal.text),
        *(quotation(f"Critique by agent {debate.letter(each.agent)}", each.text) for each in critiques),
        instruction(agent, SECTION, told, spec.max_output_tokens),
    )
    work = REFINEMENT.create_work(agent.id, proposal.round)
    task = Task(work, prompt, spec.max_output_tokens, concurrency=CONCURRENCY)
    reply = await debate.ask(f"round/{proposal.round}/refine/{agent.id}", agent, task)
    if isinstance(reply, StepFailed):
        return reply
    return Contribution(agent.id, REFINEMENT.name, proposal.round, reply.text, reply.position)
