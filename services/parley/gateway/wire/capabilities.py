"""What a process has learned of an endpoint, so that no later call pays for finding it out again."""

import re
import time
from collections.abc import Callable, Hashable, Mapping
from itertools import zip_longest
from typing import Any, Final

from msgspec import Struct

from parley.gateway.failures import CONTEXT_OVERFLOW
from parley.gateway.prompt.tools import Reasoning
from parley.gateway.wire.api import Api
from parley.gateway.wire.api_choice import ApiChoice, Lessons
from parley.gateway.wire.errors import of_status, text_of
from parley.gateway.wire.json_fields import as_mappings
from parley.gateway.wire.openai_parts import APIStatusError

_REFUSAL_STATUSES: Final = frozenset({400, 415, 422, 501})
_SCHEMA_WORDS: Final = re.compile(
    r"response_format|json_schema|text\.format|structured output|\bformat\b|\bschema\b", re.IGNORECASE
)
_STREAM_WORDS: Final = re.compile(r"\bstream(s|ed|ing)?\b", re.IGNORECASE)
_TOOL_STATUSES: Final = frozenset({400, 404, 415, 422, 500, 501})
"""404 is OpenRouter's if no provider of a model takes tools, 500 llama.cpp's if it has no template for them."""
_TOOL_WORDS: Final = re.compile(r"\btools?\b|\btool_|\bfunctions?\b|\bfunction_", re.IGNORECASE)
_NO_TOOLS_WORDS: Final = re.compile(
    r"tool use|--jinja|not support|unsupported|not implemented", re.IGNORECASE
)
_REASONING_WORDS: Final = re.compile(r"\breasoning(_content|_details)?\b|encrypted", re.IGNORECASE)
_OPTIONAL: Final = {
    Api.RESPONSES: {
        "store": r"\bstore\b",
        "temperature": r"\btemperature\b",
        "include": r"\bencrypted[_ ]content\b|['\"`]include['\"`]",
    },
    Api.CHAT: {
        "stream_options": r"\bstream_options\b",
        "temperature": r"\btemperature\b",
        "max_tokens": r"\bmax_tokens\b",
    },
}
"""Parameters that a request can do without if an endpoint refuses them, with the words that name them."""

_Lesson = tuple[Hashable, ...]
"""What was learned, then what of."""


class _Tried(Struct, frozen=True):
    """What a refusal seemed to say, and the refusal's words without those that differ each time."""

    lesson: _Lesson
    complaint: str


