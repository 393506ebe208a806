"""An answer without a model, to try out everything around one: it says that it is an echo, and repeats what was asked.

No file names it. The setting PARLEY_ECHO offers it, as the route `echo/echo`.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from parley.gateway.prompt.fitting import estimate_tokens
from parley.gateway.prompt.sanitizer import clean
from parley.gateway.providers.kind import ProviderKind
from parley.gateway.tracing import TraceLabels
from parley.gateway.usage import RouteUsage
from parley.gateway.wire.api import Api, ModelRequest
from parley.gateway.wire.capabilities import EndpointCapabilities
from parley.gateway.wire.endpoint import EndpointLimits, ListedModel, Provider, Reply
from parley.gateway.wire.streams import Listener
from parley.v1.gateway_pb2 import PromptPart

MODEL: Final = "echo"
_SAYS_SO: Final = "Echo (no model was asked)"
_REPEATED: Final = 300
"""Characters of the prompt that are repeated."""
_MAX_LEVELS: Final = 16
"""Of a schema that is filled; what lies deeper is left empty, and the gateway refuses the answer."""


class EchoEndpoint(Struct):
    """The endpoint of the echo: nothing is sent anywhere."""

    provider: Provider
    limits: EndpointLimits
    capabilities: EndpointCapabilities = field(default_factory=lambda: EndpointCapabilities(Api.CHAT))

    @property
    def traces_content(self) -> bool:
        """Whether spans carry prompts and answers."""
        return self.limits.trace_content

    async def complete(
        self,
        request: ModelRequest,
        used: RouteUsage,
        labels: TraceLabels,  # noqa: ARG002 (an endpoint takes it; no request is made that a span could tell of)
        listener: Listener | None = None,
    ) -> Reply:
        """Return the end of the prompt, or JSON of the shape that is asked for; either says that it is an echo."""
        if request.shape is None:
            text = clean(_repeat_prompt(request))
        else:
            text = json.dumps(_fill_schema(request.shape.schema, request.shape.schema, 0), ensure_ascii=False)
        used.requests += 1
        used.input_tokens += sum(map(estimate_tokens, request.texts()))
        used.output_tokens += estimate_tokens(text)
        if listener is not None:
            listener.add_text(text)
        return Reply(text, request.model, truncated=False)

    async def list_models(self) -> tuple[ListedModel, ...]:
        """Return the one name that it answers to."""
        return (ListedModel(MODEL),)

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""


KIND: Final = ProviderKind("echo", connect=EchoEndpoint)


def provider() -> Provider:
    """Return the provider of the echo."""
    return Provider(KIND.name, KIND.name, base_url="", api=Api.CHAT, usual_model=MODEL)


def _repeat_prompt(request: ModelRequest) -> str:
    asked = [each.text for each in request.whole_messages() if isinstance(each, PromptPart)]
    said = " ".join(asked[-1].split())[:_REPEATED] if asked else ""
    return f"{_SAYS_SO}: {said}\nPosition: {_SAYS_SO}."


def _fill_schema(schema: Any, root: Mapping[str, Any], level: int) -> Any:
    """Return a value of the schema: first choices, least numbers, and texts that say what it is."""
    chosen = _resolve_schema(schema, root)
    if "const" in chosen or "enum" in chosen:
        return chosen["const"] if "const" in chosen else chosen["enum"][0]
    if level > _MAX_LEVELS:
        return None
    match chosen.get("type"):
        case "object":
            parts = chosen.get("properties", {})
            return {name: _fill_schema(part, root, level + 1) for name, part in parts.items()}
        case "array":
            return [_fill_schema(chosen.get("items"), root, level + 1)] * max(chosen.get("minItems", 1), 1)
        case kind:
            return _fill_scalar(kind, chosen)


def _fill_scalar(kind: object, schema: Mapping[str, Any]) -> Any:
    match kind:
        case "string":
            return _SAYS_SO[: schema.get("maxLength", len(_SAYS_SO))]
        case "integer" | "number":
            return schema.get("minimum", min(schema.get("maximum", 0), 0))
        case "boolean":
            return False
        case _:
            return None


def _resolve_schema(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that references and first alternatives lead to; an empty one if they lead nowhere."""
    for _ in range(_MAX_LEVELS):
        if not isinstance(schema, Mapping):
            return {}
        choices = schema.get("anyOf") or schema.get("oneOf") or ()
        if "$ref" in schema:
            schema = _follow_reference(str(schema["$ref"]), root)
        elif choices:
            schema = choices[0]
        else:
            return schema
    return {}


def _follow_reference(reference: str, root: Mapping[str, Any]) -> Any:
    """Return the part of the schema that a reference leads to, None if it leads nowhere."""
    part: Any = root
    for name in reference.removeprefix("#").strip("/").split("/"):
        part = part.get(name) if isinstance(part, Mapping) else None
    return part
