"""Values of an example with a change."""

import copy
from typing import Any

from tests.deploy.chart import (
    values_of,
)


def change_value(path: str, value: Any, name: str = "production") -> dict[str, Any]:
    values = copy.deepcopy(values_of(name))
    part = values
    *parents, last = path.split(".")
    for each in parents:
        part = part.setdefault(each, {})
    part[last] = value
    return values
