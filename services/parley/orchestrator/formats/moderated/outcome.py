"""The moderator's decision: the form in which it is asked for and read, the outcome that it makes, and how people read it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from parley.orchestrator.engine.format import AnswerPart, Verdict
from parley.orchestrator.formats.moderated.discussion import Discussion
from parley.orchestrator.formats.moderated.ends import CONFIDENCE_NAMES, cap_confidence
from parley.orchestrator.formats.moderated.points import parse_letter
from parley.orchestrator.model.names import names_of
from parley.orchestrator.model.short_text import to_line
from parley.orchestrator.model.tasks import AnswerShape
from parley.orchestrator.model.tension_text import describe_tension
from parley.orchestrator.phases.answer_questions import AnswerQuestions
from parley.orchestrator.phases.effect import AnswerPositions
from parley.orchestrator.phases.past import ParsedRelations
from parley.orchestrator.phases.schemas import default_if_invalid, extract_text, prompt_schema, schema_text
from parley.runtime.agent_names import join_words
from parley.v1.debate_pb2 import Debate, Outcome
from parley.v1.moderated_pb2 import (
    CONFIDENCE_HIGH,
    CONFIDENCE_LOW,
    CONFIDENCE_MEDIUM,
    CONFIDENCE_UNSPECIFIED,
    Confidence,
    ConsideredPerspective,
    ModeratedOutcome,
    Tension,
)
from parley.v1.panel_pb2 import Objection

_MAX_LINES: Final = 12
_CONFIDENCE: Final = "Confidence"
"""The title of a part that the verdict says already."""


class _PerspectiveSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    agent: str
    key_arguments: list[str]


class _TensionSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    open: bool
    settled: Annotated[str, Field(description="How it was settled; empty while it is open.")]


class _DissentSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    agent: str
    text: str


class _Asked(BaseModel):
    """A decision as it is asked for; the order is the order in which it is written."""

    model_config = ConfigDict(extra="forbid")

    topic: Annotated[str, Field(min_length=1)]
    perspectives: list[_PerspectiveSchema]
    agreements: Annotated[list[str], Field(max_length=_MAX_LINES)]
    tensions: Annotated[list[_TensionSchema], Field(max_length=_MAX_LINES)]
    recommendation: Annotated[str, Field(min_length=1)]
    confidence: Literal["high", "medium", "low"]
    caveats: Annotated[list[str], Field(max_length=_MAX_LINES)]
    dissents: Annotated[list[_DissentSchema], Field(max_length=_MAX_LINES)]


class ParsedPerspective(BaseModel):
    """What is said of a perspective."""

    agent: str = ""
    key_arguments: list[str] = []

    _default_if_invalid = field_validator("*", mode="wrap")(default_if_invalid)
    _parse_letter = field_validator("agent", mode="after")(parse_letter)


class ParsedTension(BaseModel):
    """A tension; one of which it is not said is open."""

    text: str = ""
    open: bool = True
    settled: str = ""

    _default_if_invalid = field_validator("*", mode="wrap")(default_if_invalid)


class ParsedDissent(BaseModel):
    """What an agent holds against the recommendation."""

    agent: str = ""
    text: str = ""

    _default_if_invalid = field_validator("*", mode="wrap")(default_if_invalid)
    _parse_letter = field_validator("agent", mode="after")(parse_letter)


class DecisionAnswer(BaseModel):
    """A decision as it is read; what was not given, or makes no sense, is absent."""

    topic: str = ""
    perspectives: list[ParsedPerspective] = []
    agreements: list[str] = []
    tensions: list[ParsedTension] = []
    recommendation: Annotated[str, Field(min_length=1)]
    confidence: Literal["high", "medium", "low", ""] = ""
    caveats: list[str] = []
    dissents: list[ParsedDissent] = []
    earlier_decisions: ParsedRelations = []
    positions: AnswerPositions | None = None

    _default_if_invalid = field_validator(
        "topic",
        "perspectives",
        "agreements",
        "tensions",
        "confidence",
        "caveats",
        "dissents",
        "earlier_decisions",
        "positions",
        mode="wrap",
    )(default_if_invalid)

    @field_validator("recommendation")
    @classmethod
    def _check_not_empty(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("it says nothing")
        return text.strip()

    @field_validator("confidence", mode="before")
    @classmethod
    def _normalize_confidence(cls, given: Any) -> Any:
        return given.strip().casefold() if isinstance(given, str) else given

    @field_validator("agreements", "caveats", mode="before")
    @classmethod
    def _keep_lines(cls, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        return [each.strip() for each in given if isinstance(each, str) and each.strip()]

    @field_validator("tensions", mode="before")
    @classmethod
    def _wrap_texts(cls, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        return [{"text": each} if isinstance(each, str) else each for each in given if each]

    @field_validator("perspectives", "dissents", mode="before")
    @classmethod
    def _keep_objects(cls, given: Any) -> Any:
        return [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else given


def decision_shape(letters: Sequence[str], asked: AnswerQuestions) -> AnswerShape[DecisionAnswer]:
    """Return the shape of a decision on a debate of the agents with these letters, with what is asked besides it."""
    schema = _create_schema(letters, asked)
    return AnswerShape("decision", DecisionAnswer, schema, lambda answer: answer.recommendation, _read_prose)


class ProseDecision(DecisionAnswer):
    """What the moderator wrote in place of a decision of the form that was asked for."""


def _read_prose(text: str) -> ProseDecision:
    """Return the decision that a text is which keeps to no form. Raises ValidationError if it has no words."""
    return ProseDecision(recommendation=extract_text(text))


def _create_schema(letters: Sequence[str], asked: AnswerQuestions) -> str:
    schema = prompt_schema(_Asked)
    for field in ("perspectives", "dissents"):
        schema["properties"][field]["items"]["properties"]["agent"]["enum"] = list(letters)
    schema["properties"] |= asked.schemas()
    schema["required"] += asked.schemas()
    return schema_text(schema)


_CONFIDENCES: Final[Mapping[str, "Confidence.ValueType"]] = {
    "high": CONFIDENCE_HIGH,
    "medium": CONFIDENCE_MEDIUM,
    "low": CONFIDENCE_LOW,
}
_MAX_TOPIC: Final = 120


def outcome_of(discussion: Discussion, answer: DecisionAnswer, most: "Confidence.ValueType") -> Outcome:
    """Return the outcome that a decision makes, which is no surer than allowed.

    Of a perspective on which the decision says nothing, the debater's own last points count; what it would give up is
    always in its own words. If the debate did not converge, something is open: at least what was to be settled last.
    """
    agents = {discussion.debate.letter(agent): agent for agent in discussion.viewpoints}
    topic = to_line(answer.topic or discussion.topic, _MAX_TOPIC)
    arguments_by_agent = {
        agents[each.agent]: each.key_arguments for each in answer.perspectives if each.agent in agents
    }
    analysed = discussion.analysis
    moderated = ModeratedOutcome(
        topic=topic,
        rounds=len(discussion.rounds_with_arguments),
        perspectives=[
            _perspective_to_proto(discussion, agent, arguments_by_agent.get(agent, ()))
            for agent in discussion.viewpoints
        ],
        agreements=answer.agreements,
        tensions=_list_tensions(discussion, answer, must_be_open=most == CONFIDENCE_LOW),
        recommendation=answer.recommendation,
        confidence=cap_confidence(_CONFIDENCES.get(answer.confidence, CONFIDENCE_UNSPECIFIED), most),
        caveats=answer.caveats,
        dissents=[
            Objection(agent_id=agents[each.agent], text=each.text.strip())
            for each in answer.dissents
            if each.agent in agents and each.text.strip()
        ],
        guidance=discussion.guidance,
        constraints=analysed.analysis.constraints if analysed else (),
        assumptions=analysed.assumed if analysed else (),
    )
    return Outcome(description=f"Decision on: {topic}\n\n{answer.recommendation}", moderated=moderated)


def _list_tensions(discussion: Discussion, answer: DecisionAnswer, *, must_be_open: bool) -> list[Tension]:
    tensions = [
        Tension(text=each.text.strip(), open=each.open, settled="" if each.open else each.settled.strip())
        for each in answer.tensions
        if each.text.strip()
    ]
    if must_be_open and not any(each.open for each in tensions):
        positions = "; ".join(
            f"{discussion.viewpoints[each.agent].name}: {each.position}"
            for each in discussion.rounds_with_arguments[-1].positions()
            if each.position
        )
        left = f" The positions at the end: {positions}" if positions else ""
        tensions.append(Tension(text=f"The debate ended without agreement.{left}", open=True))
    return tensions


def _perspective_to_proto(
    discussion: Discussion, agent: str, arguments: Sequence[str]
) -> ConsideredPerspective:
    last = next(
        (
            each.arguments[agent]
            for each in reversed(discussion.rounds_with_arguments)
            if agent in each.arguments
        ),
        None,
    )
    given = [each.strip() for each in arguments if each.strip()]
    own = [each.text for each in last.points] if last is not None else []
    return ConsideredPerspective(
        perspective=discussion.viewpoints[agent].to_proto(),
        agent_id=agent,
        key_arguments=given or own,
        trade_offs_accepted=last.gives_up if last is not None else (),
        absent_rounds=discussion.absent_rounds(agent),
        muted_from_round=discussion.muted_from.get(agent, 0),
    )


def verdict(debate: Debate) -> Verdict:
    """Return what a moderated debate decided."""
    moderated = debate.outcome.moderated
    perspectives = {each.agent_id: each.perspective.name for each in moderated.perspectives}
    rounds = f"{moderated.rounds} rounds" if moderated.rounds != 1 else "one round"
    debaters = join_words(list(perspectives.values()))
    between = f" between {debaters}" if debaters else ""
    names = names_of(debate)
    confidence = CONFIDENCE_NAMES[moderated.confidence].capitalize()
    said = "by the moderator" if _says_how_sure(debate) else "since the moderator did not say how sure it is"
    return Verdict(
        answer=moderated.recommendation,
        decision=f"Recommended by the moderator after {rounds}{between}; {_describe_approval(debate)}.",
        confidence=f"{confidence}, {said}." if moderated.confidence else "",
        dissent=[
            f"{perspectives.get(each.agent_id, each.agent_id)} disagrees: {names.put_in(each.text)}"
            for each in moderated.dissents
        ],
        no_dissent=_describe_no_dissent(debate),
        dissenters=[each.agent_id for each in moderated.dissents],
        by_positions=True,
    )


def _says_how_sure(debate: Debate) -> bool:
    effect = debate.outcome.effect
    return not debate.outcome.HasField("effect") or bool(effect.confidence.judge_word)


def _describe_no_dissent(debate: Debate) -> str:
    """Return what is said where the moderator names no perspective that disagrees. A decision in prose has none of what is asked for."""
    moderated = debate.outcome.moderated
    if _says_how_sure(debate) or moderated.agreements or moderated.caveats:
        return "No perspective strongly disagrees."
    return "Whether a perspective disagrees is not known: the moderator did not say it."


def _describe_approval(debate: Debate) -> str:
    if debate.outcome.moderated.approved:
        return "a person approved it"
    asked = debate.spec.moderated.checkpoints
    return "the person who was asked did not approve it" if asked else "no person was asked to approve it"


def answer_parts(debate: Debate) -> Iterator[AnswerPart]:
    """Yield the parts of the answer of a debate in the order in which they are read."""
    return (each for each in decision_parts(debate.outcome) if each.title != _CONFIDENCE)


def decision_parts(outcome: Outcome) -> Iterator[AnswerPart]:
    """Yield the parts of a decision in the order in which they are read."""
    moderated = outcome.moderated
    names = {each.agent_id: each.perspective.name for each in moderated.perspectives}
    yield AnswerPart("", outcome.description)
    yield AnswerPart(_CONFIDENCE, CONFIDENCE_NAMES[moderated.confidence].capitalize(), quoted=False)
    yield AnswerPart("Caveats", items=moderated.caveats)
    for each in moderated.perspectives:
        yield AnswerPart(f"Perspective: {each.perspective.name}", items=list(_perspective(each)))
    yield AnswerPart("Points of agreement", items=moderated.agreements)
    yield AnswerPart("Tensions", items=[describe_tension(each) for each in moderated.tensions])
    yield AnswerPart(
        "Dissent",
        items=[f"{names.get(each.agent_id, each.agent_id)}: {each.text}" for each in moderated.dissents],
        is_dissent=True,
    )
    yield AnswerPart("Guidance from the person who asks", items=moderated.guidance)
    if moderated.approved:
        yield AnswerPart("Approval", "A person approved this decision.", quoted=False)
    if moderated.follow_up.requested:
        made = moderated.follow_up
        result = f"It could not be made: {made.failure}" if made.failure else made.url or "It was made."
        yield AnswerPart("Issue", result, quoted=False)


def _perspective(each: ConsideredPerspective) -> Iterator[str]:
    yield from each.key_arguments
    yield from (f"Accepts: {one}" for one in each.trade_offs_accepted)
    if each.absent_rounds:
        rounds = ", ".join(map(str, each.absent_rounds))
        yield f"Absent in round {rounds}: its calls failed"
    if each.muted_from_round:
        yield f"Muted from round {each.muted_from_round} on"
