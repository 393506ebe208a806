"""An endpoint as those see it that ask it, whatever API it has."""

from dataclasses import dataclass, field
from typing import Protocol

from parley.gateway.prompt.tools import Reasoning, ToolRequest
from parley.gateway.tracing import TraceLabels
from parley.gateway.usage import RouteUsage
from parley.gateway.wire.api import ModelRequest
from parley.gateway.wire.capabilities import EndpointCapabilities
from parley.gateway.wire.listed_models import ListedModel
from parley.gateway.wire.provider import Provider
from parley.gateway.wire.streams import Listener

__all__ = ["Endpoint", "EndpointLimits", "Reply", "ToolsRefused"]


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """Times in seconds.

    `first_token_seconds` is how long a stream may take to its first sign of life, `idle_seconds` how long it may be
    silent.
    """

    connect_seconds: float = 10.0
    first_token_seconds: float = 40.0
    idle_seconds: float = 30.0
    max_connections: int = 512
    trace_content: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """A text through the airlock, with what the endpoint said of it, and the tools that it asks for instead.

    `reasoning` goes back with what the tools answer.
    """

    text: str
    model: str
    truncated: bool
    tool_requests: tuple[ToolRequest, ...] = ()
    reasoning: Reasoning = field(default_factory=Reasoning)


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

        `listener` hears the pieces of a streamed answer as they pass the airlock. Raises Failure, and ToolsRefused where
        the request offers tools that are not taken.
        """
        ...

    async def models(self) -> tuple[ListedModel, ...]:
        """Return the models that are listed and write text, in the endpoint's order; at least one. Raises Failure."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
