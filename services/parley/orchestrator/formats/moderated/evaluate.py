"""The moderator's evaluation of a round: a summary that leaves no perspective out, and whether the rounds go on."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal, Self

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.formats.moderated.discussion import Discussion, Round
from parley.orchestrator.formats.moderated.ends import ENDS
from parley.orchestrator.formats.moderated.points import parse_letter
from parley.orchestrator.formats.moderated.wording import stems
from parley.orchestrator.formats.moderated.words import COMPLETION, EVALUATION, MODERATOR_PROMPT, quote_round
from parley.orchestrator.model.contributions import texts_of
from parley.orchestrator.model.tasks import AnswerShape, Prompt, Task, size_of_prompt, user_part
from parley.orchestrator.model.tokens import upper_tokens
from parley.orchestrator.phases.history import available_tokens, count_prompt_tokens, shorten_to_fit
from parley.orchestrator.phases.prompting import guidance_of, preamble, quotation
from parley.orchestrator.phases.schemas import default_if_invalid, extract_text, prompt_schema, schema_text
from parley.orchestrator.phases.situation import HISTORY_PRIORITY, describe_agents
from parley.runtime.agent_names import join_words
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.event_pb2 import StepFailed

_MIN_SHARED: Final = 2
"""Words of its own that a summary has to share with a perspective that it names."""
_MIN_SHARED_UNNAMED: Final = 5
_MIN_SHARE_UNNAMED: Final = 0.25
_SHORTEST: Final = 4


class ArguedPerspective(Struct, frozen=True):
    """A perspective that was argued in a round.

    Attributes:
        letter: Its agent's.
        text: All that its agent said.
    """

    letter: str
    name: str
    text: str


def find_omitted(summary: str, heard: Sequence[ArguedPerspective], question: str) -> list[ArguedPerspective]:
    """Return the perspectives that a summary says nothing of: neither a point by its name, nor who said it together with what.

    To be named in passing is not enough, and what the question, or another perspective, says too does not count.
    """
    said = stems(summary)
    asked = stems(question)
    of_texts = [stems(each.text) for each in heard]
    of_all = [words | stems(each.name) for words, each in zip(of_texts, heard, strict=True)]
    missing = []
    for place, each in enumerate(heard):
        others = asked.union(*of_all[:place], *of_all[place + 1 :])
        own = {word for word in of_texts[place] - others if len(word) >= _SHORTEST}
        shared = len(own & said)
        is_described = (
            re.search(rf"\b{each.letter}\.\d", summary) is not None
            or (_is_named(summary, each) and shared >= min(_MIN_SHARED, len(own)))
            or (shared >= _MIN_SHARED_UNNAMED and shared >= _MIN_SHARE_UNNAMED * len(own))
        )
        if not is_described:
            missing.append(each)
    return missing


def _is_named(summary: str, heard: ArguedPerspective) -> bool:
    by_letter = re.search(rf"\bagent {heard.letter}\b", summary, re.IGNORECASE)
    return by_letter is not None or heard.name.casefold() in summary.casefold()


Decision = Literal["go_on", "clarify", "agreement", "stagnation", "clear_winner"]

_EVALUATION_PROMPT: Final = (
    "Round {number} is over. Evaluate it.\n"
    "- summary: what the round brought, in a few sentences for each agent that spoke. Name it by its letter, as `agent B`; give its strongest"
    " points by their names, such as `B.2`, and say what became of them: conceded, answered, or open. Put each at its strongest;"
    " leave nobody out, and do not say who is right. Points that others repeat from each other are not stronger for it.\n"
    "- open: what the debaters still have to settle for a decision, as the question that you put to them next, in one or two"
    " sentences. If one has left the subject, say here what it is to come back to.\n"
    "- off_topic: letters of agents whose argument was not on the question that was asked.\n"
    "- reason: what the decision below follows from, in a sentence.\n"
    "- decision: {ends}; `clarify` if one agent has to answer a question of yours before the others can go on; else `go_on`. Different"
    " reasons for one and the same recommendation are agreement; politeness is not.\n"
    "- agent: the letter of the winner, or of the agent that you ask; else empty. question: what you ask it; else empty."
)
_LAST_ROUND_PROMPT: Final = "This was the last round: say `go_on` where nothing else holds."
_MISSING_PROMPT: Final = (
    "Your summary of round {number} leaves out what {who} said. Write what is missing, for each of them: two or three sentences that"
    " put its case at its strongest, with its points by their names."
)
_MAX_REASON: Final = 500


class _EvaluationSchema(BaseModel):
    """An evaluation as it is asked for."""

    model_config = ConfigDict(extra="forbid")

    summary: Annotated[str, Field(min_length=1)]
    open: str
    off_topic: list[str]
    reason: str
    decision: Decision
    agent: str
    question: str


class Evaluation(BaseModel):
    """An evaluation as it is read; what was not given, or makes no sense, is absent, and the debate goes on then."""

    summary: str = ""
    open: str = ""
    off_topic: list[str] = []
    reason: str = ""
    decision: Decision = "go_on"
    agent: str = ""
    question: str = ""

    _default_if_invalid = field_validator("*", mode="wrap")(default_if_invalid)

    @model_validator(mode="after")
    def _check_not_empty(self) -> Self:
        if not (self.summary or self.open or self.reason):
            raise ValueError("it says nothing")
        return self

    @field_validator("summary", "open", "question", mode="after")
    @classmethod
    def _strip(cls, text: str) -> str:
        return text.strip()

    @field_validator("agent", mode="after")
    @classmethod
    def _parse_letter(cls, text: str) -> str:
        return parse_letter(text)

    @field_validator("off_topic", mode="after")
    @classmethod
    def _parse_letters(cls, given: list[str]) -> list[str]:
        return [letter for each in given if (letter := parse_letter(each))]

    @field_validator("reason", mode="after")
    @classmethod
    def _join_lines(cls, text: str) -> str:
        return " ".join(text.split())[:_MAX_REASON]


class _Passage(BaseModel):
    model_config = ConfigDict(extra="forbid")

    agent: str
    text: str


class _PassagesSchema(BaseModel):
    """What was left out of a summary."""

    model_config = ConfigDict(extra="forbid")

    passages: list[_Passage]


class ParsedPassages(BaseModel):
    """The same as it is read."""

    passages: list[_Passage] = []

    _default_if_invalid = field_validator("*", mode="wrap")(default_if_invalid)

    @field_validator("passages", mode="before")
    @classmethod
    def _keep_valid(cls, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        return [
            {"agent": parse_letter(str(each.get("agent", ""))), "text": str(each.get("text", ""))}
            for each in given
            if isinstance(each, Mapping)
        ]


async def evaluate(
    discussion: Discussion, current: Round, measured: Sequence[str]
) -> Evaluation | StepFailed:
    """Return the moderator's evaluation, whose summary leaves no perspective out.

    Who is missing in the summary is asked for once; if it still is, the debate says so, and the summary says its position.
    """
    debate, judge, number = discussion.debate, discussion.debate.judge, current.number
    schema = _create_schema([debate.letter(each) for each in current.arguments])
    prompt = await _create_prompt(discussion, current, measured, schema)
    shape = AnswerShape("evaluation", Evaluation, schema, _render, _read_prose)
    key = f"round/{number}/evaluate"
    found = await debate.ask_structured(
        key, judge, Task(EVALUATION.create_work(judge.id, number), prompt), shape
    )
    if isinstance(found, StepFailed):
        return found
    summary = await _complete_summary(discussion, current, found.summary, prompt[:-1])
    return found.model_copy(update={"summary": summary})


async def _create_prompt(
    discussion: Discussion, current: Round, measured: Sequence[str], schema: str
) -> Prompt:
    debate, judge, number = discussion.debate, discussion.debate.judge, current.number
    ends = "; ".join(f"`{each.name}` if {each.condition}" for each in ENDS.values())
    task_text = _EVALUATION_PROMPT.format(number=number, ends=ends)
    if number == discussion.settings.max_rounds:
        task_text = f"{task_text}\n{_LAST_ROUND_PROMPT}"
    before = (
        *moderator_preamble(debate),
        *summary_prompts(discussion, before=number - 1),  # the last one is in what it put to them
        quotation(f"What you put to the debaters in round {number}", current.prompt),
    )
    after = (
        *guidance_of(discussion.guidance),
        *(
            [quotation("What was measured in this round", "\n".join(f"- {each}" for each in measured))]
            if measured
            else []
        ),
        user_part(task_text),
    )

    def build_prompt() -> Prompt:
        taken = count_prompt_tokens((*before, *after), judge.context_tokens) + upper_tokens(schema)
        whole = shorten_to_fit(current.contributions, available_tokens(judge.context_tokens, 0, taken))
        return (*before, *quote_round(debate, whole), *after)

    size = size_of_prompt(before) + sum(map(len, texts_of(current.contributions)))
    return await in_thread_if_large(size, build_prompt)


def moderator_preamble(debate: Debate, *, names_agents: bool = True) -> Prompt:
    """Return what the moderator's prompts begin with; `names_agents`: whether it names them in what it writes."""
    agents = describe_agents(debate, are_named=names_agents)
    return (*preamble(debate, debate.judge), user_part(f"{MODERATOR_PROMPT}\n{agents}"))


