"""Critiques: one agent examines another's proposal, issue by issue."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import from_json

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model import critiques
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.open_issues import own_issues
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task, user_part
from parley.orchestrator.phases.patterns import PATTERNS_FOR_CRITICS
from parley.orchestrator.phases.prompting import fit_to_question, length_limit, quotation, unsupported_claims
from parley.orchestrator.phases.protocols import with_manner
from parley.orchestrator.phases.schemas import (
    StrippedText,
    YesOrNo,
    default_if_invalid,
    extract_text,
    number_or_none,
    prompt_schema,
    schema_text,
)
from parley.orchestrator.phases.situation import Situation, round_preamble
from parley.v1.agent_pb2 import Agent
from parley.v1.critique_pb2 import Critique, Issue
from parley.v1.debate_pb2 import Reply
from parley.v1.event_pb2 import StepFailed

CRITIQUE = Activity("critique", "criticizes", "Critiques")
SECTION = "critique"
CONCURRENCY = "critiques"
_MAX_ISSUES = 5
_MAX_SEVERITY = 10
_TASK = (
    "Name each issue by itself: what is wrong and where, how severe it is, and what to change. Name what matters most first"
    f" and at most {_MAX_ISSUES} issues; if nothing is wrong, name none.\n"
    "Severity: 10: the proposal must not be used; 8: it fails at what was asked; 5: a gap that matters and can be closed;"
    " 3: a weakness that one can live with; 1: a matter of taste.\n"
    "Then say whether you agree with the proposal as it stands."
)
_TASK_AGAIN = (
    "Look first at what you held against the text before: name it again only if this proposal has not settled it, and say why the"
    " answer does not. "
)


class _IssueSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    issue: Annotated[str, Field(description="What is wrong, and where.")]
    severity: Annotated[int, Field(ge=0, le=_MAX_SEVERITY)]
    suggestion: Annotated[str, Field(description="What to change.")]


class _CritiqueSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    issues: Annotated[list[_IssueSchema], Field(max_length=_MAX_ISSUES)]
    agrees: Annotated[bool, Field(description="Whether you agree with the proposal as it stands.")]
    remarks: Annotated[str, Field(description="What convinces you, and what else is to say; may be empty.")]


_SCHEMA = schema_text(prompt_schema(_CritiqueSchema))


class ParsedIssue(BaseModel):
    """An issue as it is read; a severity that was not given, or makes no sense, is absent."""

    issue: Annotated[
        str,
        AfterValidator(str.strip),
        Field(validation_alias=AliasChoices("issue", "text", "problem", "description")),
    ]
    severity: int | None = None
    suggestion: StrippedText = ""

    @model_validator(mode="before")
    @classmethod
    def _wrap_text(cls, given: Any) -> Any:
        return {"issue": given} if isinstance(given, str) else given

    @field_validator("severity", mode="before")
    @classmethod
    def _read_severity(cls, given: Any) -> int | None:
        number = number_or_none(given, 0, _MAX_SEVERITY)
        return None if number is None else int(number + 0.5)


class CritiqueAnswer(BaseModel):
    """A critique as it is read. What was not given, or makes no sense, is absent and never made up."""

    issues: list[ParsedIssue] = []
    agrees: YesOrNo = None
    remarks: str = ""

    _default_if_invalid = field_validator("*", mode="wrap")(default_if_invalid)

    @field_validator("issues", mode="before")
    @classmethod
    def _keep_valid(cls, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        return [issue for each in given if (issue := _parse_issue(each)) is not None]

    @model_validator(mode="before")
    @classmethod
    def _wrap_single_issue(cls, given: Any) -> Any:
        is_issue = isinstance(given, Mapping) and "issues" not in given and _parse_issue(given) is not None
        return {**given, "issues": [given]} if is_issue else given

    @model_validator(mode="after")
    def _check_not_empty(self) -> "CritiqueAnswer":
        if not self.issues and self.agrees is None and not self.remarks.strip():
            raise ValueError("it says nothing")
        return self

    def to_proto(self) -> Critique:
        """Return the critique as it is recorded, its issues numbered."""
        return Critique(
            issues=[
                Issue(number=number, text=each.issue, severity=each.severity, suggestion=each.suggestion)
                for number, each in enumerate(self.issues, start=1)
            ],
            agrees=self.agrees,
            remarks=self.remarks.strip(),
        )


def _parse_issue(given: Any) -> ParsedIssue | None:
    try:
        issue = ParsedIssue.model_validate(given)
    except ValidationError:
        return None
    return issue if issue.issue else None


async def criticize(
    debate: Debate,
    critic: Agent,
    proposal: Contribution,
    situation: Situation,
    answered: Sequence[Contribution] = (),
) -> Contribution | StepFailed:
    """Ask an agent what is wrong with a proposal, issue by issue. If it keeps to no form, what it wrote is its remark.

    `answered`: critiques of the author's text before, with the revision that answered them, if the history does not show them.
    """
    spec, author = debate.spec, f"agent {debate.letter(proposal.agent)}"
    own = own_issues(debate.letter, critic.id, proposal.agent, answered)
    known = f"{PATTERNS_FOR_CRITICS} " if situation.patterns else ""
    task_text = f"Criticize this proposal of {author}. {_TASK_AGAIN if own else ''}{known}{_TASK}"
    prompt = (
        *round_preamble(debate, critic, situation),
        *situation.patterns,
        quotation(f"Proposal of {author}, round {proposal.round}", proposal.text),
        *unsupported_claims(proposal, author),
        *(
            [quotation(f"What you held against the text of {author} before, and what became of it", own)]
            if own
            else []
        ),
        user_part(
            f"{fit_to_question(debate.instructions(critic)[SECTION])}\n\n"
            f"{with_manner(debate, SECTION, task_text)}{length_limit(spec.max_output_tokens)}"
        ),
    )
    work = CRITIQUE.create_work(critic.id, situation.number, proposal.agent)
    task = Task(work, prompt, spec.max_output_tokens, concurrency=CONCURRENCY, retry_once=True)
    key = critique_key(situation.number, critic.id, proposal.agent)
    made = await debate.ask_structured(key, critic, task, _shape(debate.letter(critic.id)))
    if isinstance(made, StepFailed):
        return made
    content = made.to_proto()
    text = critiques.render_critique(content, debate.letter(critic.id))
    return create_critique(critic.id, situation.number, proposal.agent, content, text)


def critique_key(number: int, critic: str, target: str) -> str:
    """Return the key of an agent's critique of another in a round."""
    return f"round/{number}/critique/{critic}/of/{target}"


def create_critique(critic: str, number: int, target: str, content: Critique, text: str) -> Contribution:
    """Return an agent's critique of another in a round as others read it."""
    return Contribution(critic, CRITIQUE.name, number, text, target=target, critique=content)


def critique_from_prose(text: str) -> CritiqueAnswer:
    """Return the critique that a text is which keeps to no form. Raises ValidationError if it has no words."""
    try:
        value = from_json(text)
    except ValueError:
        value = None
    if isinstance(value, list) and value and all(_parse_issue(each) for each in value):
        return CritiqueAnswer(issues=value)
    return CritiqueAnswer(remarks=extract_text(text))


def _shape(letter: str) -> AnswerShape[CritiqueAnswer]:
    render = partial(_render, letter)
    return AnswerShape("critique", CritiqueAnswer, _SCHEMA, render, critique_from_prose, _annotate)


def _annotate(answer: CritiqueAnswer, reply: Reply) -> None:
    reply.critique.CopyFrom(answer.to_proto())


def _render(letter: str, answer: CritiqueAnswer) -> str:
    return critiques.render_critique(answer.to_proto(), letter)
