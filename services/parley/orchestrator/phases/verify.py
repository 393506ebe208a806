"""Verification: each participant says whether it can live with the answer; what it cannot live with is dissent."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task, user_part
from parley.orchestrator.phases.prompting import preamble, quotation
from parley.orchestrator.phases.schemas import asked_schema, schema_text
from parley.v1.event_pb2 import StepFailed
from parley.v1.panel_pb2 import Objection

__all__ = ["VERIFICATION", "Verified", "verify"]

VERIFICATION = Activity("verification", "says whether it can live with the answer", "Verification")
_TOLD: Final = (
    "This is the answer of the debate, written from its vote. Can you live with it? You can unless it is wrong, would do harm,"
    " misses a stated requirement, or leaves out what the question cannot do without. That you would have said it otherwise, or"
    " that another proposal won, is no reason. Where you cannot, say in a sentence or two what would go wrong."
)


class _AskedStand(BaseModel):
    model_config = ConfigDict(extra="forbid")

    can_live_with_it: bool
    objection: Annotated[
        str,
        Field(
            description="What you cannot live with, and what would go wrong; empty if you can live with it."
        ),
    ]


_SCHEMA: Final = schema_text(asked_schema(_AskedStand))


class StandRead(BaseModel):
    """A participant's word as it is read: without a plain yes or no it says nothing."""

    can_live_with_it: Annotated[
        bool, Field(strict=True, validation_alias=AliasChoices("can_live_with_it", "accepts"))
    ]
    objection: str = ""

    @field_validator("objection", mode="before")
    @classmethod
    def _or_empty(cls, given: Any) -> str:
        return given.strip() if isinstance(given, str) else ""


@dataclass(frozen=True, slots=True)
class Verified:
    """What participants said, each part ordered by agent id. Who said nothing is in neither."""

    dissent: tuple[Objection, ...]
    consenting: tuple[str, ...]


async def verify(
    debate: Debate,
    participants: Sequence[AgentSpec],
    work: Sequence[Contribution],
    answer: str,
    requirements: str = "",
) -> Verified:
    """Ask everybody at once whether it can live with the answer. Who fails, or is not asked any more, says nothing."""
    own = {each.agent: each.text for each in work}
    asked = await asyncio.gather(
        *(_ask(debate, each, own.get(each.id, ""), answer, requirements) for each in participants)
    )
    said = sorted(zip((each.id for each in participants), asked, strict=True), key=lambda each: each[0])
    stands = [(agent, stand) for agent, stand in said if isinstance(stand, StandRead)]
    return Verified(
        dissent=tuple(
            Objection(agent_id=agent, text=stand.objection or "It gave no reason.")
            for agent, stand in stands
            if not stand.can_live_with_it
        ),
        consenting=tuple(agent for agent, stand in stands if stand.can_live_with_it),
    )


async def _ask(
    debate: Debate, agent: AgentSpec, own: str, answer: str, requirements: str
) -> StandRead | StepFailed:
    prompt = (
        *preamble(debate, agent, requirements=requirements),
        *([quotation("Your final proposal", own)] if own else []),
        quotation("The answer", answer),
        user_part(_TOLD),
    )
    task = Task(VERIFICATION.create_work(agent.id), prompt)
    shape = AnswerShape("stand", StandRead, _SCHEMA, _rendered)
    return await debate.ask_structured(f"verification/{agent.id}", agent, task, shape)


def _rendered(stand: StandRead) -> str:
    return "Can live with it." if stand.can_live_with_it else f"Cannot live with it: {stand.objection}"
