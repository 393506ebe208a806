"""What endpoints list as their models: requested apart from calls, and remembered for a while."""

import asyncio
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from parley.gateway.failures import Failure
from parley.gateway.wire.endpoint import Endpoint, ListedModel
from parley.runtime.clock import Clock
from parley.runtime.logs import get_logger

_SECONDS: Final = 2.0
"""How long an endpoint may take to list its models: the start of a debate waits for it."""
_FRESH_SECONDS: Final = 3600.0
_AGAIN_SECONDS: Final = 60.0
"""After how long an endpoint is asked again: if it gave a list, and if it gave none."""

_logger = get_logger(__name__)


class _Listing(Struct, frozen=True):
    endpoint: Endpoint
    models: tuple[ListedModel, ...]
    ask_again: float


class ModelLists:
    """The models that endpoints listed last. A provider with another endpoint is one that was never asked."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_provider: dict[str, _Listing] = {}
        self._asking = asyncio.Lock()

    def of(self, endpoint: Endpoint) -> tuple[ListedModel, ...]:
        """Return what an endpoint listed, empty if that is not known."""
        known = self._by_provider.get(endpoint.provider.name)
        return known.models if known is not None and known.endpoint is endpoint else ()

    def context_of(self, endpoint: Endpoint, model: str) -> int:
        """Return the context of a model by its endpoint's list, in tokens; 0: the list does not say."""
        return next((each.context_tokens for each in self.of(endpoint) if each.name == model), 0)

    def parameters_of(self, endpoint: Endpoint, model: str) -> int:
        """Return how many parameters a model has by its endpoint's list; 0: the list does not say."""
        return next((each.parameters for each in self.of(endpoint) if each.name == model), 0)

    def take(self, endpoint: Endpoint, models: tuple[ListedModel, ...]) -> None:
        """Remember what an endpoint listed just now."""
        ask_again = self._clock.monotonic() + _FRESH_SECONDS
        self._by_provider[endpoint.provider.name] = _Listing(endpoint, models, ask_again)

    async def ask(self, endpoints: Iterable[Endpoint]) -> None:
        """Ask those endpoints that were not asked of late, all at once. One that gives no list keeps the one before."""
        wanted = {each.provider.name: each for each in endpoints}
        async with self._asking:
            now = self._clock.monotonic()
            await asyncio.gather(*(self._ask(each) for each in wanted.values() if self._is_due(each, now)))

    def _is_due(self, endpoint: Endpoint, now: float) -> bool:
        known = self._by_provider.get(endpoint.provider.name)
        return known is None or known.endpoint is not endpoint or known.ask_again <= now

    async def _ask(self, endpoint: Endpoint) -> None:
        try:
            async with asyncio.timeout(_SECONDS):
                self.take(endpoint, await endpoint.list_models())
        except (Failure, TimeoutError) as error:
            # Many list no models, and answer all the same: calls will show what there is.
            _logger.debug("no list of models", provider=endpoint.provider.name, said=str(error))
            ask_again = self._clock.monotonic() + _AGAIN_SECONDS
            name = endpoint.provider.name
            self._by_provider[name] = _Listing(endpoint, self.of(endpoint), ask_again)
