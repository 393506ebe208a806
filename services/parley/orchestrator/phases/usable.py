"""Whether what was written is an answer at all. In doubt it is: what a judge wrote stands, whatever its form."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from parley.orchestrator.model.errors import UnusableAnswerError
from parley.orchestrator.model.tasks import Prompt
from parley.v1.debate_pb2 import Reply

_WORD: Final = re.compile(r"\w+")
_NOTHING: Final = frozenset({" null ", " none ", " undefined ", " string "})
_MAX_REFUSAL: Final = 400
"""Characters of a refusal: a longer text says something else too."""
_REFUSAL: Final = re.compile(
    r"\W*(?:(?:i'?m|i am|we are) (?:very |so |really )?sorry|sorry|i apologi[sz]e|unfortunately|as an ai)?\b[^.\n]{0,60}?"
    r"\b(?:i|we)\b(?: am|'m| are)?(?: (?:can ?not|can't|won't|will not|could not|couldn't)| unable to| not able to)"
    r"(?: \w+)?? (?:help|assist|answer|comply|fulfil+|provide|respond|continue|do (?:that|this)|discuss|engage)\b",
    re.IGNORECASE,
)
_SHORT_WORD: Final = 5
_SHORT_TEXT: Final = 12
"""Words of a text that may stand in a prompt by chance."""
_MAX_AROUND: Final = 40
"""Words after a prompt that was repeated which may be the gateway's own."""
_WORDS_OF_REFUSALS: Final = frozenset(
    {"request", "question", "content", "assist", "answer", "provide", "unable", "cannot", "unfortunately"}
)
_MAX_PAGE: Final = 4000
_MAX_FENCE: Final = 20
"""Characters of a fence around an object."""
_ERROR_PAGE: Final = re.compile(
    r"\s*<(?:!doctype html|html)\b.{0,2000}?<(?:title|h1)\b[^>]*>\s*(?:error\W*)?[45]\d\d\b",
    re.IGNORECASE | re.DOTALL,
)
_CALL_KEYS: Final = frozenset(
    {
        "id",
        "type",
        "name",
        "tool",
        "tool_name",
        "function",
        "function_call",
        "tool_calls",
        "arguments",
        "parameters",
        "input",
    }
)


def create_check(
    question: str, prompt: Prompt, works: Sequence[str], schema: str = ""
) -> Callable[[Reply], None]:
    """Return what raises UnusableAnswerError of a reply that is no answer.

    `works`: texts in the prompt that an answer may repeat; `schema`: the form that is asked for.
    """

    def check(reply: Reply) -> None:
        said = _words(reply.rendered or reply.text)
        known = [_words(each) for each in works]
        asked = [each.text for each in prompt if each.text]
        fault = (
            _find_emptiness(reply.rendered or reply.text, said, known)
            or _find_refusal(reply.rendered or reply.text, known)
            or _find_repetition(said, question, asked, known, schema)
            or _find_form_fault(reply.text, schema)
        )
        if fault:
            raise UnusableAnswerError(fault)

    return check


def _find_emptiness(text: str, said: str, known: Sequence[str]) -> str:
    if not said or said in _NOTHING:
        return "it says nothing in words"
    if not any(map(str.isalpha, text)) and not any(said in each for each in known):
        return f"it is a number that no proposal holds ({text.strip()[:40]})"
    return ""


def _find_refusal(text: str, known: Sequence[str]) -> str:
    """Return that a short text refuses, and takes up nothing that a proposal says, or is a server's page of an error."""
    if len(text) <= _MAX_PAGE and _ERROR_PAGE.match(text):
        return "it is the page of an error"
    if len(text) > _MAX_REFUSAL or not _REFUSAL.match(text.replace("\u2019", "'")):
        return ""
    own = {word for word in _words(text).split() if len(word) > _SHORT_WORD} - _WORDS_OF_REFUSALS
    takes_up = any(f" {word} " in each for word in own for each in known)
    return "" if takes_up else f"it refuses: {' '.join(text.split())}"


def _find_repetition(
    said: str, question: str, asked: Sequence[str], known: Sequence[str], schema: str
) -> str:
    """Return that the words of an answer are those of a prompt. A prompt is long: its words are found if they can matter."""
    if any(said in each for each in known):
        return ""  # a proposal may be the answer
    is_copy = said.count(" ") > _SHORT_TEXT and said in "".join(map(_words, asked)).replace("  ", " ")
    is_task = bool(asked) and _is_task(said, _words(asked[-1]), schema)
    return "it repeats what was asked" if said == _words(question) or is_copy or is_task else ""


def _is_task(said: str, task: str, schema: str) -> bool:
    """Return whether the words of an answer are those of a task, and few others but those of the form after them."""
    _, found, after = said.rpartition(task)
    if not found:
        return False
    form = _words(schema)
    return sum(f" {word} " not in form for word in after.split()) <= _MAX_AROUND


def _words(text: str) -> str:
    """Return the words of a text, with one blank around each."""
    found = _WORD.findall(text.casefold())
    return f" {' '.join(found)} " if found else ""


def _find_form_fault(text: str, schema: str) -> str:
    """Return that a text is no filled form: a part of the form itself, or a call of a tool."""
    found = text[text.find("{") : text.rfind("}") + 1]
    if len(text.strip()) - len(found) > _MAX_FENCE:
        return ""
    try:
        value = json.loads(found)
    except (ValueError, RecursionError):
        return ""
    if len(value) > 1 and value.keys() <= _CALL_KEYS:
        return "it only calls a tool"
    return "it repeats the form that was asked for" if schema and _is_part(value, json.loads(schema)) else ""


def _is_part(value: Any, of: Any) -> bool:
    """Return whether all that a JSON value holds stands at the same places of another one."""
    if isinstance(value, dict) and isinstance(of, dict):
        return all(key in of and _is_part(each, of[key]) for key, each in value.items())
    return bool(value == of)
