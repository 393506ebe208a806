"""What agents asked the person who asks, and what it answered, as later prompts tell it."""

from collections.abc import Sequence

from parley.orchestrator.phases.prompting import quotation
from parley.v1.debate_pb2 import Answer, Question

__all__ = ["answers_in_words"]


def answers_in_words(asker: str, questions: Sequence[Question], answer: Answer) -> list[str]:
    """Return lines for a prompt: the questions that were answered, quoted, and the answers; nothing where there is none.

    `asker` says who asked, such as `the agents`. An answer in one text is to all of the questions, where it is the only one.
    """
    answers = {each.question_id: each.text.strip() for each in answer.answers}
    answered = [each for each in questions if answers.get(each.id)]
    whole = answer.text.strip()
    if not (answered or whole):
        return []
    asked = "\n".join(f"{number}. {each.text}" for number, each in enumerate(answered or questions, start=1))
    return [
        quotation(f"What {asker} asked", asked).text,
        "Answers of the person who asks:",
        *(f"- to {number}: {answers[each.id]}" for number, each in enumerate(answered, start=1)),
        *([f"- {whole}"] if whole else []),
    ]
