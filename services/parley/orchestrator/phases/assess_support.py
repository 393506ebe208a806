"""How well proposals support what they say, as the judge reads them: asked before an agreement ends the rounds."""

import math
from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task, user_part
from parley.orchestrator.phases.schemas import asked_schema, schema_text
from parley.orchestrator.phases.situation import bench, present_work, start
from parley.v1.event_pb2 import StepFailed, Warned

__all__ = ["SUPPORT", "TOLD", "Support", "assess_support"]

SUPPORT = Activity("support", "looks at the evidence", "Evidence given", title="look at the evidence")
_MAX: Final = 10
TOLD: Final = (
    "The agents agree, or say that they are ready. Before that ends their rounds: how well does each proposal support what it says?"
    " Count only what stands in its text: facts, figures, sources, tests, cases and worked reasons that somebody could check or"
    " dispute. Do not count how sure or well written it is, how many agents say the same, or what you know yourself.\n"
    "10: each claim that matters is supported so; 8: most are; 5: about half, or reasons that are about this question but that"
    " nobody could check; 2: hardly any, it would fit many other questions; 0: claims alone.\n"
    "Then name in a sentence or two the claim that most depends on and that has no support in any of the texts."
)
"""What the judge is asked."""


class _AskedProposal(BaseModel):
    model_config = ConfigDict(extra="forbid")

    agent: Annotated[str, Field(description="The letter of its agent.")]
    support: Annotated[int, Field(ge=0, le=_MAX)]


class _AskedSupport(BaseModel):
    model_config = ConfigDict(extra="forbid")

    proposals: Annotated[list[_AskedProposal], Field(description="Every proposal once.")]
    missing: Annotated[str, Field(description="The claim without support; empty if there is none.")]


class _ReadProposal(BaseModel):
    support: float

    @field_validator("support", mode="before")
    @classmethod
    def _in_range(cls, given: Any) -> float:
        is_number = isinstance(given, int | float) and not isinstance(given, bool)
        if not is_number or not math.isfinite(given) or not 0 <= given <= _MAX:
            raise ValueError("it is no support from 0 to 10")
        return float(given)


class Support(BaseModel):
    """What the judge said, as it is read; a proposal whose support makes no sense is left out. At least one makes sense.

    Attributes:
        missing: What has no support, in words.
    """

    proposals: list[_ReadProposal]
    missing: str = ""

    @field_validator("proposals", mode="before")
    @classmethod
    def _only_proposals(cls, given: Any) -> Any:
        read = []
        for each in given if isinstance(given, list) else []:
            try:
                read.append(_ReadProposal.model_validate(each))
            except ValidationError:
                continue
        if not read:
            raise ValueError("it says of no proposal how well it is supported")
        return read

    @field_validator("missing", mode="before")
    @classmethod
    def _or_empty(cls, given: Any) -> str:
        return " ".join(given.split()) if isinstance(given, str) else ""

    @property
    def mean(self) -> float:
        """The mean over the proposals, 0 to 10."""
        return sum(each.support for each in self.proposals) / len(self.proposals)


async def assess_support(
    debate: Debate, judge: AgentSpec, number: int, work: Sequence[Contribution], requirements: str
) -> Support | None:
    """Return what the judge says of the evidence that the proposals give; None, with a warning, where it does not say."""
    key = f"round/{number}/support"
    prompt = (
        *start(debate, judge, requirements),
        user_part(bench(debate)),
        *present_work(debate, work, "Present proposal"),
        user_part(f"Round {number} is over. {TOLD}"),
    )
    shape = AnswerShape("support", Support, _schema([debate.letter(each.agent) for each in work]), _rendered)
    said = await debate.ask_structured(key, judge, Task(SUPPORT.create_work(judge.id, number), prompt), shape)
    if isinstance(said, StepFailed):
        why = " ".join(said.message.split())
        message = f"the judge did not say after round {number} what evidence there is, and the texts alone count: {why}"
        debate.record_event(f"{key}/warning", Warned(message=message))
        return None
    return said


def _rendered(said: Support) -> str:
    told = f"The proposals support what they say to {said.mean:.1f} of {_MAX}."
    return f"{told} Without support: {said.missing}" if said.missing else told


def _schema(letters: Sequence[str]) -> str:
    schema = asked_schema(_AskedSupport)
    proposals = schema["properties"]["proposals"]
    proposals["minItems"] = proposals["maxItems"] = len(letters)
    proposals["items"]["properties"]["agent"]["enum"] = list(letters)
    return schema_text(schema)
