"""The catalogue of perspectives: those that come along, those that a debate brings, and which of them oppose each other."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import Any, Final

import yaml

from parley.orchestrator.formats.moderated.wording import holds, stems
from parley.v1.moderated_pb2 import Perspective

__all__ = ["Viewpoint", "built_in", "catalogue", "opposed", "opposing_pairs"]

_FILE: Final = "perspectives.yaml"
_IN_RETURN: Final = re.compile(r"\b(?:for|where|so that|in return|in exchange|if)\b", re.IGNORECASE)
"""What follows it in a sentence on trade-offs is what a perspective gets, and not what it gives up."""


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """A perspective of the catalogue.

    Attributes:
        domains: Kinds of questions that it has something to say on in any case.
        wants: The qualities that it puts first.
        gives_up: Those that it is ready to give up.
        opposes: Names of perspectives that it pulls against, whatever the qualities say; in lower case.
        is_custom: Whether the debate brought it.
    """

    name: str
    priorities: tuple[str, ...]
    trade_offs: str
    keywords: tuple[str, ...]
    domains: tuple[str, ...] = ()
    wants: frozenset[str] = frozenset()
    gives_up: frozenset[str] = frozenset()
    opposes: frozenset[str] = frozenset()
    is_custom: bool = False

    @property
    def interests(self) -> tuple[str, ...]:
        """The words of a question for which it is of interest: where it names none, all words of its priorities."""
        return self.keywords or tuple(sorted(stems(*self.priorities)))

    def to_proto(self) -> Perspective:
        """Return the perspective as an outcome tells it; the words that one which comes along is chosen by are left out."""
        return Perspective(
            name=self.name,
            priorities=self.priorities,
            trade_offs=self.trade_offs,
            keywords=self.keywords if self.is_custom else (),
            opposes=sorted(self.opposes),
        )


def opposed(one: Viewpoint, other: Viewpoint) -> bool:
    """Return whether one of two perspectives gives up what the other one wants, or says that it pulls against it."""
    return bool(
        one.gives_up & other.wants
        or other.gives_up & one.wants
        or other.name.casefold() in one.opposes
        or one.name.casefold() in other.opposes
    )


def opposing_pairs(viewpoints: Sequence[Viewpoint]) -> list[tuple[Viewpoint, Viewpoint]]:
    """Return every two that oppose each other, in order."""
    return [pair for pair in combinations(viewpoints, 2) if opposed(*pair)]


def catalogue(custom: Sequence[Perspective]) -> tuple[Viewpoint, ...]:
    """Return all perspectives: those that come along, but for those whose names others take, and then the others."""
    taken = {each.name.strip().casefold() for each in custom}
    kept = (each for each in built_in() if each.name.casefold() not in taken)
    return (*kept, *map(_custom, custom))


@cache
def built_in() -> tuple[Viewpoint, ...]:
    """Return the perspectives that come along."""
    return tuple(
        Viewpoint(
            name=each["name"],
            priorities=tuple(each["priorities"]),
            trade_offs=each["trade_offs"],
            keywords=tuple(each["keywords"]),
            domains=tuple(each["domains"]),
            wants=frozenset(each["wants"]),
            gives_up=frozenset(each["gives_up"]),
        )
        for each in _file()["perspectives"]
    )


def _custom(given: Perspective) -> Viewpoint:
    """Return a perspective that a debate brings: what it wants and gives up is told from its words."""
    name = given.name.strip()
    wants = _qualities(name, *given.priorities)
    return Viewpoint(
        name=name,
        priorities=tuple(given.priorities),
        trade_offs=given.trade_offs.strip(),
        keywords=tuple(given.keywords),
        wants=wants,
        gives_up=_qualities(_IN_RETURN.split(given.trade_offs)[0]) - wants,
        opposes=frozenset(each.strip().casefold() for each in given.opposes),
        is_custom=True,
    )


def _qualities(*texts: str) -> frozenset[str]:
    held = stems(*texts)
    words: Mapping[str, Sequence[str]] = _file()["qualities"]
    return frozenset(quality for quality, named in words.items() if holds(held, named))


@cache
def _file() -> Mapping[str, Any]:
    return yaml.safe_load(files(__package__).joinpath(_FILE).read_text("utf-8"))  # type: ignore[no-any-return]
