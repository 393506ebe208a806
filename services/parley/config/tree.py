"""The values of a configuration file, which remember their lines."""

from collections.abc import Mapping

from msgspec import Struct


class Leaf(Struct, frozen=True):
    """A single value."""

    value: str | int | float | bool | None
    line: int


class Items(Struct, frozen=True):
    """A list."""

    items: "tuple[Tree, ...]"
    line: int


class Branch(Struct, frozen=True):
    """A mapping; `lines` has the line of every key."""

    entries: "Mapping[str, Tree]"
    lines: Mapping[str, int]
    line: int


Tree = Leaf | Items | Branch
