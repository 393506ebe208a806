"""The choice of perspectives: a plain function of the question, what the moderator found in it, and the catalogue."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from parley.orchestrator.formats.moderated.perspectives import Viewpoint, opposing_pairs
from parley.orchestrator.formats.moderated.settings import MAX_DEBATERS, MIN_DEBATERS
from parley.orchestrator.formats.moderated.wording import holds, stems
from parley.orchestrator.model.errors import DebateFailedError

__all__ = ["Occasion", "debaters", "select", "weights"]

_KEYWORD: Final = 3.0
"""What a keyword in the question weighs; `_CONSTRAINT`: one in an implicit constraint."""
_CONSTRAINT: Final = 2.0
_DOMAIN: Final = 2.0
_PLACE: Final = 2.0
"""What each place in the moderator's order weighs, counted from the last place of a team."""
_CUSTOM: Final = 1.0
"""What a perspective that the debate brings is preferred by, where it matches at all."""


@dataclass(frozen=True, slots=True)
class Occasion:
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


def weights(known: Sequence[Viewpoint], occasion: Occasion) -> dict[str, float]:
    """Return what each perspective weighs, by name."""
    question, constraints = stems(occasion.question), stems(*occasion.constraints)
    domain = stems(occasion.domain)
    places = {
        name.casefold(): _PLACE * (MAX_DEBATERS - place)
        for place, name in enumerate(occasion.ranking[:MAX_DEBATERS])
    }
    found = {}
    for each in known:
        weight = _KEYWORD * holds(question, each.interests) + _CONSTRAINT * holds(constraints, each.interests)
        weight += _DOMAIN * bool(holds(domain, (*each.domains, *each.interests)))
        weight += places.get(each.name.casefold(), 0.0)
        found[each.name] = weight + (_CUSTOM if each.is_custom and weight else 0.0)
    return found


def debaters(known: Sequence[Viewpoint], wanted: int) -> int:
    """Return how many debate where so many are wanted: one more than two where no perspective of the debate's own opposes another."""
    own = [each for each in known if each.is_custom]
    pairs = opposing_pairs(known)
    if wanted == MIN_DEBATERS and own and not any(each.is_custom for pair in pairs for each in pair):
        return wanted + 1
    return wanted


def select(known: Sequence[Viewpoint], occasion: Occasion, count: int) -> tuple[Viewpoint, ...]:
    """Return so many perspectives, those that weigh most first: two of them oppose each other, and where the debate brings some, one is its own.

    Of all such sets it is the one that weighs most; among equals the one that stands first in the catalogue.

    Raises:
        DebateFailedError: there is no such set.
    """
    weight = weights(known, occasion)
    ranked = sorted(known, key=lambda each: -weight[each.name])
    sets = list(_sets(ranked, count))
    if not sets:
        raise DebateFailedError(
            "NO_OPPOSING_PERSPECTIVES",
            "no perspectives can be chosen of which two oppose each other; change custom_perspectives",
        )
    chosen = max(sets, key=lambda each: sum(weight[one.name] for one in each))
    return tuple(each for each in ranked if each in chosen)


def _sets(ranked: Sequence[Viewpoint], count: int) -> Iterator[list[Viewpoint]]:
    """Yield, for each pair that opposes, the set that weighs most among those that hold it; heavier ones first."""
    own = [each for each in ranked if each.is_custom]
    for pair in opposing_pairs(ranked):
        chosen = list(pair)
        if own and not any(each.is_custom for each in chosen):
            chosen.append(own[0])
        chosen += [each for each in ranked if each not in chosen]
        if len(chosen) >= count and (not own or any(each.is_custom for each in chosen[:count])):
            yield chosen[:count]
