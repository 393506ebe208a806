"""The tools a model may call, what it asked of them, and what it was answered.

Whatever a model sends, the answer is a text for it: a wrong argument is one line that says what was wrong and what there is.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from parley.gateway.prompt.documents import Documents, NotFound
from parley.gateway.prompt.sanitizer import clean, clean_value, to_line
from parley.runtime.contract_settings import default_of
from parley.v1 import agent_pb2
from parley.v1.gateway_pb2 import PromptPart

DEFAULT_CALL_LIMIT: Final[int] = default_of(agent_pb2.Agent, "tool_call_limit")
TOOL_NAMES: Final[Mapping[agent_pb2.Tool.ValueType, str]] = {
    agent_pb2.TOOL_CONTEXT_SEARCH: "context_search",
    agent_pb2.TOOL_FILE_READ: "file_read",
    agent_pb2.TOOL_LIST_FILES: "list_files",
}
"""The tools of the contract as models know them."""
MAX_ARGUMENTS: Final = 8_000
"""Characters of one call's arguments at most; what is longer is answered with an error."""

_ARGUMENTS_KEPT: Final = 500
_MAX_NAME: Final = 64
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


class ToolSpec(Struct, frozen=True):
    """A tool as it is described to a model; `parameters` is a JSON Schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class ToolRequest(Struct, frozen=True):
    """What a model asks of a tool, as it came: `arguments` should be the JSON text of an object, and need not be."""

    id: str
    name: str
    arguments: str

    @property
    def sayable_name(self) -> str:
        """The name as every endpoint takes it back."""
        return _NOT_IN_A_NAME.sub("_", self.name)[:_MAX_NAME] or "unknown"

    @property
    def sayable_arguments(self) -> str:
        """The arguments as every endpoint takes them back; some cannot read a history with broken ones."""
        try:
            usable = self.arguments.strip() and isinstance(_parse_arguments(self.arguments), dict)
        except _WrongArgumentsError:
            return "{}"
        return self.arguments if usable else "{}"


class ToolResult(Struct, frozen=True):
    """What a model is answered. `failed` says that it is an error."""

    text: str
    failed: bool = False


class Reasoning(Struct, frozen=True):
    """What a model thought before it called tools, as its endpoint gave it and takes it back; nothing else reads it.

    `items` are those of the Responses API, `fields` those of a message of Chat Completions.
    """

    items: tuple[Mapping[str, Any], ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def characters(self) -> int:
        """Its length as it is sent."""
        return len(json.dumps([self.items, self.fields])) if self.items or self.fields else 0


NO_REASONING: Final = Reasoning()


class ToolTurn(Struct, frozen=True):
    """A reply that asked for tools, and what they answered, one result a request."""

    said: str
    requests: tuple[ToolRequest, ...]
    results: tuple[str, ...]
    reasoning: Reasoning = NO_REASONING


class _WrongArgumentsError(ValueError):
    """The arguments cannot be used; the message says why."""


def _object_schema(required: Sequence[str], **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


TOOLS: Final[Mapping[str, ToolSpec]] = {
    each.name: each
    for each in (
        ToolSpec(
            "context_search",
            "Finds the passages of the documents nearest to some words, best first, with paths and line numbers.",
            _object_schema(["query"], query={"type": "string", "description": "A few words to look for."}),
        ),
        ToolSpec(
            "file_read",
            "Reads a document, or a range of its lines. Each line comes with its number; a line of more than 2,000 "
            "characters counts as several.",
            _object_schema(
                ["path"],
                path={"type": "string", "description": "Path of the document, as it is listed."},
                first_line={"type": "integer", "minimum": 1, "description": "From this line; 1 if left out."},
                last_line={
                    "type": "integer",
                    "minimum": 1,
                    "description": "To this line; the end if left out.",
                },
            ),
        ),
        ToolSpec(
            "list_files", "Lists the documents with their sizes in characters and lines.", _object_schema([])
        ),
    )
}
"""The tools there are, by name."""

READING_TOOLS: Final = frozenset({"context_search", "file_read"})
"""Those that show what stands in a document."""


def can_read(tools: Sequence[str], prompt: Sequence[PromptPart]) -> bool:
    """Return whether there is something to read and a tool that reads; a list of files alone shows no text."""
    return bool(READING_TOOLS.intersection(tools)) and any(part.document for part in prompt)


def run_tool(documents: Documents, allowed: Sequence[str], request: ToolRequest) -> ToolResult:
    """Return the answer to a request; `allowed` names the tools of the agent. Takes as long as a search in all documents."""
    try:
        return ToolResult(_run_checked(documents, allowed, request))
    except (_WrongArgumentsError, NotFound) as error:
        return ToolResult(str(error), failed=True)


def describe_use(request: ToolRequest, result: ToolResult) -> agent_pb2.ToolCall:
    """Return a tool call as the caller gets it with the answer."""
    return agent_pb2.ToolCall(
        name=to_line(request.name, _MAX_NAME) or "unknown",
        arguments=clean(request.arguments, _ARGUMENTS_KEPT),
        failed=result.failed,
        characters=len(result.text),
    )


def _run_checked(documents: Documents, allowed: Sequence[str], request: ToolRequest) -> str:
    if request.name not in allowed:
        name = to_line(request.name, _MAX_NAME)
        raise _WrongArgumentsError(f"There is no tool {name!r}. Tools: {', '.join(allowed)}.")
    given = _parse_arguments(request.arguments)
    if not isinstance(given, dict):
        raise _WrongArgumentsError("The arguments are not a JSON object.")
    match request.name:
        case "context_search":
            return documents.context_search(_get_text(given, "query"))
        case "file_read":
            first, last = _get_line(given, "first_line"), _get_line(given, "last_line")
            return documents.file_read(_get_text(given, "path"), first or 1, last)
        case _:
            return documents.list_files()


def _parse_arguments(arguments: str) -> Any:
    if len(arguments) > MAX_ARGUMENTS:
        raise _WrongArgumentsError(f"The arguments have more than {MAX_ARGUMENTS} characters.")
    try:
        return clean_value(json.loads(arguments)) if arguments.strip() else {}
    except (ValueError, RecursionError) as error:
        raise _WrongArgumentsError(f"The arguments are not JSON: {to_line(str(error), 120)}.") from None


def _get_text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise _WrongArgumentsError(f"{name} must be a text that is not empty.")
    return value.strip()


def _get_line(given: Mapping[str, Any], name: str) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _WrongArgumentsError(f"{name} must be a line number, 1 or more.")
    return value
