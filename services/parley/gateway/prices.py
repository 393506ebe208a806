"""What tokens cost: a table that comes along, or a file in its place.

`{"provider/model": {"input": 0.25, "output": 2.0}}`, in US dollars a million tokens. What is not in it is unknown, and
a cost that would need it is not reported. Prices that the agents file gives a route come before it.
"""

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from parley.runtime.errors import ConfigurationError

__all__ = ["Price", "Prices", "load_prices"]

_DATE: Final = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_Dollars = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]


class Price(BaseModel):
    """US dollars a million tokens, which are millionths of a dollar a token."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: _Dollars
    output: _Dollars


_TABLE: Final = TypeAdapter(dict[str, Price])


class Prices:
    """Prices by `provider/model`, where `names` says under which name a provider stands in the table."""

    def __init__(self, table: Mapping[str, Price], names: Mapping[str, str]) -> None:
        self._table = table
        self._names = names

    def of(self, provider: str, model: str) -> Price | None:
        """The price of a model, None where it is unknown. A dated version costs what its model costs."""
        name = self._names.get(provider)
        if name is None:
            return None
        exact = self._table.get(f"{name}/{model}")
        return exact or self._table.get(f"{name}/{_DATE.sub('', model)}")


def load_prices(path: Path | None, providers: Mapping[str, str | None]) -> Prices:
    """The table of a file, in which providers stand under their own names, or the one that comes along.

    `providers` says for each name under which name, if any, the table that comes along has it.

    Raises ConfigurationError where the file cannot be used.
    """
    if path is None:
        table = json.loads(files("parley.gateway").joinpath("prices.json").read_text())
        known = {name: known_as for name, known_as in providers.items() if known_as is not None}
        return Prices(_TABLE.validate_python(table), known)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"PARLEY_PRICES_FILE: {path}: cannot be read: {error}") from None
    try:
        return Prices(_TABLE.validate_json(text), {name: name for name in providers})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise ConfigurationError(f"PARLEY_PRICES_FILE: {path}: {place or 'file'}: {first['msg']}") from None
