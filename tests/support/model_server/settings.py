"""What a model server has and lacks, and what it answers; all of it may change while it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.model_server.faults import ErrorShape, Fault, context_overflow, error, unknown_model
from tests.support.model_server.rules import Call
from tests.support.model_server.tools import has_reasoning, tool_results_of, tools_of
from tests.support.model_server.wire import find_schema
from tests.support.model_server.words import count_tokens

PATHS = frozenset({"/v1/responses", "/v1/chat/completions", "/v1/embeddings", "/v1/models"})


@dataclass(frozen=True, slots=True)
class Switches:
    """What the server has.

    `responses`, `chat` and `embeddings` are the endpoints; a missing one answers 404 in `missing_shape`.
    `require_key` answers 401 to any other key. Without `schema_support` a request for JSON by a schema is a 400, without
    `schema_streaming` one that is also to be streamed, and without `tool_support` one with tools.
    `models` are the only models it knows (None: any name will do), each listed with what `model_entry` says of it; `context_tokens` is how many tokens a prompt
    may have, by `words.count_tokens`. A `reasoning_model` refuses a temperature, and `max_tokens` in Chat, as OpenAI's
    do; `reasoning_back` says whether calls of tools have to come back with the reasoning before them, or must not. An answer made up by the server has `answer_words` words and,
    with `states_positions`, ends with the line that states a position, where that is asked for; a vector has `dimensions` numbers unless the request says how many.
    """

    responses: bool = True
    chat: bool = True
    embeddings: bool = True
    schema_support: bool = True
    schema_streaming: bool = True
    tool_support: bool = True
    require_key: str | None = None
    missing_shape: ErrorShape = ErrorShape.DETAIL
    models: tuple[str, ...] | None = None
    model_entry: Mapping[str, Any] = field(default_factory=lambda: {"max_model_len": 131_072})
    context_tokens: int | None = None
    reasoning_model: bool = False
    reasoning_back: Literal["wanted", "refused"] | None = None
    answer_words: int = 24
    states_positions: bool = False
    dimensions: int = 256

    def has(self, path: str) -> bool:
        """Tell whether there is something at this path."""
        match path:
            case "/v1/responses":
                return self.responses
            case "/v1/chat/completions":
                return self.chat
            case "/v1/embeddings":
                return self.embeddings
            case _:
                return path in PATHS


def refusal(switches: Switches, call: Call) -> Fault | None:  # noqa: PLR0911 - one line a reason
    """Return the error for a call that this server, as it is switched, does not serve."""
    if not switches.has(call.path):
        return error(404, _describe_missing(switches, call), shape=switches.missing_shape)
    if (
        switches.require_key is not None
        and call.headers.get("Authorization") != f"Bearer {switches.require_key}"
    ):
        return error(401)
    if call.path == "/v1/models":
        return None
    if switches.models is not None and call.model not in switches.models:
        return unknown_model(call.model)
    if switches.context_tokens is not None and (asked := count_tokens(call.prompt)) > switches.context_tokens:
        return context_overflow(switches.context_tokens, asked)
    if find_schema(call.body) is not None:
        if not switches.schema_support:
            return _refuse_schema(call.body, "is not supported with this model")
        if not switches.schema_streaming and call.streamed:
            return _refuse_schema(call.body, "does not support streaming")
    if not switches.tool_support and tools_of(call.body):
        return error(400, f"{call.model} does not support tools")
    return _refuse_reasoning(switches, call)


def _refuse_reasoning(switches: Switches, call: Call) -> Fault | None:
    """Return the error of a reasoning model, in the words of OpenAI, DeepSeek and Moonshot."""
    body = call.body
    if switches.reasoning_model and "temperature" in body:
        told = "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported."
        return error(400, told, param="temperature", code="unsupported_value")
    if switches.reasoning_model and "max_tokens" in body:
        told = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        return error(400, told, param="max_tokens", code="unsupported_parameter")
    thought, asked = has_reasoning(body), len(tool_results_of(body))
    if switches.reasoning_back == "refused" and "include" in body:
        return error(400, "Encrypted content is not supported with this model.", param="include")
    if switches.reasoning_back == "refused" and thought:
        return error(400, "reasoning_content is not allowed in the messages of a request")
    if switches.reasoning_back == "wanted" and asked and not thought:
        return error(400, "reasoning_content is missing in assistant tool call message at index 2")
    return None


def _describe_missing(switches: Switches, call: Call) -> str:
    return "Not Found" if switches.missing_shape is ErrorShape.DETAIL else f"Invalid URL (POST {call.path})"


def _refuse_schema(body: Mapping[str, Any], why: str) -> Fault:
    param = "response_format" if "response_format" in body else "text.format"
    message = f"Invalid parameter: '{param}' of type 'json_schema' {why}."
    return error(400, message, param=param)
