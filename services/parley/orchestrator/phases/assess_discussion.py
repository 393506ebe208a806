"""The discussion after a round, as the judge sees it: whether more of it is of use."""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task, user_part
from parley.orchestrator.phases.prompting import quotation
from parley.orchestrator.phases.schemas import asked_schema, schema_text
from parley.orchestrator.phases.situation import bench, present_work, start
from parley.v1.debate_pb2 import STOP_REASON_JUDGE
from parley.v1.event_pb2 import RoundAssessed, RoundsEnded, StepFailed, Warned

__all__ = ["DISCUSSION", "judge_ends_rounds"]

DISCUSSION = Activity("discussion", "looks at the discussion", "Discussion", title="look at the discussion")
_TOLD: Final = (
    "The agents discuss these proposals round by round, and then vote on them. Say whether one more round of revisions is of use."
    " It is, if it would probably change which proposal is best or mend a serious flaw of a good one. It is not, if the agents"
    " say the same thing, only repeat themselves, or differ in what no further argument will settle. Do not judge who is right."
)


class _Discussion(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: Annotated[str, Field(description="Why, in a sentence.")]
    more_is_of_use: Annotated[bool, Field(strict=True, description="Whether one more round is of use.")]


_SCHEMA: Final = schema_text(asked_schema(_Discussion))


async def judge_ends_rounds(
    debate: Debate,
    judge: AgentSpec,
    number: int,
    work: Sequence[Contribution],
    issues: str,
    requirements: str,
) -> RoundsEnded | None:
    """Return why the rounds end, since the judge finds more discussion of no use; None where they go on.

    A judge that fails or is late does not hold up the debate: the rounds go on, and the debate says so.
    """
    key = f"round/{number}/discussion"
    prompt = (
        *start(debate, judge, requirements),
        user_part(bench(debate)),
        *([quotation("What was criticized, and what became of it", issues)] if issues else []),
        *present_work(debate, work, "Present proposal"),
        user_part(f"Round {number} is over. {_TOLD}"),
    )
    task = Task(DISCUSSION.create_work(judge.id, number), prompt)
    said = await debate.ask_structured(
        key, judge, task, AnswerShape("discussion", _Discussion, _SCHEMA, _rendered)
    )
    if isinstance(said, StepFailed):
        why = " ".join(said.message.split())
        message = f"the judge did not say after round {number} whether to go on, and the rounds go on: {why}"
        debate.record_event(f"{key}/warning", Warned(message=message))
        return None
    reason = " ".join(said.reason.split())
    finding = f"the judge finds more discussion of {'use' if said.more_is_of_use else 'no use'}: {reason}"
    debate.record_event(
        f"{key}/finding", RoundAssessed(round=number, ends_rounds=not said.more_is_of_use, finding=finding)
    )
    return None if said.more_is_of_use else RoundsEnded(reason=STOP_REASON_JUDGE, explanation=finding)


def _rendered(said: _Discussion) -> str:
    return f"More discussion is of {'use' if said.more_is_of_use else 'no use'}: {said.reason}"