def summary_prompts(discussion: Discussion, before: int) -> Prompt:
    """Return the moderator's own summaries of the rounds before one."""
    return tuple(
        quotation(f"Your summary of round {each.number}", each.summary, HISTORY_PRIORITY)
        for each in discussion.rounds
        if each.number < before
    )


def plain_summary(discussion: Discussion, current: Round) -> str:
    """Return what each debater stands for, if the moderator has not said it."""
    return "\n".join(
        _describe_debater(discussion, each.agent, each.position or each.text) for each in current.positions()
    )


async def _complete_summary(discussion: Discussion, current: Round, summary: str, prompt: Prompt) -> str:
    """Return a summary with what it leaves out: asked for once, and else as it was said."""
    debate, judge, number = discussion.debate, discussion.debate.judge, current.number
    missing = await _find_left_out(discussion, current, summary)
    if not missing:
        return summary
    letters = [each.letter for each in missing]
    who = join_words([f"agent {each.letter} ({each.name})" for each in missing])
    asked = (
        *prompt,
        quotation("Your summary", summary),
        user_part(_MISSING_PROMPT.format(number=number, who=who)),
    )
    shape = AnswerShape("passages", ParsedPassages, _create_passages_schema(letters), _render_passages)
    key = f"round/{number}/evaluate/missing"
    added = await debate.ask_structured(
        key, judge, Task(COMPLETION.create_work(judge.id, number), asked), shape
    )
    if isinstance(added, ParsedPassages):
        texts = {each.agent: each.text.strip() for each in added.passages}
        passages = [f"Agent {each}: {texts[each]}" for each in letters if texts.get(each)]
        summary = "\n\n".join([summary, *passages])
    still = await _find_left_out(discussion, current, summary)
    if still:
        who = join_words([each.name for each in still])
        done = "its stand was added" if len(still) == 1 else "their stands were added"
        discussion.warn(
            f"{key}/warning", f"the moderator's summary of round {number} leaves out {who}; {done}"
        )
        agents = {debate.letter(each.agent): each for each in current.positions()}
        stands = [agents[each.letter] for each in still]
        lines = [_describe_debater(discussion, each.agent, each.position or each.text) for each in stands]
        summary = "\n\n".join([summary, *lines])
    return summary


