"""Routes: which there are, how each does, and which serve an agent that names none."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct, field
from msgspec.structs import replace

from parley.gateway.failures import UNKNOWN_MODEL, Failure
from parley.gateway.routing import metrics
from parley.gateway.routing.breaker import DEFAULT_POLICY, BreakerPolicy, BreakerState, RouteBreaker
from parley.gateway.routing.model_lists import ModelLists
from parley.gateway.routing.model_size import is_tiny
from parley.gateway.routing.prices import NO_PRICES, Prices
from parley.gateway.routing.queue import RouteQueue
from parley.gateway.routing.route import DefaultRoute, LiveRoute, Route
from parley.gateway.routing.successors import likely_successor
from parley.gateway.wire.endpoint import Endpoint, ListedModel
from parley.runtime.clock import Clock
from parley.runtime.logs import get_logger
from parley.v1.agent_pb2 import Agent

_logger = get_logger(__name__)

_MAX_ROUTES = 1024
"""Routes of open providers come into being when they are asked for; beyond this, idle ones are forgotten."""


class Watcher(Struct, eq=False):
    """Collects the routes that changed since it was last read, each once."""

    changed: dict[str, None] = field(default_factory=dict)
    wake: asyncio.Event = field(default_factory=asyncio.Event)


class Offer(Struct, frozen=True):
    """What there is to ask: endpoints by their provider's name, what is known of routes, and the usual ones.

    `prices` are those of routes that name none, and `context_tokens` too, if they are not 0; of `open_providers` any model may
    be named.
    """

    endpoints: Mapping[str, Endpoint]
    routes: tuple[Route, ...] = ()
    open_providers: tuple[str, ...] = ()
    defaults: tuple[str | DefaultRoute, ...] = ()
    prices: Prices = NO_PRICES
    context_tokens: int = 0


class RouteTable:
    """The routes of this replica by name."""

    def __init__(self, offer: Offer, clock: Clock, policy: BreakerPolicy = DEFAULT_POLICY) -> None:
        self._offer = offer
        self._clock = clock
        self._policy = policy
        self._configured = {route.name: route for route in offer.routes}
        self._lists = ModelLists(clock)
        self._unlisted: dict[str, LiveRoute] = {}
        self._live: dict[str, LiveRoute] = {}
        self._watchers: set[Watcher] = set()
        self._states: dict[str, BreakerState] = {}
        self._may_send_trial: Callable[[LiveRoute], Awaitable[bool]] | None = None
        for route in self._configured.values():
            self._add(route)

    @property
    def open_providers(self) -> tuple[str, ...]:
        """Providers of which any model may be named."""
        return self._offer.open_providers

    def replace(self, offer: Offer) -> None:
        """Go by another offer from now on. Calls that run end on the routes they have; what stayed keeps its breaker."""
        before, self._live = self._live, {}
        same = {
            name for name, endpoint in offer.endpoints.items() if self._offer.endpoints.get(name) is endpoint
        }
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
        self._live[route.name] = replace(before, route=self._complete(route))
        self._create_notifier(route.name)()

    def _complete(self, route: Route) -> Route:
        endpoint = self._offer.endpoints[route.provider]
        if not (route.context_tokens or route.demonstration):
            route = replace(route, context_tokens=self._offer.context_tokens)
        if route.model and is_tiny(route.model, self._lists.parameters_of(endpoint, route.model)):
            route = replace(route, demonstration=True)
        if not route.context_tokens:
            listed = self._lists.context_of(endpoint, route.model)
            prices = self._offer.prices
            published = prices.context_of(route.provider, route.model) or prices.context_by_name(route.model)
            route = replace(route, listed_context_tokens=listed, published_context_tokens=published)
        if route.input_price is not None or route.output_price is not None:
            return route
        price = self._offer.prices.of(route.provider, route.model)
        return route if price is None else replace(route, input_price=price.input, output_price=price.output)

    def share(self, may_send_trial: Callable[[LiveRoute], Awaitable[bool]]) -> None:
        """Have trials of all routes asked for first."""
        self._may_send_trial = may_send_trial
        for live in self._live.values():
            live.may_send_trial = may_send_trial

    def get(self, name: str) -> LiveRoute | None:
        """Return the route of that name, None if there is none and none can be made of it."""
        live = self._live.get(name)
        if live is None:
            provider, _, model = name.partition("/")
            if model and provider in self.open_providers:
                self._forget_idle()
                live = self._add(Route(name, provider, model))
        return live

    def choose(self, names: Sequence[str]) -> tuple[LiveRoute, ...]:
        """Return the routes of these names, or the default ones. One that is not there is passed over if another one is.

        Raise Failure if there is none.
        """
        if not names:
            return self.defaults()
        found = {name: self.get(name) for name in names}
        gone = [name for name, live in found.items() if live is None]
        known = ", ".join(self.names()) or "none"
        said = f"there is no route {' or '.join(map(repr, gone))}; routes: {known}"
        if len(gone) == len(found):
            raise Failure(UNKNOWN_MODEL, said, route=gone[0])
        if gone:
            _logger.error("route needs attention", route=gone[0], what=UNKNOWN_MODEL.name, said=said)
        return tuple(live for live in found.values() if live is not None)

    async def learn(self, routes: Sequence[LiveRoute]) -> None:
        """Find out what is not known yet of these routes and of the default ones: prices, contexts, and models."""
        await self.learn_prices(routes)
        await self._learn_contexts(routes)
        await self._learn_defaults()
        for name in self.default_names():
            self.get(name)  # whoever lists the routes sees where the default ones lead

    async def learn_used(self, agents: Iterable[Agent]) -> None:
        """Find it out for the routes that a debate of these agents takes, as far as they are known."""
        names = {name for each in agents for name in each.routes or self.default_names()}
        await self.learn([live for name in sorted(names) if (live := self.get(name)) is not None])

    async def learn_prices(self, routes: Sequence[LiveRoute]) -> None:
        """Look published prices and contexts up if one of these routes may have one that is not known yet."""
        prices = self._offer.prices
        unknown = (
            live.route for live in routes if live.route.input_price is None or not live.route.context_tokens
        )
        if not any(prices.may_be_published(route.provider, route.model) for route in unknown):
            return
        await prices.load_published()
        self._complete_all()

    async def _learn_contexts(self, routes: Sequence[LiveRoute]) -> None:
        """Ask the endpoints of those routes for it whose context is neither set nor published by their seller."""
        prices = self._offer.prices
        unknown = [
            live.endpoint
            for live in routes
            if not live.route.served_context_tokens
            and not prices.context_of(live.route.provider, live.route.model)
        ]
        if unknown:
            await self._lists.ask(unknown)
            self._complete_all()

    async def _learn_defaults(self) -> None:
        """Ask the providers of default routes without a model, or with their seller's usual one, which models they have."""
        unnamed = [
            each.provider
            for each in self._offer.defaults
            if isinstance(each, DefaultRoute)
            and (self._is_usual(each) if each.model else not self._first_listed(each.provider))
        ]
        await self._lists.ask(self._offer.endpoints[provider] for provider in unnamed)

    def find_missing_defaults(self) -> dict[str, str]:
        """Return the default routes of usual models that their seller lists no more, each with its likely successor or nothing."""
        found = {}
        for each in self._offer.defaults:
            if isinstance(each, DefaultRoute) and each.model and self._is_usual(each):
                listed = [model.name for model in self._lists.of(self._offer.endpoints[each.provider])]
                if listed and each.model not in listed:
                    found[f"{each.provider}/{each.model}"] = likely_successor(each.model, listed)
        return found

    def _is_usual(self, default: DefaultRoute) -> bool:
        """Return whether nobody chose the model: it is what its seller is asked for if nothing is said."""
        return default.model == self._offer.endpoints[default.provider].provider.usual_model

    def _complete_all(self) -> None:
        for live in self._live.values():
            live.route = self._complete(live.route)

    def find_known(self, name: str) -> LiveRoute | None:
        """Return the route of that name, if it was configured or used."""
        return self._live.get(name)

    def names(self) -> list[str]:
        """Return what may be named, for a message to a person."""
        return [*sorted(self._configured), *(f"{provider}/MODEL" for provider in self.open_providers)]

    def all_routes(self) -> list[LiveRoute]:
        """Return all routes that were configured or used, ordered by name."""
        return [self._live[name] for name in sorted(self._live)]

    def defaults(self) -> tuple[LiveRoute, ...]:
        """Return the routes of agents that name none, in order; without a model if the provider has not been asked yet.

        Raise Failure if there is none.
        """
        found = tuple(
            live for default in self._offer.defaults if (live := self._resolve_default(default)) is not None
        )
        if not found:
            raise Failure(
                UNKNOWN_MODEL,
                "no model is configured; set OPENAI_API_KEY or OPENROUTER_API_KEY, or OPENAI_BASE_URL and PARLEY_MODEL",
            )
        return found

    def resolve(self, live: LiveRoute) -> LiveRoute:
        """Return the route that one without a model stands for, if that is known by now; any other is itself."""
        model = live.route.model or self._first_listed(live.route.provider)
        if live.route.model or not model:
            return live
        return self.get(f"{live.route.provider}/{model}") or live

    def take_listed(self, live: LiveRoute, models: tuple[ListedModel, ...]) -> LiveRoute:
        """Take note of what the provider of a route without a model lists, and return the route of the first model.

        Raise Failure if the provider was taken away meanwhile.
        """
        provider = live.route.provider
        if self._offer.endpoints.get(provider) is live.endpoint:
            self._lists.take(live.endpoint, models)
        found = self.get(f"{provider}/{models[0].name}")
        if found is None:
            raise Failure(UNKNOWN_MODEL, f"there is no provider {provider!r} any more", route=provider)
        return found

    def default_names(self) -> list[str]:
        """Return the names of the default routes as far as they are known without asking a provider."""
        names: list[str] = []
        for default in self._offer.defaults:
            if isinstance(default, str):
                names.append(default)
            elif model := default.model or self._first_listed(default.provider):
                names.append(f"{default.provider}/{model}")
        return names

    def find_unnamed_defaults(self) -> list[LiveRoute]:
        """Return the default routes whose provider has yet to say which model it has, in order."""
        return [
            self._get_unlisted(each.provider)
            for each in self._offer.defaults
            if isinstance(each, DefaultRoute) and not (each.model or self._first_listed(each.provider))
        ]

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[Watcher]:
        """Yield a watcher that gets the changes while the block runs."""
        watcher = Watcher()
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    async def follow_changes(self) -> AsyncIterator[LiveRoute]:
        """Yield every route, then each that changes, for ever."""
        async with self.watch() as watcher:
            for live in self.all_routes():
                yield live
            while True:
                await watcher.wake.wait()
                watcher.wake.clear()
                names, watcher.changed = list(watcher.changed), {}
                for name in names:
                    changed = self.get(name)
                    if changed is not None:
                        yield changed

    def _resolve_default(self, default: str | DefaultRoute) -> LiveRoute | None:
        if isinstance(default, str):
            return self.get(default)
        model = default.model or self._first_listed(default.provider)
        return self.get(f"{default.provider}/{model}") if model else self._get_unlisted(default.provider)

    def _first_listed(self, provider: str) -> str:
        endpoint = self._offer.endpoints.get(provider)
        listed = self._lists.of(endpoint) if endpoint is not None else ()
        return listed[0].name if listed else ""

    def _get_unlisted(self, provider: str) -> LiveRoute:
        if provider not in self._unlisted:
            self._unlisted[provider] = self._create_live_route(Route(provider, provider, ""))
        return self._unlisted[provider]

    def _add(self, route: Route) -> LiveRoute:
        live = self._create_live_route(self._complete(route))
        live.may_send_trial = self._may_send_trial
        self._live[route.name] = live
        self._create_notifier(route.name)()
        return live

    def _create_live_route(self, route: Route) -> LiveRoute:
        return LiveRoute(
            route,
            self._offer.endpoints[route.provider],
            RouteBreaker(self._clock, self._policy, self._create_notifier(route.name)),
            RouteQueue(route.limits),
        )

    def _create_notifier(self, name: str) -> Callable[[], None]:
        def notify() -> None:
            self._log_state(name)
            for watcher in self._watchers:
                watcher.changed[name] = None
                watcher.wake.set()

        return notify

    def _log_state(self, name: str) -> None:
        live = self._live.get(name) or self._unlisted.get(name)
        if live is None:
            return
        state = live.breaker.state
        metrics.record_breaker_state(name, state)
        before = self._states.get(name, BreakerState.CLOSED)
        self._states[name] = state
        if state is before:
            return
        if state is BreakerState.OPEN:
            _logger.warning("breaker opened", route=name, said=live.breaker.snapshot().last_failure)
        else:
            _logger.info("breaker changed", route=name, state=state.value)

    def _forget_idle(self) -> None:
        """Forget a route that no call uses now, one whose breaker has nothing to remember if there is any."""
        if len(self._live) < _MAX_ROUTES:
            return
        idle = [
            live
            for name, live in self._live.items()
            if name not in self._configured and not (live.queue.in_flight or live.queue.waiting)
        ]
        if idle:
            gone = min(idle, key=_rank_for_forgetting).route.name
            del self._live[gone]
            self._states.pop(gone, None)


def _rank_for_forgetting(live: LiveRoute) -> tuple[bool, int]:
    snapshot = live.breaker.snapshot()
    return snapshot.state is not BreakerState.CLOSED, snapshot.failures_in_a_row
