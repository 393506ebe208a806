"""Positions: an agent whose work does not state its stand in one line is asked for that line, once."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import Activity, Task, user_part
from parley.orchestrator.phases.prompting import preamble, quotation
from parley.v1.event_pb2 import StepFailed

__all__ = ["POSITION", "state_positions"]

POSITION = Activity("position", "states its position", title="position")
_MAX_TOKENS = 200
_TOLD = (
    "Your proposal was to end with a line that states your stand, and it has none. Write that line alone: `Position: ` followed"
    " by what you answer to the question, in one sentence that can be understood without your proposal."
)


async def state_positions(
    debate: Debate, number: int, work: Sequence[Contribution], key: str = "position"
) -> list[Contribution]:
    """Return work with its positions. Who is asked again and still states none stays without one.

    `key` names the question among those of a round in which two texts of an agent are asked for it.
    """
    return list(await asyncio.gather(*(_stated(debate, number, each, key) for each in work)))


async def _stated(debate: Debate, number: int, made: Contribution, key: str) -> Contribution:
    if made.position:
        return made
    agent = next(each for each in debate.participants if each.id == made.agent)
    prompt = (
        *preamble(debate, agent),
        quotation("Your proposal", made.text),
        user_part(_TOLD),
    )
    task = Task(POSITION.create_work(agent.id, number), prompt, _MAX_TOKENS)
    reply = await debate.ask(f"round/{number}/{key}/{agent.id}", agent, task)
    return made if isinstance(reply, StepFailed) else replace(made, position=reply.position)