async def _find_left_out(discussion: Discussion, current: Round, summary: str) -> list[ArguedPerspective]:
    heard = [
        ArguedPerspective(
            discussion.debate.letter(agent), discussion.viewpoints[agent].name, current.text_of(agent)
        )
        for agent in current.arguments
    ]
    question = discussion.debate.spec.question
    texts = [summary, question, *(each.text for each in heard)]
    return await in_thread_if_large(texts, partial(find_omitted, summary, heard, question))


def _describe_debater(discussion: Discussion, agent: str, stand: str) -> str:
    name = discussion.name_of(agent)
    return f"{name[0].upper()}{name[1:]} holds: {' '.join(stand.split())}"


def _read_prose(text: str) -> Evaluation:
    """Return the evaluation that a text is which keeps to no form. Raises ValidationError if it has no words."""
    return Evaluation(summary=extract_text(text))


def _render(found: Evaluation) -> str:
    blocks = [found.summary]
    blocks += [f"To be settled: {found.open}"] if found.open else []
    blocks += [f"Off topic: {', '.join(found.off_topic)}"] if found.off_topic else []
    decision = found.decision.replace("_", " ")
    about = f" ({found.agent})" if found.agent else ""
    blocks.append(f"Decision: {decision}{about}{': ' if found.reason else ''}{found.reason}")
    blocks += [f"Asked: {found.question}"] if found.question else []
    return "\n\n".join(block for block in blocks if block)


def _render_passages(found: ParsedPassages) -> str:
    return "\n\n".join(f"Agent {each.agent}: {each.text}" for each in found.passages) or "Nothing was added."


def _create_schema(letters: Sequence[str]) -> str:
    schema = prompt_schema(_EvaluationSchema)
    schema["properties"]["off_topic"]["items"]["enum"] = list(letters)
    schema["properties"]["agent"]["enum"] = ["", *letters]
    return schema_text(schema)


def _create_passages_schema(letters: Sequence[str]) -> str:
    schema = prompt_schema(_PassagesSchema)
    schema["properties"]["passages"]["items"]["properties"]["agent"]["enum"] = list(letters)
    return schema_text(schema)
