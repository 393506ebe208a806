"""Rebuttals: one debater after the other answers points of the others by name, and says where it stands now."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.formats.moderated.points import (
    Point,
    Position,
    Speech,
    find_point,
    number_points,
    parse_letter,
    points_by_name,
    quote_from,
)
from parley.orchestrator.formats.moderated.standing import RoundBriefing, count_written_tokens
from parley.orchestrator.formats.moderated.words import REBUTTAL, quote_round
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import AnswerShape, Task, user_part
from parley.orchestrator.phases.prompting import length_limit
from parley.orchestrator.phases.schemas import default_if_invalid, extract_text, prompt_schema, schema_text
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Reply
from parley.v1.event_pb2 import StepFailed

_MAX_ANSWERS: Final = 5
_TASK: Final = (
    "Answer what the others said in this round. Choose the points that matter most for the decision, at most {most}, and among them"
    " those that tell against you. Name each point as it is named in this round, such as {example}; quote the words that you answer; then say in two to four"
    " sentences why they do not hold, hold only in part, or are right. Say of each whether you concede it. Do not answer what"
    " others have answered already unless you add to it.\n"
    "Then say where you stand now: your position in one sentence, changed if you were convinced, and the agents whose"
    " recommendation you could go along with as it is."
)


class _AnswerSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    point: Annotated[str, Field(description="The name of the point.")]
    quote: Annotated[str, Field(description="Its words that you answer.")]
    answer: str
    concedes: Annotated[bool, Field(description="Whether you grant the point.")]


class _RebuttalSchema(BaseModel):
    """A rebuttal as it is asked for."""

    model_config = ConfigDict(extra="forbid")

    answers: Annotated[list[_AnswerSchema], Field(max_length=_MAX_ANSWERS)]
    position: Annotated[str, Field(min_length=1, description="Where you stand now, in one sentence.")]
    agrees_with: Annotated[
        list[str], Field(description="Letters of agents whose recommendation you could go along with.")
    ]


class ParsedAnswer(BaseModel):
    """An answer to a point as it is read."""

    point: str = ""
    quote: str = ""
    answer: Annotated[str, Field(min_length=1)]
    concedes: bool = False

    _default_if_invalid = field_validator("point", "quote", "concedes", mode="wrap")(default_if_invalid)


class Rebuttal(BaseModel):
    """A rebuttal as it is read; what was not given, or makes no sense, is absent."""

    answers: list[ParsedAnswer] = []
    position: Position = ""
    agrees_with: list[str] | None = None

    _default_if_invalid = field_validator("*", mode="wrap")(default_if_invalid)

    @field_validator("answers", mode="before")
    @classmethod
    def _keep_valid(cls, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        fine = [each for each in given if isinstance(each, Mapping) and str(each.get("answer") or "").strip()]
        return fine[:_MAX_ANSWERS]

    @model_validator(mode="after")
    def _check_not_empty(self) -> "Rebuttal":
        if not self.answers and not self.position:
            raise ValueError("it says nothing")
        return self


async def rebut(
    debate: Debate, agent: Agent, standing: RoundBriefing, said: Sequence[Speech], limit: int
) -> Speech | StepFailed:
    """Ask a debater to answer what was `said` in the round so far, in so many tokens at most (0: no limit).

    Names of points that do not exist, or are its own, are dropped, and the debate says so. If it keeps to no form,
    what it wrote is its one answer.
    """
    number, letter = standing.number, debate.letter(agent.id)
    others = {name: point for name, point in points_by_name(said).items() if point.agent != agent.id}
    first = 1 + sum(len(each.points) for each in said if each.contribution.agent == agent.id)
    task_text = _TASK.format(most=_MAX_ANSWERS, example=next(iter(others), "B.1"))
    prompt = (
        *(await standing.create_preamble(debate, agent)),
        *quote_round(debate, [each.contribution for each in said], agent.id),
        user_part(f"{task_text}{length_limit(limit)}"),
    )
    letters = [debate.letter(each.contribution.agent) for each in said if each.contribution.agent != agent.id]
    schema = _schema(list(others), list(dict.fromkeys(letters)))
    render, annotate = partial(_render, letter, first, others), partial(_annotate, others)
    shape = AnswerShape("rebuttal", Rebuttal, schema, render, _from_prose, annotate)
    key, work = f"round/{number}/rebut/{agent.id}", REBUTTAL.create_work(agent.id, number)
    made = await debate.ask_structured(key, agent, Task(work, prompt, limit, retry_once=True), shape)
    if isinstance(made, StepFailed):
        return made
    answered = [find_point(each.point, others) for each in made.answers]
    pairs = list(zip(made.answers, answered, strict=True))
    unknown = [each.point for each, point in pairs if point is None and each.point.strip()]
    if unknown:
        named = ", ".join(" ".join(each.split())[:20] for each in unknown)
        message = f"{agent.name} answers in round {number} what nobody else said, and that is not counted as an answer: {named}"
        debate.warn(key, message)
    tokens, truncated = count_written_tokens(debate, work)
    return Speech(
        key,
        Contribution(agent.id, REBUTTAL.name, number, shape.render(made), made.position),
        number_points(
            letter,
            key,
            agent.id,
            first,
            [each.answer.strip() for each in made.answers],
            [point.name if point else "" for point in answered],
        ),
        agrees_with=_find_agreement(made, letters),
        concedes=tuple(point.name for each, point in pairs if each.concedes and point),
        tokens=tokens,
        limit=limit,
        truncated=truncated,
    )


def _find_agreement(made: Rebuttal, letters: Sequence[str]) -> frozenset[str] | None:
    """Return with which of the others it could go along; None if it does not say: that is no disagreement."""
    return (
        None
        if made.agrees_with is None
        else frozenset(map(parse_letter, made.agrees_with)) & frozenset(letters)
    )


def _find_answered_points(made: Rebuttal, points: Mapping[str, Point]) -> list[Point]:
    """Return the points that a rebuttal answers, each once."""
    found = (find_point(each.point, points) for each in made.answers)
    return list({point.name: point for point in found if point is not None}.values())


def _from_prose(text: str) -> Rebuttal:
    """Return the rebuttal that a text is which keeps to no form. Raises ValidationError if it has no words."""
    return Rebuttal.model_validate({"answers": [{"answer": extract_text(text)}]})


def _annotate(points: Mapping[str, Point], made: Rebuttal, reply: Reply) -> None:
    reply.position = made.position or reply.position
    reply.in_reply_to.extend(point.reference for point in _find_answered_points(made, points))


def _render(letter: str, first: int, points: Mapping[str, Point], made: Rebuttal) -> str:
    """Return a rebuttal as others read it: each answer has a name of its own, and quotes the point that it answers."""
    blocks = []
    for number, each in enumerate(made.answers, start=first):
        point = find_point(each.point, points)
        to = ""
        if point is not None:
            grants = ", conceded" if each.concedes else ""
            to = f" (to {point.name}{grants}: “{quote_from(point, each.quote)}”)"
        blocks.append(f"{letter}.{number}{to}: {each.answer.strip()}")
    if made.position:
        blocks.append(f"Stands now: {made.position}")
    return "\n\n".join(blocks)


def _schema(names: Sequence[str], letters: Sequence[str]) -> str:
    """Return what is asked for: only points that there are can be named, if the model keeps to the form."""
    schema = prompt_schema(_RebuttalSchema)
    properties = schema["properties"]
    if names:
        properties["answers"]["items"]["properties"]["point"]["enum"] = list(names)
    properties["agrees_with"]["items"]["enum"] = list(letters)
    return schema_text(schema)
