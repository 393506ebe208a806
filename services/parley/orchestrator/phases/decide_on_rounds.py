"""Whether another round is worth it: by agreement, as convergence tells it, or by quality, as the judge does."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from parley.orchestrator import prompts
from parley.orchestrator.canonical import canonical_json
from parley.orchestrator.contributions import Contribution, label
from parley.orchestrator.debate import Debate
from parley.orchestrator.events import Json, StepFailed, Warned, Work
from parley.orchestrator.spec import DebateSpec
from parley.orchestrator.tasks import AnswerShape, Task

__all__ = ["enough"]

_DONE = ("CONVERGED", "STABLE_DISAGREEMENT")


class _Scores(BaseModel):
    model_config = ConfigDict(extra="forbid")

    scores: Annotated[
        dict[str, float], Field(description="The score of each agent's present work, 0 to 100.")
    ]


async def enough(
    debate: Debate, number: int, work: Sequence[Contribution], before: Sequence[Contribution]
) -> bool:
    """Return whether the rounds end after this one. Where that cannot be told, they go on, and the debate says so."""
    match debate.spec.termination.rule:
        case "convergence":
            return await _converged(debate, number, work, before)
        case "quality":
            return await _good(debate, number, work)
        case _:
            return False


async def _converged(
    debate: Debate, number: int, work: Sequence[Contribution], before: Sequence[Contribution]
) -> bool:
    key = f"round/{number}/convergence"
    if len(work) < 2:
        _warn(debate, key, number, "agreement", "fewer than two agents have a proposal")
        return False
    request: dict[str, Json] = {
        "work": [[each.agent, each.position, each.text] for each in work],
        "before": [[each.agent, each.position, each.text] for each in before],
        "threshold": debate.spec.termination.threshold_percent,
    }
    assessed = await debate.step(
        key,
        Work("convergence", round=number),
        request,
        lambda: debate.services.convergence.assess(debate.spec, work, before),
    )
    if isinstance(assessed, StepFailed):
        _warn(debate, key, number, "agreement", assessed.message)
        return False
    return isinstance(assessed, dict) and assessed.get("verdict") in _DONE


async def _good(debate: Debate, number: int, work: Sequence[Contribution]) -> bool:
    spec, judge = debate.spec, debate.spec.judge
    key = f"round/{number}/quality"
    agents = [each.agent for each in work]
    task = Task(
        Work("assessment", judge.id, number),
        prompts.assess(spec, judge, work),
        AnswerShape("assessment", _schema(spec, agents)),
    )
    reply = await debate.ask(key, judge, task)
    if isinstance(reply, StepFailed):
        _warn(debate, key, number, "quality", reply.message)
        return False
    try:
        scores = _Scores.model_validate_json(reply.text).scores
        return max(scores[label(spec, agent)] for agent in agents) >= spec.termination.threshold_percent
    except (ValidationError, KeyError) as error:
        _warn(debate, key, number, "quality", f"the judge's recorded answer is not of its shape: {error}")
        return False


def _warn(debate: Debate, key: str, number: int, what: str, why: str) -> None:
    message = f"{what} after round {number} could not be told, and the rounds go on: {why}"
    debate.note(f"{key}/warning", Warned(" ".join(message.split())))


def _schema(spec: DebateSpec, agents: Sequence[str]) -> str:
    schema: dict[str, Any] = _Scores.model_json_schema()
    labels = [label(spec, agent) for agent in agents]
    schema["properties"]["scores"] = {
        "type": "object",
        "properties": {each: {"type": "integer", "minimum": 0, "maximum": 100} for each in labels},
        "required": labels,
        "additionalProperties": False,
    }
    return canonical_json(schema)
