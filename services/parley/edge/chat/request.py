"""A chat completion's request: the question, what was said before it, and what of the rest counts."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from pydantic_core import from_json

from parley.edge.chat.errors import refuse
from parley.runtime.errors import FieldViolation, ParleyError, invalid_argument
from parley.v1.debate_pb2 import ContextDocument

_MAX_MESSAGES: Final = 1000
_MAX_NAMED: Final = 32
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_USED: Final = frozenset({"model", "messages", "stream", "stream_options"})
_ROLES: Final = frozenset({"system", "developer", "user", "assistant"})
_ONE_ANSWER: Final = "a debate gives one answer; leave it out, and ask again for another"
_NO_TOOLS: Final = "a debate calls no tools of its client; leave it out"
_TEXT_ONLY: Final = "a debate answers with text; leave it out"
_REFUSED: Final[Mapping[str, tuple[tuple[Any, ...], str]]] = {
    "tools": (([],), _NO_TOOLS),
    "functions": (([],), _NO_TOOLS),
    "tool_choice": (("none", "auto"), _NO_TOOLS),
    "function_call": (("none", "auto"), _NO_TOOLS),
    "n": ((1,), _ONE_ANSWER),
    "response_format": (({"type": "text"},), "a debate's answer is Markdown; leave it out"),
    "modalities": ((["text"],), _TEXT_ONLY),
    "audio": ((), _TEXT_ONLY),
    "logprobs": ((False,), "a debate's answer has no probabilities; leave it out"),
    "top_logprobs": ((0,), "a debate's answer has no probabilities; leave it out"),
}
"""What changes the form of the answer: the values that change nothing, and why others are refused."""


class ChatRequest(Struct, frozen=True):
    """What is asked.

    Attributes:
        model: The model's name.
        question: The last message.
        documents: The messages before it, one document each, in their order.
        stream: Whether the answer comes in parts.
        include_usage: Whether the last part says what was used.
        ignored: Parameters that have no effect, as they may stand in a header.
    """

    model: str
    question: str
    documents: tuple[ContextDocument, ...]
    stream: bool
    include_usage: bool
    ignored: tuple[str, ...]


def read_chat_request(body: bytes) -> ChatRequest:
    """Return the request. Raise ParleyError, which names every parameter that cannot be honoured."""
    try:
        given = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise refuse("body", f"must be JSON: {error}") from None
    if not isinstance(given, dict):
        raise refuse("body", "must be a JSON object")
    given = {name: value for name, value in given.items() if value is not None}
    problems = [*_find_problems(given)]
    if problems:
        raise invalid_argument(problems)
    question, documents = _read_messages(given["messages"])
    options = given.get("stream_options", {})
    return ChatRequest(
        model=given["model"],
        question=question,
        documents=documents,
        stream=given.get("stream", False),
        include_usage=options.get("include_usage") is True,
        ignored=_list_ignored(given),
    )


def _find_problems(given: Mapping[str, Any]) -> Iterator[FieldViolation]:
    if not isinstance(given.get("model"), str):
        yield FieldViolation("model", "must be the id of a model; GET /v1/models lists them")
    messages = given.get("messages")
    if not isinstance(messages, list) or not 1 <= len(messages) <= _MAX_MESSAGES:
        yield FieldViolation("messages", f"must be a list of 1 to {_MAX_MESSAGES} messages")
    if not isinstance(given.get("stream", False), bool):
        yield FieldViolation("stream", "must be true or false")
    if not isinstance(given.get("stream_options", {}), dict):
        yield FieldViolation("stream_options", "must be an object")
    for name, (allowed, why) in _REFUSED.items():
        if name in given and not _is_among(given[name], allowed):
            yield FieldViolation(name, why)


def _is_among(value: Any, allowed: tuple[Any, ...]) -> bool:
    return any(type(value) is type(each) and value == each for each in allowed)


def _list_ignored(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of what has no effect; a name that may not stand in a header is left out."""
    options = given.get("stream_options", {})
    names = [
        *(name for name in given if name not in _USED and name not in _REFUSED),
        *(f"stream_options.{name}" for name in options if name != "include_usage"),
    ]
    return tuple(sorted(name for name in names if _NAME.fullmatch(name))[:_MAX_NAMED])


def _read_messages(messages: list[Any]) -> tuple[str, tuple[ContextDocument, ...]]:
    """Return the question, and what was said before it."""
    told = [_read_message(f"messages[{number}]", each) for number, each in enumerate(messages)]
    role, question = told[-1]
    if role != "user":
        raise refuse("messages", "the last message must be the user's: it is the question")
    documents = tuple(
        ContextDocument(path=f"conversation/{number:04}-{role}.md", text=text)
        for number, (role, text) in enumerate(told[:-1], 1)
        if text.strip()
    )
    return question, documents


def _read_message(place: str, message: Any) -> tuple[str, str]:
    """Return the role and the text of a message."""
    if not isinstance(message, dict):
        raise refuse(place, "must be an object")
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or role not in _ROLES:
        raise refuse(f"{place}.role", "must be system, developer, user or assistant")
    for name in ("tool_calls", "function_call", "audio"):
        if message.get(name):
            raise refuse(f"{place}.{name}", "a debate reads text alone; leave it out")
    if content is None and role == "assistant":
        return role, ""
    if isinstance(content, str):
        return role, content
    if not isinstance(content, list):
        raise refuse(f"{place}.content", "must be text, or a list of parts of type text")
    return role, "\n".join(_read_part(f"{place}.content[{at}]", each) for at, each in enumerate(content))


def _read_part(place: str, part: Any) -> str:
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        text: str = part["text"]
        return text
    raise _refuse_part(place, part)


def _refuse_part(place: str, part: Any) -> ParleyError:
    kind = part.get("type") if isinstance(part, dict) else None
    named = kind if isinstance(kind, str) and _NAME.fullmatch(kind) else "this"
    return refuse(place, f"{named} cannot be read: a debate reads parts of type text alone")
