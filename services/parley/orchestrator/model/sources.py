"""Sources of a debate in words."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from parley.v1.source_pb2 import Source

_NUMBERS: Final = re.compile(r"([ \t]?)\[(S\d{1,3}(?:, ?S\d{1,3}){0,31})\]")


def name_sources(text: str, places: Sequence[str]) -> str:
    """Return a text with the places of sources for their numbers, which mean nothing outside of their debate; unknown ones are left out."""

    def name(found: re.Match[str]) -> str:
        named = list_places(found[2], places)
        return f"{found[1]}({', '.join(named)})" if named else ""

    return _NUMBERS.sub(name, text)


def is_number(source: str) -> bool:
    """Return whether a citation is of sources by their numbers, such as `S1, S2`."""
    return re.fullmatch(r"S\d{1,3}(?:, ?S\d{1,3})*", source) is not None


def list_places(numbers: str, places: Sequence[str]) -> list[str]:
    """Return the places of sources, such as `S1, S2`; those that are not there are left out."""
    found = [int(each) for each in re.findall(r"\d{1,3}", numbers)]
    return [places[each - 1] for each in found if 0 < each <= len(places)]


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
