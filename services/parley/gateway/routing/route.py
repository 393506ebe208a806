"""A route: what is known of it, and how it does at this replica."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from parley.gateway.routing.breaker import Flight, Permit, RouteBreaker
from parley.gateway.routing.queue import Limits, RouteQueue
from parley.gateway.usage import RouteUsage
from parley.gateway.wire.endpoint import Endpoint

__all__ = ["DefaultRoute", "LiveRoute", "Route"]

_NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Route:
    """A model at a provider, and what is known of it.

    Attributes:
        context_tokens: tokens that prompt and answer may have together, as someone has set them; 0: nobody has.
        max_output_tokens: of an answer where the caller says nothing; 0: the endpoint's own.
        limits: what it takes from this replica.
        input_price, output_price: millionths of a US dollar a token; None: unknown.
        local: whether it runs in a process of ours.
        demonstration: whether its model is too small for its answers to be relied on.
        continues_answers: whether it goes on from an answer that was begun for it.
        listed_context_tokens: what the endpoint's list of models tells of the context, where nobody has set it; 0: nothing.
        published_context_tokens: what is published of the model's context, where nobody has set it; 0: nothing. It is told, and no
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
    listed_context_tokens: int = 0
    published_context_tokens: int = 0

    @property
    def is_priced(self) -> bool:
        """Tell whether it is known what tokens cost."""
        return self.input_price is not None and self.output_price is not None

    @property
    def served_context_tokens(self) -> int:
        """The context that prompts are fitted to: as it was set, or as the endpoint tells it; 0: unknown."""
        return self.context_tokens or self.listed_context_tokens

    @property
    def known_context_tokens(self) -> int:
        """The context as far as anything tells it, which may be more than is served; 0: unknown."""
        return self.served_context_tokens or self.published_context_tokens

    def cost_micros(self, used: RouteUsage) -> int | None:
        """Return what these tokens cost, None where a price is unknown. Rounded up."""
        if self.input_price is None or self.output_price is None:
            return None
        return -int(-(used.input_tokens * self.input_price + used.output_tokens * self.output_price) // 1)


@dataclass(frozen=True, slots=True)
class DefaultRoute:
    """A route for agents that name none. Without a model: the first that the provider lists, asked by the first call."""

    provider: str
    model: str | None


@dataclass(slots=True, eq=False)
class LiveRoute:
    """A route with its endpoint, its breaker and its calls in flight at this replica.

    One without a model stands for the route of the model that its provider lists first, until that is known.
    """

    route: Route
    endpoint: Endpoint
    breaker: RouteBreaker
    queue: RouteQueue
    may_send_trial: "Callable[[LiveRoute], Awaitable[bool]] | None" = None
    """Asks the other replicas before a trial goes out."""

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
