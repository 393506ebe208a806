"""What a model server has and lacks, and what it answers; all of it may change while it runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.model_server.faults import ErrorShape, Fault, context_overflow, error, unknown_model
from tests.support.model_server.rules import Call
from tests.support.model_server.tools import tools_of
from tests.support.model_server.wire import wanted_schema
from tests.support.model_server.words import count_tokens

__all__ = ["PATHS", "Switches", "refusal"]

PATHS = frozenset({"/v1/responses", "/v1/chat/completions", "/v1/embeddings", "/v1/models"})


@dataclass(frozen=True, slots=True)
class Switches:
    """What the server has.

    `responses`, `chat` and `embeddings` are the endpoints; a missing one answers 404 in `missing_shape`.
    `require_key` answers 401 to any other key. Without `schema_support` a request for JSON by a schema is a 400, and
    without `tool_support` one with tools.
    `models` are the only models it knows (None: any name will do); `context_tokens` is how many tokens a prompt
    may have, by `words.count_tokens`. An answer made up by the server has `answer_words` words; a vector has
    `dimensions` numbers unless the request says how many.
    """

    responses: bool = True
    chat: bool = True
    embeddings: bool = True
    schema_support: bool = True
    tool_support: bool = True
    require_key: str | None = None
    missing_shape: ErrorShape = ErrorShape.DETAIL
    models: tuple[str, ...] | None = None
    context_tokens: int | None = None
    answer_words: int = 24
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
        return error(404, _missing_message(switches, call), shape=switches.missing_shape)
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
    if not switches.schema_support and wanted_schema(call.body) is not None:
        return _no_schemas(call.body)
    if not switches.tool_support and tools_of(call.body):
        return error(400, f"{call.model} does not support tools")
    return None


def _missing_message(switches: Switches, call: Call) -> str:
    return "Not Found" if switches.missing_shape is ErrorShape.DETAIL else f"Invalid URL (POST {call.path})"


def _no_schemas(body: Mapping[str, Any]) -> Fault:
    param = "response_format" if "response_format" in body else "text.format"
    message = f"Invalid parameter: '{param}' of type 'json_schema' is not supported with this model."
    return error(400, message, param=param)
