"""The judge of proposals: it scores and ranks every one, and says whether the discussion was sufficient."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task, user_part
from parley.orchestrator.phases.failing import answer_failure
from parley.orchestrator.phases.prompting import quotation, unsupported_claims
from parley.orchestrator.phases.schemas import (
    StrippedText,
    YesOrNo,
    extract_text,
    number_or_none,
    prompt_schema,
    schema_text,
    valid_items,
    whole_or_none,
)
from parley.orchestrator.phases.scoring import score_anchors
from parley.orchestrator.phases.situation import call_by_letters, common_preamble, describe_agents, quote_work
from parley.v1.agent_pb2 import Agent
from parley.v1.arena_pb2 import RankedProposal
from parley.v1.event_pb2 import StepFailed

JUDGEMENT = Activity("judgement", "judges the proposals", "Judgement")
_MAX_SCORE: Final = 10
_MAX_POSITIONS: Final = 32
_TASK: Final = (
    "You judge these proposals; you take no part in the vote over them, and how it went is kept from you. Rank all of them, the"
    f" best first, and score each from 0 to {_MAX_SCORE}, with the reason in a sentence or two: what decides its place, and not"
    " a summary of it."
)
_SUFFICIENT: Final = (
    "Then say whether the discussion was sufficient. It was not where one more round of critiques and revisions would probably"
    " change which proposal is best, or mend a serious flaw of the best one: an open issue of weight, a stated requirement that"
    " is unmet and could be met, a question between the proposals that nobody has taken up. That more could be said about"
    " everything is no reason. Where it was not, name what the agents have to settle."
)
_POSITIONS: Final = "Positions that were taken before anyone had read another's proposal"
_CHOOSE: Final = (
    "Last, choose the one of the numbered positions that you hold to be right. They were taken before the debate, and some may"
    " have been given up since. Judge the answer itself, and not how many take it, how it is argued, or whether anyone still"
    " does. Give its number, or 0 where none of them is right, how sure you are from 0 to 1, and the reason in"
    " a sentence or two."
)


class _ProposalSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    agent: Annotated[str, Field(description="The letter of its agent.")]
    reason: Annotated[str, Field(description="What decides its place, in a sentence or two.")]
    score: Annotated[int, Field(ge=0, le=_MAX_SCORE)]


class _JudgementSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ranking: Annotated[list[_ProposalSchema], Field(description="Every proposal once, the best first.")]
    sufficient: Annotated[bool, Field(description="Whether the discussion was sufficient.")]
    missing: Annotated[str, Field(description="What the agents have to settle; empty if it was sufficient.")]


class _ChoiceSchema(_JudgementSchema):
    position: Annotated[
        int, Field(ge=0, description="The number of the position that you hold to be right; 0: none is.")
    ]
    position_confidence: Annotated[float, Field(ge=0, le=1, description="How sure you are of it.")]
    position_reason: Annotated[str, Field(description="Why, in a sentence or two.")]


class _ParsedProposal(BaseModel):
    agent: str
    score: float | None = None
    reason: StrippedText = ""

    @field_validator("agent")
    @classmethod
    def _parse_letter(cls, given: str) -> str:
        return given.strip().upper().removeprefix("AGENT").strip()

    @field_validator("score", mode="before")
    @classmethod
    def _read_score(cls, given: Any) -> float | None:
        return number_or_none(given, 0, _MAX_SCORE)


class Judgement(BaseModel):
    """What a judge said, as it is read. What was not given, or makes no sense, is absent and never made up.

    Attributes:
        position: The number of the first position that it finds to be right, from 1, if it was asked; 0: none is.
        position_confidence: How sure it is of it, 0 to 1; 0 also if it did not say.
    """

    ranking: list[_ParsedProposal] = []
    sufficient: YesOrNo = None
    missing: StrippedText = ""
    position: int | None = None
    position_confidence: float = 0.0
    position_reason: StrippedText = ""

    @field_validator("ranking", mode="before")
    @classmethod
    def _keep_valid(cls, given: Any) -> Any:
        found: dict[str, _ParsedProposal] = {}
        for each in valid_items(_ParsedProposal, given):
            found.setdefault(each.agent, each)
        return list(found.values())

    @field_validator("position", mode="before")
    @classmethod
    def _read_position(cls, given: Any) -> int | None:
        return whole_or_none(given, 0, _MAX_POSITIONS)

    @field_validator("position_confidence", mode="before")
    @classmethod
    def _read_confidence(cls, given: Any) -> float:
        return number_or_none(given, 0, 1) or 0.0

    @model_validator(mode="after")
    def _check_not_empty(self) -> Self:
        if not self._says_something():
            raise ValueError("it says nothing")
        return self

    def _says_something(self) -> bool:
        return bool(self.ranking) or self.sufficient is not None


class ProseJudgement(Judgement):
    """What a judge wrote in place of a judgement of the form that was asked for."""

    said: Annotated[str, Field(min_length=1)]

    def _says_something(self) -> bool:
        return True


def rank_proposals(judgement: Judgement, letters: Mapping[str, str]) -> list[RankedProposal]:
    """Return the proposals that a judge ranked, by score and then in its own order; `letters` are those it was shown.

    A score that goes against the judge's own order counts more than the order: scores have words that say what they mean.
    """
    known = [each for each in judgement.ranking if each.agent in letters]
    ordered = sorted(known, key=lambda each: math.inf if each.score is None else -each.score)
    return [
        RankedProposal(agent_id=letters[each.agent], score=each.score, reason=each.reason) for each in ordered
    ]


async def judge_proposals(
    debate: Debate,
    judge: Agent,
    number: int,
    work: Sequence[Contribution],
    issues: str,
    requirements: str,
    positions: Sequence[str],
) -> Judgement:
    """Return what the judge makes of the proposals. `issues`: what was criticized in them, with what became of it.

    It chooses among `positions`, which it is shown numbered, if there are any.

    A judge that fails says nothing, and the debate says so. Raise DebateFailedError while it is waited for, since that may pass.
    """
    letters = [debate.letter(each.agent) for each in work]
    chooses = [_CHOOSE] if positions else []
    prompt = (
        *common_preamble(debate, judge, requirements),
        user_part(describe_agents(debate)),
        *([quotation("What was criticized, and what became of it", issues)] if issues else []),
        *quote_work(debate, work, "Proposal"),
        *(part for each in work for part in unsupported_claims(each, f"agent {debate.letter(each.agent)}")),
        *([quotation(_POSITIONS, _number_lines(positions))] if positions else []),
        user_part("\n".join([_TASK, score_anchors(_MAX_SCORE), _SUFFICIENT, *chooses])),
    )
    key = f"round/{number}/judge"
    task = Task(JUDGEMENT.create_work(judge.id, number), prompt)
    shape = AnswerShape(
        "judgement",
        Judgement,
        _schema(letters, len(positions)),
        partial(_render, positions),
        _judgement_from_prose,
    )
    made = await debate.ask_structured(key, judge, task, shape)
    if isinstance(made, StepFailed):
        failure = answer_failure(debate, {key: made}, JUDGEMENT.name)
        if failure.steps_to_wait_for and not debate.ending:
            raise failure
        debate.warn(key, f"the judge has scored nobody: {made.message}")
        return Judgement.model_construct()
    if isinstance(made, ProseJudgement):
        debate.warn(
            key,
            "the judge's judgement is not of the form that was asked for: it is shown as it was written, and scores nobody",
        )
        return made
    _check_judgement(debate, key, made, letters, len(positions))
    return made


def _check_judgement(
    debate: Debate, key: str, made: Judgement, letters: Sequence[str], positions: int
) -> None:
    """Warn of what a judgement leaves out. A choice that is none of so many positions is taken out of it."""
    absent = [
        letter
        for letter in letters
        if not any(each.agent == letter and each.score is not None for each in made.ranking)
    ]
    if absent:
        debate.warn(key, f"the judge gave no score to {call_by_letters(absent)}")
    if positions and (made.position is None or made.position > positions):
        message = "the judge did not say which of the first positions is right: it casts no ballot"
        debate.warn(f"{key}/choice", message)
        made.position = None


def _number_lines(positions: Sequence[str]) -> str:
    return "\n".join(f"{number}. {' '.join(each.split())}" for number, each in enumerate(positions, start=1))


def _judgement_from_prose(text: str) -> ProseJudgement:
    """Return what a judge wrote that kept to no form. Raises ValidationError if it has no words."""
    return ProseJudgement(said=extract_text(text))


def _render(positions: Sequence[str], judgement: Judgement) -> str:
    if isinstance(judgement, ProseJudgement):
        return judgement.said
    lines = [
        f"- agent {each.agent}: {'no score' if each.score is None else f'{each.score:g} of {_MAX_SCORE}'}"
        f"{': ' if each.reason else ''}{each.reason}"
        for each in judgement.ranking
    ]
    if judgement.sufficient is not None:
        lines.append(
            "The discussion was sufficient." if judgement.sufficient else "The discussion was not sufficient."
        )
    if judgement.missing:
        lines.append(f"Still to be settled: {judgement.missing}")
    if judgement.position == 0:
        lines.append(f"It holds none of the first positions to be right: {judgement.position_reason}")
    elif judgement.position is not None and judgement.position <= len(positions):
        chosen = " ".join(positions[judgement.position - 1].split())
        lines.append(
            f"Of the first positions it holds this one to be right, {judgement.position_confidence:.0%} sure:"
            f" “{chosen}” {judgement.position_reason}"
        )
    return "\n".join(lines)


def _schema(letters: Sequence[str], positions: int) -> str:
    schema = prompt_schema(_ChoiceSchema if positions else _JudgementSchema)
    if positions:
        schema["properties"]["position"]["maximum"] = positions
    ranking = schema["properties"]["ranking"]
    ranking["minItems"] = ranking["maxItems"] = len(letters)
    ranking["items"]["properties"]["agent"]["enum"] = list(letters)
    return schema_text(schema)
