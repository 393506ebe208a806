"""What a person answered before the agents began, as the prompts of version 1 tell it."""

from collections.abc import Sequence

from parley.orchestrator.phases.clarify import Exchange
from parley.v1.debate_pb2 import Answer, Question

__all__ = ["briefing"]


def briefing(exchanges: Sequence[Exchange]) -> str:
    """Return what everybody is told of all exchanges."""
    told = [line for questions, answer in exchanges for line in _told(questions, answer)]
    return "\n".join(["Clarifications from the person who asks:", *told])


def _told(questions: Sequence[Question], answer: Answer) -> list[str]:
    answers = {each.question_id: each.text.strip() for each in answer.answers}
    told = [f"- {each.text}\n  {answers[each.id]}" for each in questions if each.id in answers]
    if answer.text.strip():
        asked = "" if told else f"- {' '.join(each.text for each in questions)}\n  "
        told.append(f"{asked or '- '}{answer.text.strip()}")
    return told
