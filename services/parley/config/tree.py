"""The values of a configuration file, which remember their lines."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Leaf:
    """A single value."""

    value: str | int | float | bool | None
    line: int


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: "tuple[Tree, ...]"
    line: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A mapping; `lines` has the line of every key."""

    entries: "Mapping[str, Tree]"
    lines: Mapping[str, int]
    line: int


Tree = Leaf | Items | Branch
