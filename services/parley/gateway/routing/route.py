"""A route: what is known of it, and how it does at this replica."""

from collections.abc import Awaitable, Callable
from math import ceil
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from parley.gateway.failures import FailureKind
from parley.gateway.routing.breaker import BreakerState, Flight, Permit, RouteBreaker
from parley.gateway.routing.queue import Limits, RouteQueue
from parley.gateway.usage import RouteUsage
from parley.gateway.wire.endpoint import Endpoint
from parley.v1 import gateway_pb2

_NO_LIMITS: Final = Limits()
_STATES: Final = {
    BreakerState.CLOSED: gateway_pb2.BREAKER_STATE_CLOSED,
    BreakerState.OPEN: gateway_pb2.BREAKER_STATE_OPEN,
    BreakerState.HALF_OPEN: gateway_pb2.BREAKER_STATE_HALF_OPEN,
}


class Route(Struct, frozen=True):
    """A model at a provider, and what is known of it.

    Attributes:
        context_tokens: tokens that prompt and answer may have together, as they are set; 0: they are not.
        max_output_tokens: of an answer if the caller says nothing; 0: the endpoint's own.
        limits: what it takes from this replica.
        input_price, output_price: millionths of a US dollar a token; None: unknown.
        local: whether it runs in a process of ours.
        demonstration: whether its model is too small for its answers to be relied on.
        continues_answers: whether it goes on from an answer that was begun for it.
        stronger: whether the settings call its model stronger than those of other routes.
        listed_context_tokens: the context in the endpoint's list of models, if it is not set; 0: nothing.
        published_context_tokens: what is published of the model's context, if it is not set; 0: nothing. It is reported, and no
            prompt is shortened for it.
    """

    name: str
    provider: str
    model: str
    context_tokens: int = 0
    max_output_tokens: int = 0
    limits: Limits = _NO_LIMITS
    input_price: float | None = None
    output_price: float | None = None
    local: bool = False
    demonstration: bool = False
    continues_answers: bool = False
    stronger: bool = False
    listed_context_tokens: int = 0
    published_context_tokens: int = 0

    @property
    def is_priced(self) -> bool:
        """Return whether it is known what tokens cost."""
        return self.input_price is not None and self.output_price is not None

    @property
    def served_context_tokens(self) -> int:
        """The context that prompts are fitted to: as it is set, or as the endpoint lists it; 0: unknown."""
        return self.context_tokens or self.listed_context_tokens

    @property
    def known_context_tokens(self) -> int:
        """The context from whatever source has it, which may be more than is served; 0: unknown."""
        return self.served_context_tokens or self.published_context_tokens

    def cost_micros(self, used: RouteUsage) -> int | None:
        """Return what these tokens cost, None if a price is unknown. Rounded up."""
        if self.input_price is None or self.output_price is None:
            return None
        return -int(-(used.input_tokens * self.input_price + used.output_tokens * self.output_price) // 1)


class DefaultRoute(Struct, frozen=True):
    """A route for agents that name none. Without a model: the first that the provider lists, asked by the first call."""

    provider: str
    model: str | None


class LiveRoute(Struct, eq=False):
    """A route with its endpoint, its breaker and its calls in flight at this replica.

    One without a model stands for the route of the model that its provider lists first, until that is known.
    """

    route: Route
    endpoint: Endpoint
    breaker: RouteBreaker
    queue: RouteQueue
    may_send_trial: "Callable[[LiveRoute], Awaitable[bool]] | None" = None
    """Asks the other replicas before a trial goes out."""
    last_failure: FailureKind | None = None
    """Of what kind the last failure here was; None: there was none, or an answer came since."""

    async def admit(self, flight: Flight | None = None) -> Permit | None:
        """Give leave for a route attempt, or None if none may go out now. A trial is one of all replicas at a time."""
        permit = self.breaker.admit(flight)
        if permit is None or not permit.trial or self.may_send_trial is None:
            return permit
        try:
            granted = await self.may_send_trial(self)
        except BaseException:
            self.breaker.release(permit)
            raise
        if granted and permit.generation == self.breaker.generation:
            return permit
        self.breaker.hold(permit)
        return None

    def status(self) -> gateway_pb2.RouteStatus:
        """Return the route and how it does now."""
        route, snapshot = self.route, self.breaker.snapshot()
        status = gateway_pb2.RouteStatus(
            name=route.name,
            provider=route.provider,
            model=route.model,
            context_tokens=route.known_context_tokens,
            breaker=_STATES[snapshot.state],
            failures_in_a_row=snapshot.failures_in_a_row,
            last_failure=snapshot.last_failure,
            in_flight=self.queue.in_flight,
            queued=self.queue.waiting,
            local=route.local,
            priced=route.is_priced,
            demonstration=route.demonstration,
            stronger=route.stronger,
            host=urlsplit(self.endpoint.provider.base_url).netloc.rpartition("@")[2],
        )
        if route.input_price is not None and route.output_price is not None:
            status.input_price_micros = ceil(route.input_price * 1_000_000)  # of a million tokens
            status.output_price_micros = ceil(route.output_price * 1_000_000)
        if snapshot.retry_at is not None:
            status.retry_at.FromDatetime(snapshot.retry_at)
        return status
