"""Perspectives: the catalogue, those that a debate adds, which oppose each other, and which are chosen for a question.

The choice is a plain function of the question, of what the moderator found in it, and of the catalogue.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import Any, Final

import yaml
from msgspec import Struct

from parley.orchestrator.formats.moderated.wording import count_keywords, stems
from parley.orchestrator.model.errors import DebateFailedError
from parley.v1.moderated_pb2 import Perspective

_FILE: Final = "perspectives.yaml"
_IN_RETURN: Final = re.compile(r"\b(?:for|where|so that|in return|in exchange|if)\b", re.IGNORECASE)
"""What follows it in a sentence on trade-offs is what a perspective gets, and not what it gives up."""


class Viewpoint(Struct, frozen=True):
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
        """The words of a question for which it is of interest: if it names none, all words of its priorities."""
        return self.keywords or tuple(sorted(stems(*self.priorities)))

    def to_proto(self) -> Perspective:
        """Return the perspective as an outcome shows it; the words that one which comes along is chosen by are left out."""
        return Perspective(
            name=self.name,
            priorities=self.priorities,
            trade_offs=self.trade_offs,
            keywords=self.keywords if self.is_custom else (),
            opposes=sorted(self.opposes),
        )


def are_opposed(one: Viewpoint, other: Viewpoint) -> bool:
    """Return whether one of two perspectives gives up what the other one wants, or says that it pulls against it."""
    return bool(
        one.gives_up & other.wants
        or other.gives_up & one.wants
        or other.name.casefold() in one.opposes
        or one.name.casefold() in other.opposes
    )


def opposing_pairs(viewpoints: Sequence[Viewpoint]) -> list[tuple[Viewpoint, Viewpoint]]:
    """Return every two that oppose each other, in order."""
    return [pair for pair in combinations(viewpoints, 2) if are_opposed(*pair)]


def catalogue(custom: Sequence[Perspective]) -> tuple[Viewpoint, ...]:
    """Return all perspectives: those that come along, but for those whose names others take, and then the others."""
    taken = {each.name.strip().casefold() for each in custom}
    kept = (each for each in load_built_in() if each.name.casefold() not in taken)
    return (*kept, *map(_from_proto, custom))


@cache
def load_built_in() -> tuple[Viewpoint, ...]:
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
        for each in _read_file()["perspectives"]
    )


def _from_proto(given: Perspective) -> Viewpoint:
    """Return a perspective that a debate brings: what it wants and gives up follows from its words."""
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
    found = stems(*texts)
    words: Mapping[str, Sequence[str]] = _read_file()["qualities"]
    return frozenset(quality for quality, named in words.items() if count_keywords(found, named))


@cache
def _read_file() -> Mapping[str, Any]:
    return yaml.safe_load(files(__package__).joinpath(_FILE).read_text("utf-8"))  # type: ignore[no-any-return]


MIN_DEBATERS: Final = 2
MAX_DEBATERS: Final = 4
_KEYWORD: Final = 3.0
"""What a keyword in the question weighs; `_CONSTRAINT`: one in an implicit constraint."""
_CONSTRAINT: Final = 2.0
_DOMAIN: Final = 2.0
_PLACE: Final = 2.0
"""What each place in the moderator's order weighs, counted from the last place of a team."""
_CUSTOM: Final = 1.0
"""What a perspective that the debate brings is preferred by, if it matches at all."""


class SelectionCriteria(Struct, frozen=True):
    """What perspectives are chosen for.

    Attributes:
        question: With what the person said to it.
        domain: The kind of decision, in a word or two.
        constraints: What the question implies.
        ranking: Names of perspectives in the order in which the moderator finds them of use; may hold few, or none.
    """

    question: str
    domain: str = ""
    constraints: Sequence[str] = ()
    ranking: Sequence[str] = ()


def weigh_perspectives(known: Sequence[Viewpoint], occasion: SelectionCriteria) -> dict[str, float]:
    """Return what each perspective weighs, by name."""
    question, constraints = stems(occasion.question), stems(*occasion.constraints)
    domain = stems(occasion.domain)
    places = {
        name.casefold(): _PLACE * (MAX_DEBATERS - place)
        for place, name in enumerate(occasion.ranking[:MAX_DEBATERS])
    }
    found = {}
    for each in known:
        weight = _KEYWORD * count_keywords(question, each.interests) + _CONSTRAINT * count_keywords(
            constraints, each.interests
        )
        weight += _DOMAIN * bool(count_keywords(domain, (*each.domains, *each.interests)))
        weight += places.get(each.name.casefold(), 0.0)
        found[each.name] = weight + (_CUSTOM if each.is_custom and weight else 0.0)
    return found


def debater_count(known: Sequence[Viewpoint], wanted: int) -> int:
    """Return how many debate if so many are wanted: one more than two if no perspective of the debate's own opposes another."""
    own = [each for each in known if each.is_custom]
    pairs = opposing_pairs(known)
    if wanted == MIN_DEBATERS and own and not any(each.is_custom for pair in pairs for each in pair):
        return wanted + 1
    return wanted


def select_perspectives(
    known: Sequence[Viewpoint], occasion: SelectionCriteria, count: int
) -> tuple[Viewpoint, ...]:
    """Return so many perspectives, those that weigh most first: two of them oppose each other, and if the debate brings some, one is its own.

    Of all such sets it is the one that weighs most; among equals the one that stands first in the catalogue. Raise
    DebateFailedError if there is no such set.
    """
    weight = weigh_perspectives(known, occasion)
    ranked = sorted(known, key=lambda each: -weight[each.name])
    sets = list(_list_sets(ranked, count))
    if not sets:
        raise DebateFailedError(
            "NO_OPPOSING_PERSPECTIVES",
            "no perspectives can be chosen of which two oppose each other; change custom_perspectives",
        )
    chosen = max(sets, key=lambda each: sum(weight[one.name] for one in each))
    return tuple(each for each in ranked if each in chosen)


def _list_sets(ranked: Sequence[Viewpoint], count: int) -> Iterator[list[Viewpoint]]:
    """Yield, for each pair that opposes, the set that weighs most among those that hold it; heavier ones first."""
    own = [each for each in ranked if each.is_custom]
    for pair in opposing_pairs(ranked):
        chosen = list(pair)
        if own and not any(each.is_custom for each in chosen):
            chosen.append(own[0])
        chosen += [each for each in ranked if each not in chosen]
        if len(chosen) >= count and (not own or any(each.is_custom for each in chosen[:count])):
            yield chosen[:count]
