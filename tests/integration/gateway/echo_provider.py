"""A kind of provider from outside: it needs no network, and says again what it was asked."""

from dataclasses import dataclass, field
from typing import Final

from parley.gateway.prompt.fitting import estimate_tokens
from parley.gateway.prompt.sanitizer import clean
from parley.gateway.providers.kind import ProviderKind
from parley.gateway.tracing import TraceLabels
from parley.gateway.usage import RouteUsage
from parley.gateway.wire.api import Api, ModelRequest
from parley.gateway.wire.capabilities import EndpointCapabilities
from parley.gateway.wire.endpoint import EndpointLimits, ListedModel, Provider, Reply
from parley.gateway.wire.streams import Listener


@dataclass(slots=True)
class EchoEndpoint:
    provider: Provider
    limits: EndpointLimits
    capabilities: EndpointCapabilities = field(default_factory=lambda: EndpointCapabilities(Api.CHAT))
    closed: bool = False

    @property
    def traces_content(self) -> bool:
        return self.limits.trace_content

    async def complete(
        self,
        request: ModelRequest,
        used: RouteUsage,
        labels: TraceLabels,
        listener: Listener | None = None,
    ) -> Reply:
        text = clean(" ".join(request.texts()))
        used.requests += 1
        used.input_tokens += estimate_tokens(text)
        used.output_tokens += estimate_tokens(text)
        if listener is not None:
            listener.add_text(text)
        return Reply(text, request.model, truncated=False)

    async def list_models(self) -> tuple[ListedModel, ...]:
        return (ListedModel("canyon", 512),)

    async def aclose(self) -> None:
        self.closed = True


KIND: Final = ProviderKind("parrot", connect=EchoEndpoint)
