"""Sources of a debate in words."""

from collections.abc import Iterable

from parley.v1.source_pb2 import Source


def name_of(source: Source) -> str:
    """Return the title of a source, or else where it was found."""
    return source.title or place_of(source)


def place_of(source: Source) -> str:
    """Return where a source was found: a path, an address, or a tool as SERVER/TOOL."""
    return source.path or source.url or source.tool


def describe_source(sources: Iterable[Source], number: int) -> str:
    """Return a source by number and name, such as `S1 (docs/a.md)`; by its number alone if it is not among `sources`."""
    found = next((each for each in sources if each.number == number), None)
    return f"S{number}" if found is None else f"S{number} ({name_of(found)})"
