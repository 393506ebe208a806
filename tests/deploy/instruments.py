"""The instruments that the services make, read from their source, by the names that a Prometheus has them under."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from tests.deploy.chart import ROOT

_KINDS: Final = {
    "create_counter": "counter",
    "create_up_down_counter": "gauge",
    "create_gauge": "gauge",
    "create_histogram": "histogram",
}
_UNITS: Final = {"s": "_seconds"}
"""Units that become a part of the name; what stands in braces does not."""


@dataclass(frozen=True, slots=True)
class Instrument:
    name: str
    unit: str
    kind: str

    @property
    def base(self) -> str:
        """How its series are called, less their ends: names as the OpenTelemetry collector makes them."""
        return self.name.replace(".", "_") + _UNITS.get(self.unit, "")

    @property
    def series(self) -> frozenset[str]:
        """What a Prometheus has of it."""
        ends = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
        return frozenset(f"{self.base}{end}" for end in ends[self.kind])


@cache
def instruments() -> tuple[Instrument, ...]:
    """Return all of them."""
    return tuple(_read_instruments())


def _read_instruments() -> Iterator[Instrument]:
    for file in (ROOT / "services" / "parley").rglob("*.py"):
        if "create_" not in (text := file.read_text()):
            continue
        for call in ast.walk(ast.parse(text)):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr in _KINDS
            ):
                name, unit = (ast.literal_eval(each) for each in call.args[:2])
                yield Instrument(name, unit, _KINDS[call.func.attr])
