"""Ask the person behind a client what a checkpoint asks: as a form, and its answer as an intervention."""

from collections.abc import Mapping
from typing import Any, Final

from mcp_types import ClientCapabilities, ElicitRequestFormParams, ElicitResult

from parley.client import ParleyClient
from parley.mcp.results import cut_line, cut_text
from parley.v1.debate_pb2 import Waiting

_MESSAGE_CHARACTERS: Final = 6_000
_MAX_QUESTIONS: Final = 20
_ENOUGH: Final = "enough"
_WORD: Final = "decision"
_TEXT: Final = "text"


def can_ask(capabilities: ClientCapabilities | None) -> bool:
    """Return whether the client can show its user a form."""
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def create_form(debate_id: str, waiting: Waiting) -> ElicitRequestFormParams | None:
    """Return the form for what the debate waits for; None if it asks what is not known here."""
    match waiting.WhichOneof("request"):
        case "questions":
            fields = {
                f"q{number}": _text_field(cut_text(each.text))
                for number, each in enumerate(waiting.questions.questions[:_MAX_QUESTIONS], 1)
            }
            fields[_ENOUGH] = {"type": "boolean", "title": "Ask nothing more", "default": False}
            text, required = waiting.questions.text, []
        case "direction":
            words = ["continue", "guide", "end"]
            fields = {
                _WORD: {
                    "type": "string",
                    "title": "How to go on",
                    "enum": words,
                    "enumNames": ["Continue", "Guide the agents with the text", "End the rounds: answer now"],
                },
                _TEXT: _text_field("Guidance for the agents"),
            }
            text, required = waiting.direction.text, [_WORD]
        case "approval":
            words = ["approve", "refuse"]
            fields = {
                _WORD: {"type": "string", "title": "Your decision", "enum": words},
                _TEXT: _text_field("What you say to it"),
            }
            text, required = waiting.approval.text, [_WORD]
        case _:
            return None
    heading = f"Debate {debate_id} asks you. What follows was written by its agents."
    message = f"{heading}\n\n{cut_text(text or waiting.message, _MESSAGE_CHARACTERS)}"
    schema: dict[str, Any] = {"type": "object", "properties": fields, "required": required}
    return ElicitRequestFormParams(message=message, requested_schema=schema)


async def send_answer(parley: ParleyClient, debate_id: str, waiting: Waiting, result: ElicitResult) -> bool:
    """Send what the person answered, for this checkpoint alone. Return False if they did not answer. Raise ParleyError."""
    if result.action != "accept":
        return False
    content, key = result.content or {}, waiting.checkpoint
    match waiting.WhichOneof("request"), _read_text(content, _WORD), _read_text(content, _TEXT):
        case "questions", _, _:
            await _answer_questions(parley, debate_id, waiting, content)
        case "direction", "guide", text if text:
            await parley.guide(debate_id, text, checkpoint=key)
        case "direction", "end", _:
            await parley.end_rounds(debate_id, checkpoint=key)
        case "direction", "continue", _:
            await parley.continue_debate(debate_id, checkpoint=key)
        case "approval", "approve" | "refuse" as word, text:
            await parley.approve(debate_id, text, approved=word == "approve", checkpoint=key)
        case _:
            return False
    return True


async def _answer_questions(
    parley: ParleyClient, debate_id: str, waiting: Waiting, content: Mapping[str, Any]
) -> None:
    questions = waiting.questions.questions[:_MAX_QUESTIONS]
    answers = {each.id: _read_text(content, f"q{number}") for number, each in enumerate(questions, 1)}
    answered = {question: text for question, text in answers.items() if text}
    enough = content.get(_ENOUGH) is True
    if answered:
        await parley.answer(debate_id, answers=answered, enough=enough, checkpoint=waiting.checkpoint)
    else:
        await parley.continue_debate(debate_id, checkpoint=waiting.checkpoint)


def _text_field(title: str) -> dict[str, Any]:
    return {"type": "string", "title": cut_line(title), "description": title}


def _read_text(content: Mapping[str, Any], name: str) -> str:
    text = content.get(name)
    return text.strip() if isinstance(text, str) else ""
