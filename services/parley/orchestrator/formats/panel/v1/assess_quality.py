"""Quality after a round, as the judge scores it: whether the work is good enough to end the rounds."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.formats.panel.v1.prompting import instruction, preamble, quotation
from parley.orchestrator.formats.panel.v1.quoting import quoted
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task
from parley.v1.event_pb2 import RoundAssessed, StepFailed, Warned

__all__ = ["ASSESSMENT", "SECTION", "quality_ends_rounds"]

ASSESSMENT = Activity("assessment", "scores the work", "Assessments", title="scores for the work")
SECTION = "assess"


class _Scores(BaseModel):
    model_config = ConfigDict(extra="forbid")

    scores: Annotated[
        dict[str, float], Field(description="The score of each agent's present work, 0 to 100.")
    ]


async def quality_ends_rounds(
    debate: Debate, number: int, work: Sequence[Contribution], threshold: int
) -> bool:
    """Return whether the judge scores the best of the present work at the threshold, 0 to 100, or above.

    Where that cannot be told, the rounds go on, and the debate says so.
    """
    judge = debate.spec.judge
    key = f"round/{number}/quality"
    letters = [debate.letter(each.agent) for each in work]
    told = f"Score the present work of every agent ({', '.join(letters)}) from 0 to 100."
    prompt = (
        *preamble(debate, judge),
        quotation("The present proposals", quoted(debate.letter, work)),
        instruction(judge, SECTION, told),
    )
    task = Task(ASSESSMENT.create_work(judge.id, number), prompt)
    shape = AnswerShape("assessment", _Scores, _schema(letters), _render)
    scored = await debate.ask_structured(key, judge, task, shape)
    if isinstance(scored, StepFailed) or not scored.scores.keys() >= set(letters):
        why = scored.message if isinstance(scored, StepFailed) else "an agent has no score"
        message = f"quality after round {number} could not be told, and the rounds go on: {why}"
        debate.record_event(f"{key}/warning", Warned(message=" ".join(message.split())))
        return False
    best = max(scored.scores[letter] for letter in letters)
    finding = f"the judge scores the best work {best:.0f} of 100 (threshold {threshold})"
    ends = best >= threshold
    debate.record_event(f"{key}/finding", RoundAssessed(round=number, ends_rounds=ends, finding=finding))
    return ends


def _render(answer: _Scores) -> str:
    return "\n".join(f"- agent {letter}: {score:g} of 100" for letter, score in sorted(answer.scores.items()))


def _schema(letters: Sequence[str]) -> str:
    schema: dict[str, Any] = _Scores.model_json_schema()
    schema["properties"]["scores"] = {
        "type": "object",
        "properties": {each: {"type": "integer", "minimum": 0, "maximum": 100} for each in letters},
        "required": list(letters),
        "additionalProperties": False,
    }
    return json.dumps(schema, sort_keys=True)
