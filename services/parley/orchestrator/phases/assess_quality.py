"""Quality after a round, as the judge scores it: whether the work is good enough to end the rounds."""

from collections.abc import Sequence

from pydantic import BaseModel

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task, user_part
from parley.orchestrator.phases.prompting import instruction
from parley.orchestrator.phases.schemas import schema_text
from parley.orchestrator.phases.scoring import score_anchors, scores_schema
from parley.orchestrator.phases.situation import bench, present_work, start
from parley.v1.debate_pb2 import STOP_REASON_QUALITY_REACHED
from parley.v1.event_pb2 import RoundAssessed, RoundsEnded, StepFailed, Warned

__all__ = ["ASSESSMENT", "SECTION", "quality_ends_rounds"]

ASSESSMENT = Activity("assessment", "scores the work", "Assessments", title="scores for the work")
SECTION = "assess"
_BEST = 100


class _Scores(BaseModel):
    scores: dict[str, float]


async def quality_ends_rounds(
    debate: Debate, number: int, work: Sequence[Contribution], threshold: int, requirements: str = ""
) -> RoundsEnded | None:
    """Return why the rounds end, since the judge scores the best work at the threshold, 0 to 100, or above; else None.

    Where that cannot be told, the rounds go on, and the debate says so.
    """
    judge = debate.spec.judge
    key = f"round/{number}/quality"
    letters = [debate.letter(each.agent) for each in work]
    told = f"Score the present proposal of every agent from 0 to {_BEST}.\n{score_anchors(_BEST, of_one=len(work) == 1)}"
    prompt = (
        *start(debate, judge, requirements),
        user_part(bench(debate)),
        *present_work(debate, work, "Present proposal"),
        instruction(judge, SECTION, told),
    )
    task = Task(ASSESSMENT.create_work(judge.id, number), prompt)
    shape = AnswerShape("assessment", _Scores, _schema(letters), _render)
    scored = await debate.ask_structured(key, judge, task, shape)
    if isinstance(scored, StepFailed) or not scored.scores.keys() >= set(letters):
        why = scored.message if isinstance(scored, StepFailed) else "an agent has no score"
        message = f"quality after round {number} could not be told, and the rounds go on: {why}"
        debate.record_event(f"{key}/warning", Warned(message=" ".join(message.split())))
        return None
    best = max(scored.scores[letter] for letter in letters)
    finding = f"the judge scores the best work {best:.0f} of 100 (threshold {threshold})"
    ends = best >= threshold
    debate.record_event(f"{key}/finding", RoundAssessed(round=number, ends_rounds=ends, finding=finding))
    return RoundsEnded(reason=STOP_REASON_QUALITY_REACHED, explanation=finding) if ends else None


def _render(answer: _Scores) -> str:
    return "\n".join(f"- agent {letter}: {score:g} of 100" for letter, score in sorted(answer.scores.items()))


def _schema(letters: Sequence[str]) -> str:
    return schema_text(
        {
            "type": "object",
            "properties": {"scores": scores_schema(letters, _BEST)},
            "required": ["scores"],
            "additionalProperties": False,
        }
    )
