"""Grounding: an agent splits the answer into claims and says of each what was said for and against it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.steps import INVALID_ANSWER, UNUSABLE_ANSWER
from parley.orchestrator.model.answer_text import answer_text
from parley.orchestrator.model.claim_graph import Claim, ClaimGraph, Relation, find_cruxes, propagate_belief
from parley.orchestrator.model.errors import UnusableAnswerError
from parley.orchestrator.model.judge_choice import Distance, choose_judge
from parley.orchestrator.model.tasks import Activity, AnswerShape, Prompt, Task, user_part
from parley.orchestrator.model.tokens import upper_tokens
from parley.orchestrator.phases.analysis.exhibits import MAX_ROOM, Exhibits, collect_exhibits, list_cited
from parley.orchestrator.phases.analysis.ground_without_call import KEY, MAX_CLAIMS, ground_without_call
from parley.orchestrator.phases.history import available_tokens, count_prompt_tokens
from parley.orchestrator.phases.prompting import preamble, quotation
from parley.orchestrator.phases.schemas import (
    Line,
    number_or_none,
    prompt_schema,
    schema_text,
    valid_items,
    whole_or_none,
)
from parley.orchestrator.phases.whole_debate import read_whole_debate
from parley.v1.agent_pb2 import Agent
from parley.v1.analysis_pb2 import (
    CLAIM_GROUNDING_OPPOSED,
    CLAIM_GROUNDING_SUPPORTED,
    CLAIM_GROUNDING_UNSUPPORTED,
    Analysis,
    AnswerClaim,
    ClaimGrounding,
    ClaimRelation,
)
from parley.v1.debate_pb2 import Outcome, Reply
from parley.v1.event_pb2 import StepFailed

GROUNDING: Final = Activity("grounding", "finds out what the answer rests on", title="grounds of the answer")
_MAX_RELATIONS: Final = 24
_EVEN: Final = 50
"""The score of a claim for which as much was said as against it."""
_WEIGHTS: Final = {"weak": 0.3, "strong": 0.8}
"""What a reason weighs."""

_TASK: Final = (
    "The debate is over. Find out what the answer rests on. Do not judge if it is right, well written or complete, and add no"
    " reason of your own: only what was said counts.\n"
    f"- claims: the claims that carry the answer, in its order, at most {MAX_CLAIMS}. One of them is the decision itself. Each is"
    " one sentence that can be true or false, and that is understood without the others, in the language of the answer. Leave out what merely repeats another one.\n"
    "- for: the names of what says that the claim is true, or gives a reason for it. {names} Name a text only if it says"
    " this itself: that it is about the same subject is not enough, and neither is another number, another name or a weaker claim."
    " If nothing says it, the list is empty, however plausible the claim is.\n"
    "- against: the names of what says that the claim is false, or gives a reason against it.\n"
    "- score: how well what was said carries the claim. 0: nothing carries it. 25: it was stated, and shaken by what was said"
    " against it. 50: it was stated without a reason, or as much was said against it as for it. 75: it was stated with a reason that"
    " nothing shook. 100: it follows from the question or a source.\n"
    "- relations: which claim is a reason for or against which other one, by their numbers from 1. Only where you would"
    " believe the other one less, or more, if the first were false. strong: the other one hardly stands without it.\n"
    "- verdict: the number of the claim that is the decision itself."
)


class _ClaimSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    claim: Annotated[str, Field(min_length=1, description="The claim, in one sentence.")]
    supports: Annotated[list[str], Field(alias="for", description="Names of what was said for it.")]
    against: Annotated[list[str], Field(description="Names of what was said against it.")]
    score: Annotated[int, Field(ge=0, le=100)]


class _RelationSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: Annotated[
        int, Field(ge=1, le=MAX_CLAIMS, description="The number of the claim that is the reason.")
    ]
    claim: Annotated[int, Field(ge=1, le=MAX_CLAIMS, description="The number of the other claim.")]
    kind: Literal["for", "against"]
    strength: Literal["weak", "strong"]


class _GroundingSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    claims: Annotated[list[_ClaimSchema], Field(min_length=1, max_length=MAX_CLAIMS)]
    relations: Annotated[list[_RelationSchema], Field(max_length=_MAX_RELATIONS)]
    verdict: Annotated[
        int, Field(ge=1, le=MAX_CLAIMS, description="The number of the claim that is the decision.")
    ]


def _names_of(given: Any) -> list[str]:
    """Return names as they are written in the prompt, each once; what is no text is left out."""
    said = (each for each in given if isinstance(each, str)) if isinstance(given, list) else ()
    return list(dict.fromkeys(name for each in said if (name := each.strip().strip("[]").upper())))


class _ParsedClaim(BaseModel):
    claim: Annotated[Line, Field(min_length=1, max_length=1000)]
    supports: Annotated[list[str], Field(alias="for")] = []
    against: list[str] = []
    score: float | None = None

    _read_names = field_validator("supports", "against", mode="before")(_names_of)

    @field_validator("score", mode="before")
    @classmethod
    def _read_score(cls, given: Any) -> float | None:
        return number_or_none(given, 0, 100)


class _ParsedRelation(BaseModel):
    reason: int
    claim: int
    kind: Literal["for", "against"]
    strength: Literal["weak", "strong"] = "weak"


class Grounding(BaseModel):
    """What an agent says that the answer rests on, as it is read."""

    claims: Annotated[list[_ParsedClaim], Field(min_length=1)]
    relations: list[_ParsedRelation] = []
    verdict: int = 0

    @field_validator("claims", mode="before")
    @classmethod
    def _keep_valid_claims(cls, given: Any) -> Any:
        return valid_items(_ParsedClaim, given)[:MAX_CLAIMS]

    @field_validator("relations", mode="before")
    @classmethod
    def _keep_valid_relations(cls, given: Any) -> Any:
        return valid_items(_ParsedRelation, given)[:_MAX_RELATIONS]

    @field_validator("verdict", mode="before")
    @classmethod
    def _read_verdict(cls, given: Any) -> int:
        return whole_or_none(given, 1, MAX_CLAIMS) or 0

    def find_fault(self, names: Sequence[str]) -> str:
        """Return what it names that does not exist, of `names` and its own claims; empty if all exists."""
        named = (name for each in self.claims for name in (*each.supports, *each.against))
        unknown = next((each for each in named if each not in names), "")
        if unknown:
            return f"it names {unknown[:20]!r}, which is not among what was said"
        numbers = (number for each in self.relations for number in (each.reason, each.claim))
        absent = [each for each in (*numbers, self.verdict) if not 1 <= each <= len(self.claims)]
        return f"it names the claim {absent[0]}, and it has {len(self.claims)}" if absent else ""


async def ground_answer(debate: Debate, outcome: Outcome) -> Analysis:
    """Return what the answer rests on, as the judge says, or an agent of another model family than who wrote it.

    If nothing is answered, a local model of the convergence service says it, and without one `Analysis.missing` says why it is not known.
    """
    found = await _ask_analyst(debate, outcome)
    return await ground_without_call(debate, outcome, found) if found.missing else found


async def _ask_analyst(debate: Debate, outcome: Outcome) -> Analysis:
    """Return what the analyst says. What cannot be used is asked for once more."""
    analyst = choose_analyst(debate)
    make_prompt = partial(create_prompt, debate, analyst, outcome)
    prompt, exhibits = await read_whole_debate(debate, outcome, make_prompt)
    if not debate.leaves_budget_for(analyst, Task(GROUNDING.create_work(analyst.id), prompt)):
        return Analysis(missing="no call was made for it, since too little is left of the debate's budget")
    made = await _ask(debate, KEY, analyst, prompt, exhibits)
    if isinstance(made, StepFailed) and made.reason in (INVALID_ANSWER, UNUSABLE_ANSWER):
        again = user_part(
            f"You were asked this before, and {made.message}. Answer again, by these names alone."
        )
        made = await _ask(debate, f"{KEY}/again", analyst, (*prompt, again), exhibits)
    if isinstance(made, StepFailed):
        missing = f"{analyst.id} did not say what the answer rests on: {' '.join(made.message.split())}"
        return Analysis(analyst_agent_id=analyst.id, missing=missing)
    found = _with_beliefs(_to_analysis(made, exhibits))
    found.analyst_agent_id, found.left_out = analyst.id, exhibits.left_out
    return found


def choose_analyst(debate: Debate) -> Agent:
    """Return the judge, unless it shares a model family with who wrote the answer and an agent is known not to."""
    writers = [each for each in (*debate.participants, debate.judge) if each.id == debate.answer_author]
    choice = choose_judge([debate.judge, *debate.participants], writers or [debate.judge])
    return choice.agent if choice.distance is Distance.OTHER_FAMILY else debate.judge


def create_prompt(debate: Debate, analyst: Agent, outcome: Outcome) -> tuple[Prompt, Exhibits]:
    """Return what the analyst is asked, which fits its context, and what it is shown."""
    answer = quotation("The answer", answer_text(outcome), 0)
    cited = list_cited(debate, answer_text(outcome))
    start = preamble(debate, analyst, cited=cited)
    other = count_prompt_tokens((*start, answer), analyst.context_tokens) + upper_tokens(_TASK)
    room = min(available_tokens(analyst.context_tokens, 0, other), MAX_ROOM)
    exhibits = collect_exhibits(debate, room, cited)
    task = user_part(_TASK.replace("{names}", _describe_names(exhibits)))
    return (*start, *exhibits.to_prompt(debate), answer, task), exhibits


def _describe_names(exhibits: Exhibits) -> str:
    """Return which names there are."""
    kinds = [
        ("contributions", list(exhibits.contributions)),
        ("sources", list(exhibits.sources)),
    ]
    ranges = [
        f"{_join_names(names)} are {what}" if len(names) > 1 else f"{names[0]} is one of the {what}"
        for what, names in kinds
        if names
    ]
    return "; ".join(["Q is the question, with what the person who asks has said", *ranges]) + "."


def _join_names(names: Sequence[str]) -> str:
    """Return names in a row, such as `S1 to S5`; all of them if numbers are left out."""
    has_gaps = int(names[-1][1:]) - int(names[0][1:]) >= len(names)
    return ", ".join(names) if has_gaps else f"{names[0]} to {names[-1]}"


async def _ask(
    debate: Debate, key: str, analyst: Agent, prompt: Prompt, exhibits: Exhibits
) -> Grounding | StepFailed:
    shape = AnswerShape("grounding", Grounding, _schema(exhibits), _render)
    task = Task(GROUNDING.create_work(analyst.id), prompt, check=_check_names(exhibits))
    return await debate.ask_structured(key, analyst, task, shape)


def _check_names(exhibits: Exhibits) -> Callable[[Reply], None]:
    names = exhibits.names

    def check(reply: Reply) -> None:
        if fault := Grounding.model_validate_json(reply.text).find_fault(names):
            raise UnusableAnswerError(fault)

    return check


def _schema(exhibits: Exhibits) -> str:
    schema = prompt_schema(_GroundingSchema)
    claim = schema["properties"]["claims"]["items"]["properties"]
    for each in ("for", "against"):
        claim[each]["items"] = {"type": "string", "enum": exhibits.names}
    return schema_text(schema)


def _render(grounding: Grounding) -> str:
    lines = []
    for number, each in enumerate(grounding.claims, start=1):
        score = "no score" if each.score is None else f"{each.score:g} of 100"
        said = (
            f"for: {', '.join(each.supports) or 'nothing'}; against: {', '.join(each.against) or 'nothing'}"
        )
        lines.append(f"{number}. {each.claim} ({score}; {said})")
    return "\n".join(lines)


def _to_analysis(grounding: Grounding, exhibits: Exhibits) -> Analysis:
    return Analysis(
        claims=[
            AnswerClaim(
                text=each.claim,
                grounding=_grounding_of(each),
                score=None if each.score is None else round(each.score),
                supported_by=map(exhibits.ground, each.supports),
                opposed_by=map(exhibits.ground, each.against),
            )
            for each in grounding.claims
        ],
        relations=[
            ClaimRelation(
                from_claim=each.reason,
                to_claim=each.claim,
                attacks=each.kind == "against",
                weight=_WEIGHTS[each.strength],
            )
            for each in grounding.relations
            if each.reason != each.claim
        ],
        verdict=grounding.verdict,
    )


def _grounding_of(claim: _ParsedClaim) -> ClaimGrounding.ValueType:
    if claim.against and (not claim.supports or (claim.score is not None and claim.score < _EVEN)):
        return CLAIM_GROUNDING_OPPOSED
    return CLAIM_GROUNDING_SUPPORTED if claim.supports else CLAIM_GROUNDING_UNSUPPORTED


def _with_beliefs(analysis: Analysis) -> Analysis:
    """Return an analysis with how far each claim can be believed, and the cruxes of the decision."""
    graph = ClaimGraph(
        tuple(
            Claim(str(number), (each.score if each.HasField("score") else _EVEN) / 100)
            for number, each in enumerate(analysis.claims, start=1)
        ),
        tuple(
            Relation(str(each.from_claim), str(each.to_claim), each.weight, each.attacks)
            for each in analysis.relations
        ),
    )
    for number, credence in propagate_belief(graph).items():
        analysis.claims[int(number) - 1].credence = credence
    analysis.cruxes.extend(int(each) for each in find_cruxes(graph, str(analysis.verdict)))
    return analysis
