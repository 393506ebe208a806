"""Proposals: each agent's own solution."""

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.formats.panel.v1.prompting import HISTORY_GIVES, instruction, preamble, quotation
from parley.orchestrator.log.replay import Steering
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.positions import POSITION_INSTRUCTION
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity, Task
from parley.v1.event_pb2 import StepFailed

__all__ = ["CONCURRENCY", "PROPOSAL", "SECTION", "propose", "propose_key"]

PROPOSAL = Activity("proposal", "proposes", "Proposals")
SECTION = "propose"
CONCURRENCY = "proposals"


def propose_key(number: int, agent: str) -> str:
    """Return the key of an agent's proposal in a round."""
    return f"round/{number}/propose/{agent}"


async def propose(
    debate: Debate, number: int, agent: AgentSpec, past: str, history: str, steering: Steering
) -> Contribution | StepFailed:
    """Ask an agent for its proposal. `past` is what is recalled of past debates."""
    spec = debate.spec
    recalled = (quotation("Past debates on like questions", past, HISTORY_GIVES),) if past else ()
    told = f"Propose your solution. {POSITION_INSTRUCTION}"
    prompt = (
        *preamble(debate, agent, history, steering.guidance),
        *recalled,
        instruction(agent, SECTION, told, spec.max_output_tokens),
    )
    work = PROPOSAL.create_work(agent.id, number)
    task = Task(work, prompt, spec.max_output_tokens, concurrency=CONCURRENCY)
    reply = await debate.ask(propose_key(number, agent.id), agent, task)
    if isinstance(reply, StepFailed):
        return reply
    return Contribution(agent.id, PROPOSAL.name, number, reply.text, reply.position)
