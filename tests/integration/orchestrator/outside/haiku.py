"""A phase from outside: each agent writes a haiku. Its prompt, role section, answer's shape, rendering and label are here."""

from typing import Annotated

from pydantic import BaseModel, Field

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task
from parley.orchestrator.phases.prompting import instruction, preamble
from parley.v1.agent_pb2 import Agent
from parley.v1.event_pb2 import StepFailed

HAIKU = Activity("haiku", "writes a haiku", "Haiku")
SECTION = "haiku"


class Haiku(BaseModel):
    """A haiku as it is asked for."""

    lines: Annotated[list[str], Field(min_length=3, max_length=3)]


def _render(haiku: Haiku) -> str:
    return "  \n".join(haiku.lines)


_SHAPE = AnswerShape(
    "haiku", Haiku, '{"type": "object", "properties": {"lines": {"type": "array"}}}', _render
)


async def write_haiku(debate: Debate, agent: Agent) -> Haiku | StepFailed:
    """Ask an agent for a haiku."""
    prompt = (*preamble(debate, agent), instruction(debate, agent, SECTION, "Write it now."))
    task = Task(HAIKU.create_work(agent.id, 1), prompt, is_answer=True)
    return await debate.ask_structured(f"haiku/{agent.id}", agent, task, _SHAPE)
