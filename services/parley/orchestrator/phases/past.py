"""Past decisions: how prompts show them, and what who writes an answer says about them."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal

from msgspec import Struct
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from parley.orchestrator.model.effect_text import describe_votes, name_of_relation
from parley.orchestrator.model.short_text import to_headline, to_line
from parley.orchestrator.model.tasks import Prompt, user_part
from parley.orchestrator.model.times import describe_day
from parley.orchestrator.phases.count_votes import name_of_strength
from parley.orchestrator.phases.prompting import quotation
from parley.orchestrator.phases.schemas import Line, prompt_schema, valid_items
from parley.orchestrator.phases.situation import HISTORY_PRIORITY
from parley.v1.effect_pb2 import (
    DECISION_RELATION_CONFIRMS,
    DECISION_RELATION_OTHER_MATTER,
    DECISION_RELATION_REFINES,
    DECISION_RELATION_REVERSES,
    RelatedDecision,
)
from parley.v1.memory_pb2 import PastDebate

_MAX_DISSENTS: Final = 3
_MAX_EVIDENCE: Final = 3
_MAX_LINE: Final = 300
_RELATIONS: Final = {
    "confirms": DECISION_RELATION_CONFIRMS,
    "refines": DECISION_RELATION_REFINES,
    "reverses": DECISION_RELATION_REVERSES,
    "other matter": DECISION_RELATION_OTHER_MATTER,
}
_Relation = Literal["confirms", "refines", "reverses", "other matter"]
_TITLE: Final = "Decisions of earlier debates on like questions, the likeliest first"
_FOR_ALL: Final = "That something was decided earlier is no reason in itself. What is about another matter, pass over without a word."
PAST_FOR_AUTHORS: Final = (
    "If one of the earlier decisions above is about the same matter, say what of it still holds, what has changed since, and whether"
    " you would keep or change it."
)
"""For who writes a first draft, if it is shown any."""


def past_prompt(past: Sequence[PastDebate]) -> Prompt:
    """Return what an agent reads of past decisions, and what they are worth; nothing if there are none."""
    return (*_quote_past(past), user_part(_FOR_ALL)) if past else ()


def _quote_past(past: Sequence[PastDebate]) -> Prompt:
    if not past:
        return ()
    text = "\n\n".join("\n".join(_describe(number, each)) for number, each in enumerate(past, start=1))
    return (quotation(_TITLE, text, HISTORY_PRIORITY),)


def _describe(number: int, past: PastDebate) -> Iterator[str]:
    """Yield the lines of a past decision; what is not known of it is left out."""
    yield f"Earlier decision {number}, of {describe_day(past.concluded_at)}"
    yield f"Question: {past.question}"
    yield f"Decision: {past.conclusion}"
    if past.strength:
        yield f"How clear it was: {name_of_strength(past.strength)}"
    if votes := describe_votes(past.confidence):
        yield f"How sure it was: {votes}"
    for dissent in past.dissents[:_MAX_DISSENTS]:
        yield f"Against it, {dissent.agent_id}: {to_line(dissent.text, _MAX_LINE)}"
    for each in past.evidence[:_MAX_EVIDENCE]:
        source = "" if each.source in each.text else f" ({to_line(each.source, _MAX_LINE)})"
        yield f"It rests on: {to_line(each.text, _MAX_LINE)}{source}"
    for related in past.related:
        if related.relation == DECISION_RELATION_OTHER_MATTER:
            continue  # agents learn nothing from it
        yield f"It {name_of_relation(related)} the decision of {describe_day(related.decided_at)}: {related.decision}"


class _RelationSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    number: Annotated[int, Field(description="The number of the earlier decision.")]
    relation: _Relation
    reason: Annotated[str, Field(description="Why, or what has changed since, in one sentence.")]


class ParsedRelation(BaseModel):
    """How an answer stands to an earlier decision, as it is read."""

    number: Annotated[int, Field(ge=1, strict=True)]
    relation: _Relation
    reason: Line = ""


ParsedRelations = Annotated[list[ParsedRelation], BeforeValidator(partial(valid_items, ParsedRelation))]
"""What cannot be read is left out."""


class PastQuestion(Struct, frozen=True):
    """Asks who writes an answer how that stands to the decisions made before; if there are none, nothing is asked."""

    past: Sequence[PastDebate] = ()

    def to_prompt(self) -> Prompt:
        """Return the decisions as a part of a prompt; nothing for none."""
        return _quote_past(self.past)

    def to_task(self) -> str:
        """Return what is asked, as a part of a task; empty if nothing is."""
        if not self.past:
            return ""
        return (
            "\nFill in `earlier_decisions`: say of each earlier decision, by its number, whether your answer confirms it, refines it"
            " (it stays, with an exception or more detail), reverses it, or whether it is about another matter: another system,"
            " house or group, or another question. If your answer reverses one, say in the answer itself that it does, and what has changed since."
        )

    def schema(self) -> dict[str, Any]:
        """Return the schema of the answer to it."""
        item = prompt_schema(_RelationSchema)
        item["properties"]["number"] |= {"minimum": 1, "maximum": len(self.past)}
        return {"type": "array", "items": item, "maxItems": len(self.past)}

    def list_related(self, said: Sequence[ParsedRelation]) -> list[RelatedDecision]:
        """Return how the answer stands to each decision of which it says that, in the order in which they are shown."""
        by_number = {each.number: each for each in said}
        return [
            RelatedDecision(
                debate_id=past.debate_id,
                decided_at=past.concluded_at,
                decision=to_headline(past.conclusion),
                relation=_RELATIONS[found.relation],
                reason=to_line(found.reason, _MAX_LINE),
            )
            for number, past in enumerate(self.past, start=1)
            if (found := by_number.get(number)) is not None
        ]

    def list_unanswered(self, said: Sequence[ParsedRelation]) -> list[str]:
        """Return the names of the decisions of which nothing was said."""
        numbers = {each.number for each in said}
        return [f"earlier decision {n}" for n in range(1, len(self.past) + 1) if n not in numbers]


NO_PAST: Final = PastQuestion()
