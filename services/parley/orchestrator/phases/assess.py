"""What the judge says of a round: whether the work is good enough, whether more discussion is of use, and what is supported."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task, user_part
from parley.orchestrator.phases.prompting import instruction, quotation
from parley.orchestrator.phases.schemas import Line, prompt_schema, schema_text, valid_items
from parley.orchestrator.phases.scoring import score_anchors, scores_schema
from parley.orchestrator.phases.situation import common_preamble, describe_agents, quote_work
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import STOP_REASON_JUDGE, STOP_REASON_QUALITY_REACHED
from parley.v1.event_pb2 import RoundAssessed, RoundsEnded, StepFailed

ASSESSMENT = Activity("assessment", "scores the work", "Assessments", title="scores for the work")
SECTION = "assess"
_BEST = 100


class _Scores(BaseModel):
    scores: dict[str, Annotated[float, Field(ge=0, le=_BEST)]]


async def find_end_by_quality(
    debate: Debate, number: int, work: Sequence[Contribution], threshold: int, requirements: str
) -> RoundsEnded | None:
    """Return why the rounds end, since the judge scores the best work at the threshold, 0 to 100, or above; else None.

    If that is not known, the rounds go on, and the debate says so.
    """
    judge = debate.judge
    key = f"round/{number}/quality"
    letters = [debate.letter(each.agent) for each in work]
    task_text = f"Score the present proposal of every agent from 0 to {_BEST}.\n{score_anchors(_BEST, of_one=len(work) == 1)}"
    prompt = (
        *common_preamble(debate, judge, requirements),
        user_part(describe_agents(debate)),
        *quote_work(debate, work, "Present proposal"),
        instruction(debate, judge, SECTION, task_text),
    )
    task = Task(ASSESSMENT.create_work(judge.id, number), prompt)
    shape = AnswerShape("assessment", _Scores, _create_scores_schema(letters), _render_scores)
    scored = await debate.ask_structured(key, judge, task, shape)
    if isinstance(scored, StepFailed) or not scored.scores.keys() >= set(letters):
        why = scored.message if isinstance(scored, StepFailed) else "an agent has no score"
        debate.warn(key, f"quality after round {number} could not be told, and ends no rounds: {why}")
        return None
    best = max(scored.scores[letter] for letter in letters)
    finding = f"the judge scores the best work {best:.0f} of 100 (threshold {threshold})"
    ends = best >= threshold
    debate.record_event(f"{key}/finding", RoundAssessed(round=number, ends_rounds=ends, finding=finding))
    return RoundsEnded(reason=STOP_REASON_QUALITY_REACHED, explanation=finding) if ends else None


def _render_scores(answer: _Scores) -> str:
    return "\n".join(f"- agent {letter}: {score:g} of 100" for letter, score in sorted(answer.scores.items()))


def _create_scores_schema(letters: Sequence[str]) -> str:
    return schema_text(
        {
            "type": "object",
            "properties": {"scores": scores_schema(letters, _BEST)},
            "required": ["scores"],
            "additionalProperties": False,
        }
    )


DISCUSSION = Activity("discussion", "looks at the discussion", "Discussion", title="look at the discussion")
_DISCUSSION_PROMPT: Final = (
    "The agents discuss these proposals round by round, and then vote on them. Say whether one more round of revisions is of use."
    " It is, if it would probably change which proposal is best or mend a serious flaw of a good one. It is not, if the agents"
    " say the same thing, only repeat themselves, or differ in what no further argument will settle. Do not judge who is right."
)


class _DiscussionAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: Annotated[str, Field(description="Why, in a sentence.")]
    more_is_of_use: Annotated[bool, Field(strict=True, description="Whether one more round is of use.")]


_DISCUSSION_SCHEMA: Final = schema_text(prompt_schema(_DiscussionAnswer))


async def find_end_by_judge(
    debate: Debate, judge: Agent, number: int, work: Sequence[Contribution], issues: str, requirements: str
) -> RoundsEnded | None:
    """Return why the rounds end, since the judge finds more discussion of no use; None if they go on.

    A judge that fails or is late does not hold up the debate: the rounds go on, and the debate says so.
    """
    key = f"round/{number}/discussion"
    prompt = (
        *common_preamble(debate, judge, requirements),
        user_part(describe_agents(debate)),
        *([quotation("What was criticized, and what became of it", issues)] if issues else []),
        *quote_work(debate, work, "Present proposal"),
        user_part(f"Round {number} is over. {_DISCUSSION_PROMPT}"),
    )
    task = Task(DISCUSSION.create_work(judge.id, number), prompt)
    said = await debate.ask_structured(
        key, judge, task, AnswerShape("discussion", _DiscussionAnswer, _DISCUSSION_SCHEMA, _render_discussion)
    )
    if isinstance(said, StepFailed):
        why = said.message
        message = f"the judge did not say after round {number} whether to go on, and ends no rounds: {why}"
        debate.warn(key, message)
        return None
    reason = " ".join(said.reason.split())
    finding = f"the judge finds more discussion of {'use' if said.more_is_of_use else 'no use'}: {reason}"
    debate.record_event(
        f"{key}/finding", RoundAssessed(round=number, ends_rounds=not said.more_is_of_use, finding=finding)
    )
    return None if said.more_is_of_use else RoundsEnded(reason=STOP_REASON_JUDGE, explanation=finding)


def _render_discussion(said: _DiscussionAnswer) -> str:
    return f"More discussion is of {'use' if said.more_is_of_use else 'no use'}: {said.reason}"


SUPPORT = Activity("support", "looks at the evidence", "Evidence given", title="look at the evidence")
_MAX_SUPPORT: Final = 10
SUPPORT_PROMPT: Final = (
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
    support: Annotated[int, Field(ge=0, le=_MAX_SUPPORT)]


class _SupportSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    proposals: Annotated[list[_AskedProposal], Field(description="Every proposal once.")]
    missing: Annotated[str, Field(description="The claim without support; empty if there is none.")]


class _ReadProposal(BaseModel):
    support: Annotated[float, Field(strict=True, ge=0, le=_MAX_SUPPORT, allow_inf_nan=False)]


class Support(BaseModel):
    """What the judge said, as it is read; a proposal whose support makes no sense is left out. At least one makes sense.

    Attributes:
        missing: What has no support, in words.
    """

    proposals: list[_ReadProposal]
    missing: Line = ""

    @field_validator("proposals", mode="before")
    @classmethod
    def _keep_valid(cls, given: Any) -> Any:
        read = valid_items(_ReadProposal, given)
        if not read:
            raise ValueError("it says of no proposal how well it is supported")
        return read

    @property
    def mean(self) -> float:
        """The mean over the proposals, 0 to 10."""
        return sum(each.support for each in self.proposals) / len(self.proposals)


async def assess_support(
    debate: Debate, judge: Agent, number: int, work: Sequence[Contribution], requirements: str
) -> Support | None:
    """Return what the judge says of the evidence that the proposals give; None, with a warning, if it does not say."""
    key = f"round/{number}/support"
    prompt = (
        *common_preamble(debate, judge, requirements),
        user_part(describe_agents(debate)),
        *quote_work(debate, work, "Present proposal"),
        user_part(f"Round {number} is over. {SUPPORT_PROMPT}"),
    )
    shape = AnswerShape(
        "support",
        Support,
        _create_support_schema([debate.letter(each.agent) for each in work]),
        _render_support,
    )
    said = await debate.ask_structured(key, judge, Task(SUPPORT.create_work(judge.id, number), prompt), shape)
    if isinstance(said, StepFailed):
        why = said.message
        message = f"the judge did not say after round {number} what evidence there is, and the texts alone count: {why}"
        debate.warn(key, message)
        return None
    return said


def _render_support(said: Support) -> str:
    summary = f"The proposals support what they say to {said.mean:.1f} of {_MAX_SUPPORT}."
    return f"{summary} Without support: {said.missing}" if said.missing else summary


def _create_support_schema(letters: Sequence[str]) -> str:
    schema = prompt_schema(_SupportSchema)
    proposals = schema["properties"]["proposals"]
    proposals["minItems"] = proposals["maxItems"] = len(letters)
    proposals["items"]["properties"]["agent"]["enum"] = list(letters)
    return schema_text(schema)