class EndpointCapabilities:
    """Which API an endpoint has, which parameters it refuses, and which models take no schema, no tools or no stream.

    Every lesson is forgotten after a while, and learned again if it still holds. What a refusal seems to say holds for the call
    that it came to, and for others only once the endpoint has taken that call for it: a refusal may repeat what the caller wrote, or
    be about the caller's own schema. So that a schema was refused is learned of that schema alone.
    """

    def __init__(
        self,
        api: Api | None = None,
        first_api: Api = Api.CHAT,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.api = ApiChoice(api, first_api, now)
        self._known = Lessons[_Lesson](now)
        self._tried: list[_Tried] = []

    def of_call(self) -> "EndpointCapabilities":
        """Return them for one call, which tries what it finds out before others go by it."""
        own = object.__new__(EndpointCapabilities)  # `copy` takes ten times as long
        own.api, own._known, own._tried = self.api, self._known, []
        return own

    def confirm(self) -> None:
        """Let others go by what this call tried, since the endpoint took its request: by that which helped.

        The last helped, and one before it if the endpoint then complained of something else.
        """
        for tried, after in zip_longest(self._tried, self._tried[1:]):
            if after is None or after.complaint != tried.complaint:
                self._known.learn(tried.lesson)
        self._tried = []

    def find_refused(self, api: Api, model: str) -> frozenset[str]:
        """Return names of the parameters not to send."""
        return frozenset(name for name in _OPTIONAL[api] if self._holds("refused", api, model, name))

    def takes_schema(self, model: str, schema: str) -> bool:
        """Return whether a schema, as JSON, is worth sending."""
        return not self._holds("no schema", model, schema)

    def needs_words(self, model: str, schema: str) -> bool:
        """Return whether a schema has to be put in words too, or instead of being sent."""
        return self._holds("no schema", model, schema) or self._holds("deaf", model)

    def takes_tools(self, model: str, *, with_schema: bool) -> bool:
        """Return whether tools are worth offering; some models take them, but not with a schema."""
        return not any(self._holds("no tools", model, schema_sent) for schema_sent in (False, with_schema))

    def streams(self, model: str, *, with_schema: bool) -> bool:
        """Return whether a stream is worth asking for; some models stream, but not with a schema."""
        return not any(self._holds("no stream", model, schema_sent) for schema_sent in (False, with_schema))

    def takes_back(self, api: Api, model: str, reasoning: Reasoning) -> Reasoning:
        """Return what of a model's reasoning goes back with the results of tools.

        Some endpoints refuse `reasoning_content`, and some refuse to go on without it: it is sent if it was missed.
        """
        if self._holds("no reasoning", api, model):
            return Reasoning()
        wanted = self._holds("wants reasoning", model) or "reasoning_content" not in reasoning.fields
        return reasoning if wanted else Reasoning(items=reasoning.items)

    def learn_schema_ignored(self, model: str) -> None:
        """Note that the model answered a schema with something that is not even JSON."""
        self._known.learn(("deaf", model))

    def reasons_untagged(self, model: str) -> bool:
        """Return whether answers of this model begin with reasoning that only its end marks as such."""
        return self._holds("untagged", model)

    def note_reasoning(self, model: str, *, untagged: bool) -> None:
        """Note whether only the end of an answer's reasoning was marked: what is so twice in a row is remembered, a stray tag is not."""
        once, always = ("untagged once", model), ("untagged", model)
        if not untagged:
            self._known.forget(once)
            self._known.forget(always)
        else:
            self._known.learn(always if self._known.holds(once) else once)

    def learn_no_tools(self, model: str, sent: dict[str, Any], error: APIStatusError) -> bool:
        """Return whether the error refuses the tools that were sent, which is remembered."""
        status = error.status_code
        if "tools" not in sent or status not in _TOOL_STATUSES or of_status(error).kind is CONTEXT_OVERFLOW:
            return False
        words = text_of(error)
        if not _TOOL_WORDS.search(words) or _is_about_reasoning(sent, words):
            return False
        if status in {404, 500, 501} and not _NO_TOOLS_WORDS.search(words):
            return False
        beside_schema = _has_schema(sent) and _SCHEMA_WORDS.search(words) is not None
        self._known.learn(("no tools", model, beside_schema))
        return True

    def learn(
        self, api: Api, model: str, sent: dict[str, Any], error: APIStatusError, schema: str = ""
    ) -> bool:
        """Take from an error what to try otherwise; False if there is nothing in it, and the error stands.

        `schema` is the one that was sent, if any, as JSON.
        """
        if error.status_code not in _REFUSAL_STATUSES:
            return False
        words = text_of(error)
        for name, named in _OPTIONAL[api].items():
            if name in sent and (error.param == name or re.search(named, words)):
                self._try(words, "refused", api, model, name)
                return True
        if _is_about_reasoning(sent, words) and self._try_reasoning(api, model, sent, words):
            return True
        if sent.get("stream") and _refuses_stream(sent, error, words):
            self._try(words, "no stream", model, _has_schema(sent))
            return True
        if _has_schema(sent) and _SCHEMA_WORDS.search(words):
            self._try(words, "no schema", model, schema)
            return True
        return False

    def _holds(self, *lesson: Hashable) -> bool:
        is_tried = bool(self._tried) and any(each.lesson == lesson for each in self._tried)
        return is_tried or self._known.holds(lesson)

    def _try(self, words: str, *lesson: Hashable) -> None:
        complaint = " ".join(each for each in words.split() if not any(map(str.isdigit, each)))
        self._tried.append(_Tried(lesson, complaint))

    def _try_reasoning(self, api: Api, model: str, sent: Mapping[str, Any], words: str) -> bool:
        """Return whether a refusal that speaks of reasoning helps: what was sent of it is left out, or what was missed is sent."""
        if _has_reasoning(sent):
            self._try(words, "no reasoning", api, model)
            return True
        if api is Api.RESPONSES or self._holds("wants reasoning", model):
            return False
        self._try(words, "wants reasoning", model)
        return True


def _refuses_stream(sent: dict[str, object], error: APIStatusError, words: str) -> bool:
    """Return whether it is the stream that was refused.

    Without a schema only the parameter's name counts: the message may repeat words of the prompt, and a text that does
    not stream any more is a loss.
    """
    return error.param == "stream" or (_has_schema(sent) and _STREAM_WORDS.search(words) is not None)


def _is_about_reasoning(sent: Mapping[str, Any], words: str) -> bool:
    """Return whether an error is about reasoning between turns with tools: that it is there, or that it is not."""
    return bool(_REASONING_WORDS.search(words)) and (_has_reasoning(sent) or _has_tool_calls(sent))


def _has_reasoning(sent: Mapping[str, Any]) -> bool:
    items, messages = as_mappings(sent.get("input")), as_mappings(sent.get("messages"))
    return any(item.get("type") == "reasoning" for item in items) or any(
        {"reasoning_content", "reasoning_details"} & message.keys() for message in messages
    )


def _has_tool_calls(sent: Mapping[str, Any]) -> bool:
    return any("tool_calls" in message for message in as_mappings(sent.get("messages")))


def _has_schema(sent: dict[str, object]) -> bool:
    return "text" in sent or "response_format" in sent
