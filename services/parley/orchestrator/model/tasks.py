"""What an agent is asked to do in one step."""

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from msgspec import Struct
from pydantic import BaseModel, ValidationError

from parley.runtime.held_texts import HeldText, find_text
from parley.v1.debate_pb2 import Reply, Work
from parley.v1.gateway_pb2 import PROMPT_ROLE_SYSTEM, PROMPT_ROLE_USER, PromptPart
from parley.v1.source_pb2 import Passage

M = TypeVar("M", bound=BaseModel)

BALLOT: Final = "vote"
"""The activity of a ballot: it is asked for in spite of limits, as the answer is, and is not the answer."""


class Activity(Struct, frozen=True):
    """What a phase does, for programs and for people.

    Attributes:
        name: A word for programs, such as `critique`.
        doing: What an agent, or a service, is at, such as `criticizes`.
        heading: Over the contributions of the phase in a report; empty for a phase without any.
        title: The name for people; empty if `name` serves.
    """

    name: str
    doing: str
    heading: str = ""
    title: str = ""

    def create_work(
        self,
        agent: str = "",
        round_number: int = 0,
        target: str = "",
        summarized: int = 0,
        summary_method: str = "",
    ) -> Work:
        """Return what a step of this activity is for; see the contract's `Work`."""
        return Work(
            activity=self.name,
            title=self.title,
            doing=self.doing,
            agent_id=agent,
            target_agent_id=target,
            round=round_number,
            summarized_characters=summarized,
            summary_method=summary_method,
        )


def phase_of(work: Work) -> str:
    """Return the phase in words for people, such as `round 1 proposal`."""
    name = work.title or work.activity
    return f"round {work.round} {name}" if work.round else name


def system_part(text: str) -> PromptPart:
    """Return a piece of a prompt that introduces the agent."""
    return PromptPart(role=PROMPT_ROLE_SYSTEM, text=text)


def user_part(text: str, give: int = 0) -> PromptPart:
    """Return a piece of a prompt with the task or its material; see the contract's `PromptPart`."""
    return PromptPart(role=PROMPT_ROLE_USER, text=text, shrink_priority=give)


def document_part(
    path: str, held: HeldText, number: int, give: int, passages: Iterable[Passage] = ()
) -> PromptPart:
    """Return a piece of a prompt that names a document by its digest: prompts hold no copy of its text.

    `number` is that of the source which it is; `passages` are what is kept of it if it must be shortened, most important first.

    The document goes as it is: the gateway quotes it, or serves it through tools.
    """
    return PromptPart(
        role=PROMPT_ROLE_USER,
        shrink_priority=give,
        document=path,
        digest=held.digest,
        source=number,
        passages=passages,
    )


def held_text_of(part: PromptPart) -> HeldText:
    """Return the text of a document's part. The debate that the part belongs to holds it."""
    held = find_text(part.digest)
    if held is None:
        raise LookupError(f"document {part.document!r} is not held: its debate was dropped")
    return held


def count_part(part: PromptPart, counter: Callable[[str], int]) -> int:
    """Return what `counter` returns for the text of a part; for a document it is computed once."""
    return held_text_of(part).count(counter) if part.digest else counter(part.text)


def size_of_prompt(prompt: Iterable[PromptPart]) -> int:
    """Return the characters of a prompt; for documents their bytes."""
    return sum(len(held_text_of(part).utf8) if part.digest else len(part.text) for part in prompt)


Prompt = tuple[PromptPart, ...]
"""Its parts, in order; they are only read."""


class AnswerShape(Struct, Generic[M], frozen=True):
    """The shape of a structured answer.

    Attributes:
        name: A short name.
        model: What the answer is read into.
        json_schema: What the model is asked for, as JSON text: that of `model`, or a stricter one.
        render: Returns an answer as a person reads it (CommonMark).
        from_prose: Returns what a text is that the model does not read; it follows from the text alone. None: such a
            text is no answer.
        annotate: Adds data of an answer to its reply before that is recorded.
    """

    name: str
    model: type[M]
    json_schema: str
    render: Callable[[M], str]
    from_prose: Callable[[str], M] | None = None
    annotate: Callable[[M, Reply], None] | None = None

    def parse(self, text: str) -> M:
        """Return the parsed answer. Raises ValidationError if the text is not one."""
        try:
            return self.model.model_validate_json(text)
        except ValidationError:
            if self.from_prose is None:
                raise
        return self.from_prose(text)


class Task(Struct, frozen=True):
    """A prompt, and what the answer is for.

    Attributes:
        max_output_tokens: Upper bound on the answer; 0 for the route's default.
        is_answer: Whether it makes the debate's answer, which is asked for in spite of limits.
        concurrency: The label of its limit, one of the format's; empty for none.
        seconds: Its own time limit, fallback included; None for the debate's.
        answer_start: The beginning of the answer, if the model can continue it; empty: it begins itself.
        max_characters: A plain answer is cut to so many characters before it is recorded; 0: it is not cut.
        retry_once: Whether to retry once, some seconds later, if it failed for a reason that may soon have passed.
            What comes of that is recorded before anything follows from it. It belongs to a format's version.
        check: Raises UnusableAnswerError if a reply is none, by its text alone; `Reply.rendered` is set before.
        annotate: Adds data to a plain reply before it is recorded, which is computed from its text alone.
    """

    work: Work
    prompt: Prompt
    max_output_tokens: int = 0
    is_answer: bool = False
    concurrency: str = ""
    seconds: float | None = None
    answer_start: str = ""
    max_characters: int = 0
    check: Callable[[Reply], None] | None = None
    annotate: Callable[[Reply], None] | None = None
    retry_once: bool = False
