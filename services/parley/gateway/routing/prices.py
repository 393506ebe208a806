"""What tokens cost: the operator's own table, then the one in this package, then published prices.

`{"provider/model": {"input": 0.25, "output": 2.0}}`, in US dollars a million tokens. A price that is in none of them is
unknown, and a cost that would need it is not reported. Prices that the agents file gives a route come before them all.
Published prices and contexts are in the data of the package `genai-prices`: nothing is fetched, and the data is loaded
once, in a thread, when a route first needs it.
"""

import asyncio
import ipaddress
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from parley.runtime.errors import ConfigurationError

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo


class Seller(Struct, frozen=True):
    """Who serves a provider's models: by the name of its price list if that is known, else by its address."""

    base_url: str
    price_list: str | None = None

    @property
    def may_be_public(self) -> bool:
        """Return whether prices may be published for it; no source has those of an address in a private network."""
        return _may_be_public(self.base_url)


@cache
def _may_be_public(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." in host
    return False


_OF_ITS_MAKER: Final = re.compile(
    r"(?:.*/)?(?P<name>(?:gpt-(?!oss)|chatgpt-|o\d(?:-|$)|claude-|gemini-|grok-).*)"
)
"""Names of models whose weights are not published: a proxy under any address has them from their makers."""


class PublishedPrices:
    """Prices in US dollars a million tokens, once they are loaded."""

    def __init__(self) -> None:
        self._snapshot: DataSnapshot | None = None
        self._loading = asyncio.Lock()

    @property
    def is_loaded(self) -> bool:
        """Return whether prices can be looked up."""
        return self._snapshot is not None

    async def load(self) -> None:
        """Load the data, unless that has been done."""
        async with self._loading:
            if self._snapshot is None:
                self._snapshot = await asyncio.to_thread(_load_snapshot)

    def of(self, seller: Seller, model: str) -> tuple[float, float] | None:
        """Return what a token read and one written cost today, None if that is not known, or not loaded.

        Where long prompts cost more, it is the price of short ones.
        """
        found = self._find_model(seller, model)
        if found is None:
            return None
        prices = found.get_prices(datetime.now(UTC))
        read, written = (_base_price(getattr(prices, name, None)) for name in ("input_mtok", "output_mtok"))
        return None if read is None or written is None else (read, written)

    def context_of(self, seller: Seller, model: str) -> int:
        """Return the tokens that prompt and answer may have together, 0 if that is not known, or not loaded."""
        found = self._find_model(seller, model)
        return (found.context_window or 0) if found is not None else 0

    def context_by_name(self, model: str) -> int:
        """Return the context of a model that only its maker serves, whoever passes calls on to it; 0 if it is none, or not loaded."""
        named = _OF_ITS_MAKER.fullmatch(model)
        if self._snapshot is None or named is None:
            return 0
        for provider, name in ((None, named["name"]), ("openrouter", f"google/{named['name']}")):
            with suppress(LookupError):
                _, found = self._snapshot.find_provider_model(name, None, provider, None)
                if found.context_window:
                    return found.context_window
        return 0

    def _find_model(self, seller: Seller, model: str) -> "ModelInfo | None":
        if self._snapshot is None or not seller.may_be_public:
            return None
        url = None if seller.price_list else seller.base_url
        try:
            _, found = self._snapshot.find_provider_model(model, None, seller.price_list, url)
        except LookupError:
            return None
        return found


def _load_snapshot() -> "DataSnapshot":
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot()


def _base_price(price: Any) -> float | None:
    base = getattr(price, "base", price)
    return float(base) if isinstance(base, Decimal) else None


_DATE: Final = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_Dollars = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]


class Price(BaseModel):
    """US dollars a million tokens, which are millionths of a dollar a token."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: _Dollars
    output: _Dollars


_TABLE: Final = TypeAdapter(dict[str, Price])


class Prices:
    """Prices of the models of providers, each of which is served by a seller.

    `own` is by `provider/model`, `listed` by the seller's price list in place of the provider.
    """

    def __init__(
        self,
        sellers: Mapping[str, Seller],
        own: Mapping[str, Price],
        listed: Mapping[str, Price],
        published: PublishedPrices,
    ) -> None:
        self._sellers = sellers
        self._own = own
        self._listed = listed
        self._published = published

    def of(self, provider: str, model: str) -> Price | None:
        """Return the price of a model, None if it is unknown. A dated version costs what its model costs."""
        seller = self._sellers.get(provider)
        if seller is None:
            return None
        listed = _find_price(self._listed, seller.price_list, model) if seller.price_list else None
        known = _find_price(self._own, provider, model) or listed
        if known is not None:
            return known
        published = self._published.of(seller, model)
        return Price(input=published[0], output=published[1]) if published is not None else None

    def context_of(self, provider: str, model: str) -> int:
        """Return what is published of a model's context by its seller, in tokens; 0: nothing."""
        seller = self._sellers.get(provider)
        return self._published.context_of(seller, model) if seller is not None else 0

    def context_by_name(self, model: str) -> int:
        """Return the context of a model that only its maker serves, whoever passes calls on to it; 0: it is none."""
        return self._published.context_by_name(model)

    def may_be_published(self, provider: str, model: str = "") -> bool:
        """Return whether more prices of a provider, or the context of a model, may be known once the published ones are loaded."""
        seller = self._sellers.get(provider)
        is_public = (seller is not None and seller.may_be_public) or _OF_ITS_MAKER.fullmatch(
            model
        ) is not None
        return is_public and not self._published.is_loaded

    async def load_published(self) -> None:
        """Load the published prices."""
        await self._published.load()


NO_PRICES: Final = Prices({}, {}, {}, PublishedPrices())


def _find_price(table: Mapping[str, Price], name: str, model: str) -> Price | None:
    return table.get(f"{name}/{model}") or table.get(f"{name}/{_DATE.sub('', model)}")


def load_prices(path: Path | None, sellers: Mapping[str, Seller], published: PublishedPrices) -> Prices:
    """Return the prices of providers, whose sellers are given by the providers' names; `path` is the operator's own table.

    Raise ConfigurationError if the file cannot be used.
    """
    listed = json.loads(files("parley.gateway.routing").joinpath("prices.json").read_text())
    own = _read_own(path) if path is not None else {}
    return Prices(sellers, own, _TABLE.validate_python(listed), published)


def _read_own(path: Path) -> dict[str, Price]:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"PARLEY_PRICES_FILE: {path}: cannot be read: {error}") from None
    try:
        return _TABLE.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ConfigurationError(f"PARLEY_PRICES_FILE: {path}: {where or 'file'}: {first['msg']}") from None
