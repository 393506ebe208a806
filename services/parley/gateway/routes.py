"""Routes: which there are, how each does, and which serve an agent that names none."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from parley.gateway import metrics
from parley.gateway.breaker import DEFAULT_POLICY, BreakerPolicy, BreakerState, Permit, RouteBreaker
from parley.gateway.endpoint import Endpoint, Spent
from parley.gateway.errors_table import UNKNOWN_MODEL, AttemptFailed
from parley.gateway.limits import Limits, RouteQueue
from parley.gateway.prices import Prices
from parley.runtime.clock import Clock
from parley.runtime.logs import get_logger

__all__ = ["DefaultRoute", "LiveRoute", "Offer", "Route", "RouteTable", "Watcher"]

_logger = get_logger(__name__)

_MOST_ROUTES = 1024
"""Routes of open providers come into being when they are asked for; beyond this, idle ones are forgotten."""


_NO_LIMITS = Limits()
_NO_PRICES = Prices({}, {})


@dataclass(frozen=True, slots=True)
class Route:
    """A model at a provider, and what is known of it.

    Attributes:
        context_tokens: tokens that prompt and answer may have together; 0: unknown.
        max_output_tokens: of an answer where the caller says nothing; 0: the endpoint's own.
        limits: what it takes from this replica.
        input_price, output_price: millionths of a US dollar a token; None: unknown.
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

    def cost_micros(self, spent: Spent) -> int | None:
        """What these tokens cost, None where a price is unknown. Rounded up."""
        if self.input_price is None or self.output_price is None:
            return None
        return -int(-(spent.input_tokens * self.input_price + spent.output_tokens * self.output_price) // 1)


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
    may_try: "Callable[[LiveRoute], Awaitable[bool]] | None" = None
    """Asks the other replicas before a trial goes out."""

    async def admit(self) -> Permit | None:
        """Leave for a call, or None if no call may go out now. A trial is one of all replicas at a time."""
        permit = self.breaker.admit()
        if permit is None or not permit.trial or self.may_try is None:
            return permit
        try:
            granted = await self.may_try(self)
        except BaseException:
            self.breaker.release(permit)
            raise
        if granted and permit.generation == self.breaker.generation:
            return permit
        self.breaker.hold(permit)
        return None


@dataclass(slots=True, eq=False)
class Watcher:
    """Hears which routes changed; those that change while it looks away are told once."""

    changed: dict[str, None] = field(default_factory=dict)
    wake: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class Offer:
    """What there is to ask: endpoints by their provider's name, what is known of routes, and the usual ones.

    `prices` are those of routes that name none; of `open_providers` any model may be named.
    """

    endpoints: Mapping[str, Endpoint]
    routes: tuple[Route, ...] = ()
    open_providers: tuple[str, ...] = ()
    defaults: tuple[str | DefaultRoute, ...] = ()
    prices: Prices = _NO_PRICES


class RouteTable:
    """The routes of this replica by name."""

    def __init__(self, offer: Offer, clock: Clock, policy: BreakerPolicy = DEFAULT_POLICY) -> None:
        self._offer = offer
        self._clock = clock
        self._policy = policy
        self._configured = {route.name: route for route in offer.routes}
        self._listed: dict[str, str] = {}
        self._unlisted: dict[str, LiveRoute] = {}
        self._live: dict[str, LiveRoute] = {}
        self._watchers: set[Watcher] = set()
        self._states: dict[str, BreakerState] = {}
        self._may_try: Callable[[LiveRoute], Awaitable[bool]] | None = None
        for route in self._configured.values():
            self._add(route)

    @property
    def open_providers(self) -> tuple[str, ...]:
        """Providers of which any model may be named."""
        return self._offer.open_providers

    def replace(self, offer: Offer) -> None:
        """Goes by another offer from now on. Calls that run end on the routes they have; what stayed keeps its breaker."""
        before, self._live = self._live, {}
        same = {
            name for name, endpoint in offer.endpoints.items() if self._offer.endpoints.get(name) is endpoint
        }
        self._listed = {name: model for name, model in self._listed.items() if name in same}
        self._unlisted = {name: live for name, live in self._unlisted.items() if name in same}
        self._offer = offer
        self._configured = {route.name: route for route in offer.routes}
        for route in offer.routes:
            self._keep(before.get(route.name), route)
        for name, live in before.items():
            if name not in self._live and live.route.provider in offer.open_providers:
                provider, _, model = name.partition("/")
                if provider == live.route.provider and model:
                    self._keep(live, Route(name, provider, model))

    def _keep(self, before: LiveRoute | None, route: Route) -> None:
        endpoint = self._offer.endpoints[route.provider]
        if before is None or before.endpoint is not endpoint:
            self._add(route)
            return
        if before.route.limits != route.limits:
            before.queue.change(route.limits)
        self._live[route.name] = replace(before, route=self._priced(route))
        self._changed(route.name)()

    def _priced(self, route: Route) -> Route:
        if route.input_price is not None or route.output_price is not None:
            return route
        price = self._offer.prices.of(route.provider, route.model)
        return route if price is None else replace(route, input_price=price.input, output_price=price.output)

    def share(self, may_try: Callable[[LiveRoute], Awaitable[bool]]) -> None:
        """Has trials of all routes asked for first."""
        self._may_try = may_try
        for live in self._live.values():
            live.may_try = may_try

    def get(self, name: str) -> LiveRoute | None:
        """The route of that name, None if there is none and none can be made of it."""
        live = self._live.get(name)
        if live is None:
            provider, _, model = name.partition("/")
            if model and provider in self.open_providers:
                self._make_room()
                live = self._add(Route(name, provider, model))
        return live

    def known(self, name: str) -> LiveRoute | None:
        """The route of that name, if it was configured or used."""
        return self._live.get(name)

    def names(self) -> list[str]:
        """What may be named, for a message to a person."""
        return [*sorted(self._configured), *(f"{provider}/MODEL" for provider in self.open_providers)]

    def listing(self) -> list[LiveRoute]:
        """All routes that were configured or used, ordered by name."""
        return [self._live[name] for name in sorted(self._live)]

    def defaults(self) -> tuple[LiveRoute, ...]:
        """The routes of agents that name none, in order; without a model where the provider has not been asked yet.

        Raises AttemptFailed if there is none.
        """
        found = tuple(
            live for default in self._offer.defaults if (live := self._default(default)) is not None
        )
        if not found:
            raise AttemptFailed(UNKNOWN_MODEL, "no model is configured; set OPENAI_API_KEY or PARLEY_MODEL")
        return found

    def named(self, live: LiveRoute) -> LiveRoute:
        """The route that one without a model stands for, if that is known by now; any other is itself."""
        model = live.route.model or self._listed.get(live.route.provider)
        if live.route.model or model is None:
            return live
        return self.get(f"{live.route.provider}/{model}") or live

    def listed(self, live: LiveRoute, model: str) -> LiveRoute:
        """Takes note of what the provider of a route without a model lists first, and returns that route.

        Raises AttemptFailed if the provider was taken away meanwhile.
        """
        provider = live.route.provider
        if self._offer.endpoints.get(provider) is live.endpoint:
            self._listed[provider] = model
        found = self.get(f"{provider}/{model}")
        if found is None:
            raise AttemptFailed(UNKNOWN_MODEL, f"there is no provider {provider!r} any more", route=provider)
        return found

    def known_defaults(self) -> list[str]:
        """The names of the default routes as far as they are known without asking a provider."""
        names: list[str] = []
        for default in self._offer.defaults:
            if isinstance(default, str):
                names.append(default)
            elif (model := default.model or self._listed.get(default.provider)) is not None:
                names.append(f"{default.provider}/{model}")
        return names

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[Watcher]:
        """A watcher that hears of changes as long as the block lasts."""
        watcher = Watcher()
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    def _default(self, default: str | DefaultRoute) -> LiveRoute | None:
        if isinstance(default, str):
            return self.get(default)
        model = default.model or self._listed.get(default.provider)
        return self.get(f"{default.provider}/{model}") if model else self._unlisted_of(default.provider)

    def _unlisted_of(self, provider: str) -> LiveRoute:
        if provider not in self._unlisted:
            self._unlisted[provider] = self._made(Route(provider, provider, ""))
        return self._unlisted[provider]

    def _add(self, route: Route) -> LiveRoute:
        live = self._made(self._priced(route))
        live.may_try = self._may_try
        self._live[route.name] = live
        self._changed(route.name)()
        return live

    def _made(self, route: Route) -> LiveRoute:
        return LiveRoute(
            route,
            self._offer.endpoints[route.provider],
            RouteBreaker(self._clock, self._policy, self._changed(route.name)),
            RouteQueue(route.limits),
        )

    def _changed(self, name: str) -> Callable[[], None]:
        def tell() -> None:
            self._log_state(name)
            for watcher in self._watchers:
                watcher.changed[name] = None
                watcher.wake.set()

        return tell

    def _log_state(self, name: str) -> None:
        live = self._live.get(name) or self._unlisted.get(name)
        if live is None:
            return
        state = live.breaker.state
        metrics.breaker_state(name, state)
        before = self._states.get(name, BreakerState.CLOSED)
        self._states[name] = state
        if state is before:
            return
        if state is BreakerState.OPEN:
            _logger.warning("breaker opened", route=name, said=live.breaker.snapshot().last_failure)
        else:
            _logger.info("breaker changed", route=name, state=state.value)

    def _make_room(self) -> None:
        """Forgets a route that nobody uses now, one whose breaker has nothing to remember if there is any."""
        if len(self._live) < _MOST_ROUTES:
            return
        idle = [
            live
            for name, live in self._live.items()
            if name not in self._configured and not (live.queue.in_flight or live.queue.waiting)
        ]
        if idle:
            gone = min(idle, key=_remembers).route.name
            del self._live[gone]
            self._states.pop(gone, None)


def _remembers(live: LiveRoute) -> tuple[bool, int]:
    snapshot = live.breaker.snapshot()
    return snapshot.state is not BreakerState.CLOSED, snapshot.failures_in_a_row
