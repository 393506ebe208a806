"""What a judge says besides its answer: as it is recorded, and as people read it."""

from collections.abc import Iterator, Sequence

from parley.orchestrator.engine.format import AnswerPart
from parley.orchestrator.model.answer_text import MAX_CONFIDENCE_WITH_UNMET_REQUIREMENT
from parley.orchestrator.phases.requirements import Requirements
from parley.orchestrator.phases.synthesize import JudgeAnswer
from parley.v1.debate_pb2 import AnswerDetails, Requirement, UnfulfilledRequirement


def create_details(answer: JudgeAnswer, requirements: Requirements) -> AnswerDetails:
    """Return what a judge's answer says besides its text.

    What is required is what was listed at the start; the judge's own words count if nothing could be listed.
    """
    unmet = [
        UnfulfilledRequirement(text=each.text, hard=each.hard) for each in answer.unfulfilled_requirements
    ]
    if requirements.is_known:
        unmet = requirements.unmet(answer.requirements_met)
    cap = MAX_CONFIDENCE_WITH_UNMET_REQUIREMENT if any(each.hard for each in unmet) else 100
    return AnswerDetails(
        implementation=answer.implementation,
        tradeoffs=answer.tradeoffs,
        recommendations=answer.recommendations,
        unfulfilled_requirements=unmet,
        met_requirements=requirements.numbers_met(answer.requirements_met),
        open_questions=answer.open_questions,
        confidence=None if answer.confidence is None else min(answer.confidence, cap),
    )


def detail_parts(details: AnswerDetails, required: Sequence[Requirement]) -> Iterator[AnswerPart]:
    """Yield the parts of an answer after its text, in the order in which they are read; `required` is the debate's list."""
    yield AnswerPart("Implementation", details.implementation)
    yield AnswerPart("Recommendations", items=details.recommendations)
    yield AnswerPart("Requirements", items=list(_requirement_lines(details, required)))
    yield AnswerPart("Trade-offs", items=details.tradeoffs)
    yield AnswerPart("Open questions", items=details.open_questions)


def _requirement_lines(details: AnswerDetails, required: Sequence[Requirement]) -> Iterator[str]:
    """Yield each requirement with what became of it: those that are not met first."""
    unmet = details.unfulfilled_requirements
    for each in unmet:
        yield f"**Not met:** {_name(each.number)}{each.text}{_must(each)}"
    known = {each.number for each in unmet}
    for number, requirement in enumerate(required, start=1):
        if number not in known:
            verdict = "Met" if number in details.met_requirements else "Not judged"
            yield f"**{verdict}:** {_name(number)}{requirement.text}{_must(requirement)}"


def _name(number: int) -> str:
    return f"R{number}, " if number else ""


def _must(each: Requirement | UnfulfilledRequirement) -> str:
    return " (a must)" if each.hard else ""
