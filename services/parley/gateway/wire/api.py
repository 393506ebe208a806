"""What the two APIs have in common: what is asked, what is said, and how that is read. Nothing here does I/O."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, Protocol

from msgspec import Struct, field

from parley.gateway.prompt.fitting import estimate_tokens, with_text
from parley.gateway.prompt.sanitizer import MAX_CHARACTERS, clean
from parley.gateway.prompt.structured_answers import AnswerShape
from parley.gateway.prompt.tools import MAX_ARGUMENTS, Reasoning, ToolRequest, ToolSpec, ToolTurn
from parley.gateway.wire.json_fields import as_arguments, as_text
from parley.runtime.held_texts import HeldText
from parley.v1.gateway_pb2 import PromptPart

MAX_TOOL_CALLS: Final = 128
"""Of one reply; what a model asks beyond that is not heard."""
_MAX_ID: Final = 1000
"""Characters of a call's id and of its tool's name."""
MAX_KEPT: Final = 262_144
"""Characters of messages that are kept while the model answers."""
MAX_REASONING: Final = 262_144
"""Characters of one reply's reasoning that are kept to be sent back; longer reasoning is not sent back at all."""


class Api(Enum):
    """The ways to ask for a text, with their paths."""

    RESPONSES = "/responses"
    CHAT = "/chat/completions"


class LateMessages:
    """Messages that are created when they are read: long ones each time, so that no copy is kept while the model answers."""

    def __init__(self, create: Callable[[], Iterable[PromptPart | ToolTurn]], *, is_long: bool) -> None:
        """Take the messages from `create`, which returns the same each time."""
        self._create = create
        self._is_long = is_long
        self._kept: tuple[PromptPart | ToolTurn, ...] | None = None

    def __iter__(self) -> Iterator[PromptPart | ToolTurn]:
        """Iterate over the messages."""
        if self._kept is not None:
            return iter(self._kept)
        messages = tuple(self._create())
        if not self._is_long:
            self._kept = messages
        return iter(messages)


Messages = tuple[PromptPart | ToolTurn, ...] | LateMessages


def _texts_of(messages: Iterable[PromptPart | ToolTurn]) -> Iterator[str]:
    for each in messages:
        if isinstance(each, PromptPart):
            yield each.text
        else:
            yield each.said
            yield from (request.arguments for request in each.requests)
            yield from each.results


class ModelRequest(Struct, frozen=True):
    """One question to a model. `max_output_tokens` 0 and `temperature` None leave it to the endpoint.

    `tools` are described to the model; without `may_use_tools` the request says that it has to answer now.
    An answer is cut off at `max_characters`. `size` is about how many characters the messages have.
    `slots` are long texts by what stands for them in the messages, each once.
    """

    model: str
    messages: Messages
    max_output_tokens: int = 0
    temperature: float | None = None
    shape: AnswerShape | None = None
    stream: bool = True
    tools: tuple[ToolSpec, ...] = ()
    may_use_tools: bool = True
    max_characters: int = MAX_CHARACTERS
    size: int = 0
    slots: Mapping[str, HeldText] = field(default_factory=dict)

    def texts(self) -> Iterator[str]:
        """Yield all that it says, with the texts that belong into its slots."""
        for text in _texts_of(self.messages):
            yield self.fill_in(text)

    def fill_in(self, text: str) -> str:
        """Return a text of a message with the texts that belong into its slots."""
        for slot, held in self.slots.items():
            text = text.replace(slot, held.text)
        return text

    def whole_messages(self) -> Iterator[PromptPart | ToolTurn]:
        """Yield the messages with the texts that belong into their slots."""
        for each in self.messages:
            yield each if isinstance(each, ToolTurn) else with_text(each, self.fill_in(each.text))

    def count_tokens(self) -> int:
        """Return an upper estimate of the tokens of all that it says."""
        said = sum(estimate_tokens(text) for text in _texts_of(self.messages))
        return said + sum(held.count(estimate_tokens) for held in self.slots.values())


class ModelReply(Struct):
    """What an endpoint said besides the text.

    `tool_begun` says that it began to ask for a tool, `refused` that it did no work for the request.
    `id` and `finish_reason` are the endpoint's own words, empty if it says nothing.
    `reasoning_characters` counts reasoning that came apart from the text, and `thinks` says that it is at it now, perhaps
    without a word. `reasoning` is what goes back with the results of the tools that it asks for, known at the end.
    """

    model: str = ""
    id: str = ""
    finish_reason: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    finished: bool = False
    truncated: bool = False
    tool_begun: bool = False
    refused: bool = False
    reasoning_characters: int = 0
    thinks: bool = False
    tool_requests: list[ToolRequest] = field(default_factory=list)
    reasoning: Reasoning = field(default_factory=Reasoning)


class Reader(Protocol):
    """Reads an API's answer; `reply` fills as it goes, its `tool_requests` at `end`."""

    reply: ModelReply

    def read_event(self, event: Mapping[str, Any]) -> str:
        """Return the text that one streamed event adds. Raise Failure if the event is an error."""
        ...

    def says_text_alone(self, event: Mapping[str, Any]) -> bool:
        """Return whether nothing but text is taken from a streamed event."""
        ...

    def read_whole(self, answer: Mapping[str, Any]) -> str:
        """Return the text of an answer that came in one piece. Raise Failure if it is an error."""
        ...

    def end(self) -> None:
        """Note that there is no more to read."""
        ...


def describe_tool(tool: ToolSpec) -> dict[str, Any]:
    """Return a tool as both APIs have it described."""
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def schema_fields(shape: AnswerShape) -> dict[str, Any]:
    """Return a schema as both APIs take it."""
    return {"name": shape.name, "schema": shape.schema, "strict": shape.strict}


def create_tool_request(given_id: object, name: object, arguments: object) -> ToolRequest:
    """Return what a model asks of a tool, clean, whatever it sent."""
    return ToolRequest(
        clean(as_text(given_id), _MAX_ID),
        clean(as_text(name), _MAX_ID),
        clean(as_arguments(arguments), MAX_ARGUMENTS + 1),
    )
