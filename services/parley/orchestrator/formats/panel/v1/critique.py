"""Critiques: one agent examines another's proposal."""

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.formats.panel.v1.prompting import instruction, preamble, quotation
from parley.orchestrator.log.replay import Steering
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity, Task
from parley.v1.event_pb2 import StepFailed

__all__ = ["CONCURRENCY", "CRITIQUE", "SECTION", "critique"]

CRITIQUE = Activity("critique", "criticizes", "Critiques")
SECTION = "critique"
CONCURRENCY = "critiques"


async def critique(
    debate: Debate, critic: AgentSpec, proposal: Contribution, history: str, steering: Steering
) -> Contribution | StepFailed:
    """Ask an agent what it makes of a proposal."""
    spec, author = debate.spec, f"agent {debate.letter(proposal.agent)}"
    prompt = (
        *preamble(debate, critic, history, steering.guidance),
        quotation(f"Proposal of {author}", proposal.text),
        instruction(critic, SECTION, f"Criticize the proposal of {author}.", spec.max_output_tokens),
    )
    work = CRITIQUE.create_work(critic.id, proposal.round, proposal.agent)
    task = Task(work, prompt, spec.max_output_tokens, concurrency=CONCURRENCY)
    key = f"round/{proposal.round}/critique/{critic.id}/of/{proposal.agent}"
    reply = await debate.ask(key, critic, task)
    if isinstance(reply, StepFailed):
        return reply
    return Contribution(critic.id, CRITIQUE.name, proposal.round, reply.text, target=proposal.agent)
