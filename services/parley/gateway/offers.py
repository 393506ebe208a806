"""From a plan to what there is to ask."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack

import httpx2

from parley.gateway.plan import Plan
from parley.gateway.providers.kind import ProviderKind
from parley.gateway.routing.prices import load_prices
from parley.gateway.routing.published_prices import PublishedPrices, Seller
from parley.gateway.routing.table import Offer
from parley.gateway.settings import GatewaySettings
from parley.gateway.wire.endpoint import Endpoint, EndpointLimits
from parley.gateway.wire.provider import Provider
from parley.runtime.errors import ConfigurationError

__all__ = ["Offers"]


class Offers:
    """Makes offers of plans, with one endpoint for a provider as long as nothing about it changes."""

    def __init__(
        self, settings: GatewaySettings, kinds: Mapping[str, ProviderKind], stack: AsyncExitStack
    ) -> None:
        self._kinds = kinds
        self._prices_file = settings.prices_file
        self._published_prices = PublishedPrices()
        self._stack = stack
        self._endpoints: dict[str, Endpoint] = {}
        self._limits = EndpointLimits(
            settings.connect_timeout_seconds,
            settings.first_token_timeout_seconds,
            settings.idle_timeout_seconds,
            settings.max_connections,
            settings.trace_content,
        )

    async def of(self, chosen: Plan) -> Offer:
        """Return the offer of a plan. Raises ConfigurationError for a file of prices or an endpoint that cannot be used."""
        sellers = {each.name: Seller(each.base_url, each.price_list) for each in chosen.providers}
        prices = await asyncio.to_thread(load_prices, self._prices_file, sellers, self._published_prices)
        self._endpoints = {each.name: self._endpoint(each) for each in chosen.providers}
        return Offer(self._endpoints, chosen.routes, chosen.open_providers, chosen.defaults, prices)

    def _endpoint(self, provider: Provider) -> Endpoint:
        known = self._endpoints.get(provider.name)
        if known is not None and known.provider == provider:
            return known
        try:
            made = self._kinds[provider.kind].connect(provider, self._limits)
        except (httpx2.InvalidURL, ValueError) as error:
            raise ConfigurationError(f"provider {provider.name}: cannot be asked: {error}") from None
        self._stack.push_async_callback(made.aclose)  # calls that run may still be on it until the end
        return made
