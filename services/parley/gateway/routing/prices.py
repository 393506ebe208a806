"""What tokens cost: the operator's own table, then the one that comes along, then published prices.

`{"provider/model": {"input": 0.25, "output": 2.0}}`, in US dollars a million tokens. What is in none of them is unknown,
and a cost that would need it is not reported. Prices that the agents file gives a route come before them all.
"""

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from parley.gateway.routing.published_prices import PublishedPrices, Seller
from parley.runtime.errors import ConfigurationError

__all__ = ["NO_PRICES", "Price", "Prices", "load_prices"]

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
        """Return the price of a model, None where it is unknown. A dated version costs what its model costs."""
        seller = self._sellers.get(provider)
        if seller is None:
            return None
        listed = _found(self._listed, seller.price_list, model) if seller.price_list else None
        known = _found(self._own, provider, model) or listed
        if known is not None:
            return known
        published = self._published.of(seller, model)
        return Price(input=published[0], output=published[1]) if published is not None else None

    def context_of(self, provider: str, model: str) -> int:
        """Return what is published of a model's context, in tokens; 0: nothing."""
        seller = self._sellers.get(provider)
        return self._published.context_of(seller, model) if seller is not None else 0

    def may_be_published(self, provider: str) -> bool:
        """Tell whether more prices of a provider may be known once the published ones are loaded."""
        seller = self._sellers.get(provider)
        return seller is not None and seller.may_be_public and not self._published.is_loaded

    async def load_published(self) -> None:
        """Load the published prices."""
        await self._published.load()


NO_PRICES: Final = Prices({}, {}, {}, PublishedPrices())


def _found(table: Mapping[str, Price], name: str, model: str) -> Price | None:
    return table.get(f"{name}/{model}") or table.get(f"{name}/{_DATE.sub('', model)}")


def load_prices(path: Path | None, sellers: Mapping[str, Seller], published: PublishedPrices) -> Prices:
    """Return the prices of providers, whose sellers are given by the providers' names; `path` is the operator's own table.

    Raises ConfigurationError where the file cannot be used.
    """
    listed = json.loads(files("parley.gateway.routing").joinpath("prices.json").read_text())
    own = _own(path) if path is not None else {}
    return Prices(sellers, own, _TABLE.validate_python(listed), published)


def _own(path: Path) -> dict[str, Price]:
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
