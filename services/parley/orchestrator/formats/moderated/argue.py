"""Arguments: each debater makes its perspective's case on the question of the round, in numbered points."""

from functools import partial
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.formats.moderated.points import Position, Speech, number_points
from parley.orchestrator.formats.moderated.standing import RoundBriefing, count_written_tokens
from parley.orchestrator.formats.moderated.words import ARGUMENT
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import AnswerShape, Task, user_part
from parley.orchestrator.phases.past import PAST_FOR_AUTHORS
from parley.orchestrator.phases.prompting import length_limit
from parley.orchestrator.phases.schemas import default_if_invalid, extract_text, prompt_schema, schema_text
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Reply
from parley.v1.event_pb2 import StepFailed

CONCURRENCY: Final = "arguments"
_MAX_POINTS: Final = 5
_FIRST: Final = "Argue your perspective's case."
_FURTHER: Final = (
    "Argue your perspective's case on what is open now. Take the debate further: bring new reasons, answer what stands against you,"
    " move where you were convinced. What you said in earlier rounds is known and need not be said again."
)
_TASK: Final = (
    "Give your position on the question in one sentence. Then your points, the strongest first and at most"
    f" {_MAX_POINTS}: each one reason that stands by itself, with why it matters here, in two to four sentences. Last, what you"
    " would give up for your position: name the price, do not play it down."
)


class _ArgumentSchema(BaseModel):
    """An argument as it is asked for."""

    model_config = ConfigDict(extra="forbid")

    position: Annotated[str, Field(min_length=1, description="Your answer to the question, in one sentence.")]
    points: Annotated[
        list[str],
        Field(
            min_length=1,
            max_length=_MAX_POINTS,
            description="Each without a number in front of it: the points are numbered later.",
        ),
    ]
    gives_up: Annotated[list[str], Field(max_length=_MAX_POINTS, description="What you would give up.")]


_SCHEMA: Final = schema_text(prompt_schema(_ArgumentSchema))


class Argument(BaseModel):
    """An argument as it is read; what was not given, or makes no sense, is absent."""

    position: Position = ""
    points: list[str] = []
    gives_up: list[str] = []

    _default_if_invalid = field_validator("*", mode="wrap")(default_if_invalid)

    @field_validator("points", "gives_up", mode="before")
    @classmethod
    def _keep_texts(cls, given: Any) -> Any:
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list):
            return given
        return [each.strip() for each in texts if isinstance(each, str) and each.strip()][:_MAX_POINTS]

    @model_validator(mode="after")
    def _check_not_empty(self) -> "Argument":
        if not self.points and not self.position:
            raise ValueError("it says nothing")
        return self


def argument_key(number: int, agent: str) -> str:
    """Return the key of an agent's argument in a round."""
    return f"round/{number}/argue/{agent}"


async def argue(debate: Debate, agent: Agent, standing: RoundBriefing) -> Speech | StepFailed:
    """Ask a debater for its argument. If it keeps to no form, what it wrote is its one point."""
    number, limit = standing.number, standing.argument_tokens
    asked = _FIRST if number == 1 else _FURTHER
    of_past = f" {PAST_FOR_AUTHORS}" if number == 1 and standing.past else ""
    prompt = (
        *(await standing.create_preamble(debate, agent)),
        user_part(f"{asked} {_TASK}{of_past}{length_limit(limit)}"),
    )
    letter = debate.letter(agent.id)
    shape = AnswerShape("argument", Argument, _SCHEMA, partial(_render, letter), _from_prose, _annotate)
    work, key = ARGUMENT.create_work(agent.id, number), argument_key(number, agent.id)
    task = Task(work, prompt, limit, concurrency=CONCURRENCY)
    made = await debate.ask_structured(key, agent, task, shape)
    if isinstance(made, StepFailed):
        return made
    tokens, truncated = count_written_tokens(debate, work)
    return Speech(
        key,
        Contribution(agent.id, ARGUMENT.name, number, shape.render(made), made.position),
        number_points(letter, key, agent.id, 1, made.points),
        tuple(made.gives_up),
        tokens=tokens,
        limit=limit,
        truncated=truncated,
    )


def _from_prose(text: str) -> Argument:
    """Return the argument that a text is which keeps to no form. Raises ValidationError if it has no words."""
    return Argument(points=[extract_text(text)])


def _annotate(made: Argument, reply: Reply) -> None:
    reply.position = made.position or reply.position


def _render(letter: str, made: Argument) -> str:
    """Return an argument as others read it: its points by their names, which they are answered by."""
    blocks = [made.position] if made.position else []
    blocks += [f"{letter}.{number}: {each}" for number, each in enumerate(made.points, start=1)]
    if made.gives_up:
        blocks.append("\n".join(["Would give up:", *(f"- {each}" for each in made.gives_up)]))
    return "\n\n".join(blocks)
