"""An endpoint as its callers see it, whatever API it has: its provider, its limits, its replies and its list of models."""

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import Struct, field
from pydantic import SecretStr

from parley.gateway.prompt.tools import Reasoning, ToolRequest
from parley.gateway.tracing import TraceLabels
from parley.gateway.usage import RouteUsage
from parley.gateway.wire.api import Api, ModelRequest
from parley.gateway.wire.capabilities import EndpointCapabilities
from parley.gateway.wire.json_fields import as_count, as_mapping, as_mappings, as_text
from parley.gateway.wire.streams import Listener
from parley.runtime.byte_budget import ByteBudget


class Provider(Struct, frozen=True):
    """Who serves models, and where.

    Attributes:
        kind: The name of its kind.
        api: The API that it is asked by; None: it has to be found out.
        first_api: The API that is asked first if it has to be found out.
        key_header: The header that carries the key.
        sends_organization: Whether requests carry OpenAI's own variables for organization and project.
        keep_alive: Whether a connection may serve a second request.
        patient: Whether its silence is waited out, for as long as the call has time.
        extra_body: Goes with every request.
        usual_model: The model of agents that name none; None: the first that it lists.
        models: Those that may be asked for there; empty: any.
        price_list: The name under which the built-in prices hold for it; None: they do not.
    """

    name: str
    kind: str
    base_url: str
    api_key: SecretStr | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    api: Api | None = None
    first_api: Api = Api.CHAT
    key_header: str = "Authorization"
    sends_organization: bool = False
    keep_alive: bool = True
    patient: bool = False
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    usual_model: str | None = None
    price_list: str | None = None
    models: tuple[str, ...] = ()


SENDING_BYTES: Final = 48 * 1024 * 1024
"""Of requests that are being sent at a time, by default."""
_MAX_NAME: Final = 512
_NO_TEXT: Final = re.compile(
    r"embed|minilm|rerank|whisper|paraphrase-|(?:^|[/_-])(?:bge|gte|e5)(?:[/_:-]|$)", re.IGNORECASE
)
"""In the names of models that make vectors, order passages or hear speech: no list says what its models are for."""

_SERVED: Final = ("max_model_len", "n_ctx", "loaded_context_length")
_POSSIBLE: Final = ("context_length", "context_window", "max_context_length")
_CONTEXTS: Final = (*_SERVED, *_POSSIBLE)
"""Fields with a model's context: vLLM and SGLang, llama.cpp, LM Studio; then OpenRouter and Together, Groq, Mistral and LM
Studio. What is served comes before what the model could have. `n_ctx_train` is none: a server is seldom started with it."""
_MAX_CONTEXT: Final = 2**31 - 1
"""What the contract can say."""
_MAX_PARAMETERS: Final = 10**15


class ListedModel(Struct, frozen=True):
    """A model as a list names it.

    Attributes:
        context_tokens: Tokens that prompt and answer may have together. 0: it is not said.
        parameters: How many the model has. 0: it is not said.
    """

    name: str
    context_tokens: int = 0
    parameters: int = 0


def text_models(listing: object) -> tuple[ListedModel, ...]:
    """Return the models of a list that write text, by their names, in its order; none if it is no list."""
    listed: dict[str, ListedModel] = {}
    for each in as_mappings(as_mapping(listing).get("data")):
        name = as_text(each.get("id"))
        if _is_name(name) and not _NO_TEXT.search(name):
            listed.setdefault(name, ListedModel(name, _context(each), _parameters(each)))
    return tuple(listed.values())


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _MAX_NAME and text.isprintable()


def _context(entry: Mapping[str, Any]) -> int:
    """Return the context of a model by its entry, or by the `meta` that llama.cpp puts there; 0 if neither has it."""
    facts = {**as_mapping(entry.get("meta")), **entry}
    return next(
        (tokens for field in _CONTEXTS if 0 < (tokens := as_count(facts.get(field))) <= _MAX_CONTEXT), 0
    )


def _parameters(entry: Mapping[str, Any]) -> int:
    """Return how many parameters a model has by its entry, or by the `meta` that llama.cpp puts there; 0 if neither says it."""
    facts = {**as_mapping(entry.get("meta")), **entry}
    return as_count(facts.get("n_params"), _MAX_PARAMETERS)


class EndpointLimits(Struct, frozen=True):
    """Times in seconds.

    `first_token_seconds` is how long a stream may take to its first sign of life, `idle_seconds` how long it may be
    silent. `sending` bounds the bytes of requests that are being sent, to all endpoints that share it.
    """

    connect_seconds: float = 10.0
    first_token_seconds: float = 40.0
    idle_seconds: float = 30.0
    max_connections: int = 512
    trace_content: bool = False
    sending: ByteBudget = field(default_factory=lambda: ByteBudget(SENDING_BYTES))


class Reply(Struct, frozen=True):
    """A text through the sanitizer, with what the endpoint said of it, and the tools that it asks for instead.

    `reasoning` goes back with what the tools answer. `unclosed` is the reasoning that the text began with, if its end
    tag never came: the answer may stand in it.
    """

    text: str
    model: str
    truncated: bool
    tool_requests: tuple[ToolRequest, ...] = ()
    reasoning: Reasoning = field(default_factory=Reasoning)
    unclosed: str = ""


class ToolsRefused(Exception):  # noqa: N818 (a lesson, not an error of this program)
    """The endpoint takes no tools from this model, which is remembered: the request has to do without."""


class Endpoint(Protocol):
    """Where models are asked."""

    @property
    def provider(self) -> Provider:
        """Whose endpoint it is."""
        ...

    @property
    def capabilities(self) -> EndpointCapabilities:
        """What it turned out to be capable of."""
        ...

    @property
    def traces_content(self) -> bool:
        """Whether spans carry prompts and answers."""
        ...

    async def complete(
        self,
        request: ModelRequest,
        used: RouteUsage,
        labels: TraceLabels,
        listener: Listener | None = None,
    ) -> Reply:
        """Return one answer, and count in `used` what it took.

        `listener` gets the pieces of a streamed answer as they pass the sanitizer. Raise Failure, and ToolsRefused if
        the request offers tools that are not taken.
        """
        ...

    async def list_models(self) -> tuple[ListedModel, ...]:
        """Return the models that are listed and write text, in the endpoint's order; at least one. Raise Failure."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
