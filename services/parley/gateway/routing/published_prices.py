"""Published prices and contexts of sellers of models, out of the data that the package `genai-prices` carries.

Nothing is fetched. The data takes some tenths of a second to load, so it is loaded once, in a thread, when a route first
needs it.
"""

import asyncio
import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo

__all__ = ["PublishedPrices", "Seller"]


@dataclass(frozen=True, slots=True)
class Seller:
    """Who serves a provider's models: by the name of its price list where that is known, else by its address."""

    base_url: str
    price_list: str | None = None

    @property
    def may_be_public(self) -> bool:
        """Tell whether prices may be published for it; nobody publishes those of an address in a private network."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return "." in host
        return False


class PublishedPrices:
    """Prices in US dollars a million tokens, once they are loaded."""

    def __init__(self) -> None:
        self._snapshot: DataSnapshot | None = None
        self._loading = asyncio.Lock()

    @property
    def is_loaded(self) -> bool:
        """Tell whether prices can be looked up."""
        return self._snapshot is not None

    async def load(self) -> None:
        """Load the data, unless that has been done."""
        async with self._loading:
            if self._snapshot is None:
                self._snapshot = await asyncio.to_thread(_snapshot)

    def of(self, seller: Seller, model: str) -> tuple[float, float] | None:
        """Return what a token read and one written cost today, None where that is not known, or not loaded.

        Where long prompts cost more, it is the price of short ones.
        """
        found = self._model(seller, model)
        if found is None:
            return None
        prices = found.get_prices(datetime.now(UTC))
        read, written = (_base(getattr(prices, name, None)) for name in ("input_mtok", "output_mtok"))
        return None if read is None or written is None else (read, written)

    def context_of(self, seller: Seller, model: str) -> int:
        """Return the tokens that prompt and answer may have together, 0 where that is not known, or not loaded."""
        found = self._model(seller, model)
        return (found.context_window or 0) if found is not None else 0

    def _model(self, seller: Seller, model: str) -> "ModelInfo | None":
        if self._snapshot is None or not seller.may_be_public:
            return None
        url = None if seller.price_list else seller.base_url
        try:
            _, found = self._snapshot.find_provider_model(model, None, seller.price_list, url)
        except LookupError:
            return None
        return found


def _snapshot() -> "DataSnapshot":
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot()


def _base(price: Any) -> float | None:
    base = getattr(price, "base", price)
    return float(base) if isinstance(base, Decimal) else None
