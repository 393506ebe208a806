"""Sources of a debate in words, and citations of them in texts: the one reader of `[S1]`."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from parley.orchestrator.model.short_text import to_line
from parley.v1.source_pb2 import Source

_MOST: Final = 100
"""Numbers that are looked at in one text, so that a text full of them does not fill the debate."""
_NUMBERS: Final = r"S\d{1,4}(?:(?:[ ]?[,;&][ ]?|[ ]and[ ])S\d{1,4}){0,99}"
CITATION: Final = rf"\[{_NUMBERS}\](?!\()"
"""A pattern of `[S1]`, or several as in `[S1, S2]`; what a link is made of is its text, as in `[S3](https://…)`, and cites nothing."""
_CITATION: Final = re.compile(CITATION)
_PLACED: Final = re.compile(rf"([ \t]?)({CITATION})")
_NUMBER: Final = re.compile(r"S([1-9]\d{0,2})(?!\d)")
"""What a source can have; others, such as `S0`, stand in place of one."""
_MAX_NAME: Final = 120
_MAX_PLACE: Final = 400
_BRACKETS: Final = str.maketrans("[]", "()")
"""Since a title that holds `[S9]` cites nothing."""


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


def count_citations(text: str) -> dict[int, int]:
    """Return how often a text cites each number, in the order in which it cites them first."""
    groups = _CITATION.findall(text)
    if not groups:
        return {}
    found: Counter[int] = Counter()
    for group in groups:
        for number in map(int, _NUMBER.findall(group)):
            if number in found or len(found) < _MOST:
                found[number] += 1
    return dict(found)


def list_legend(text: str, sources: Iterable[Source]) -> list[str]:
    """Return what each number that a text cites stands for, in ascending order, such as `S1: Load test (docs/load.md)`."""
    places = {each.number: describe_place(each) for each in sources}
    return [
        f"S{number}: {places[number]}" if number in places else describe_missing(number)
        for number in sorted(count_citations(text))
    ]


def describe_missing(number: int) -> str:
    """Return what is said of a number that was cited and that no source has."""
    return f"There is no source S{number}."


def name_sources(text: str, sources: Iterable[Source]) -> str:
    """Return a text with the names of sources for their numbers, which mean nothing outside of their debate; unknown ones are left out."""
    names = {each.number: to_line(name_of(each), _MAX_NAME).translate(_BRACKETS) for each in sources}

    def name(found: re.Match[str]) -> str:
        named = [names[number] for number in count_citations(found[2]) if number in names]
        return f"{found[1]}({'; '.join(named)})" if named else ""

    return _PLACED.sub(name, text)


def describe_place(source: Source) -> str:
    """Return how a source can be looked up outside of the debate: its title, if it has one, and where it was found."""
    place = to_line(place_of(source), _MAX_PLACE)
    named = f"{to_line(source.title, _MAX_NAME)} ({place})" if source.title else place
    return named.translate(_BRACKETS)
