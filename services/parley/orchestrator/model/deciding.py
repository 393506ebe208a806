"""What a decision is made from: the sides that first drafts take, and the judge's choice. Pure functions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from parley.orchestrator.model.voting import Group

__all__ = ["lone_best", "put_by_position", "sides"]

Name = TypeVar("Name")


def sides(groups: Iterable[Collection[str]], voters: Collection[str]) -> tuple[Group, ...]:
    """Return the voters by the position of their first drafts, in the order of the groups; who has no draft is in none."""
    found = (tuple(sorted(set(group).intersection(voters))) for group in groups)
    return tuple(group for group in found if group)


def lone_best(scores: Mapping[str, float], groups: Iterable[Group]) -> str | None:
    """Return the option with the highest score; None where there is none, or several that were not counted as one.

    Of those that were, it is the first by name.
    """
    best = sorted(option for option, score in scores.items() if score == max(scores.values()))
    alike = next((group for group in groups if best and best[0] in group), tuple(best[:1]))
    return best[0] if best and set(best) <= set(alike) else None


def put_by_position(
    groups: Iterable[Collection[Name]], positions: Sequence[Name], agents: Collection[Name]
) -> list[list[Name]]:
    """Return which of the agents take each position, ordered, as they were grouped with it.

    Who is grouped with several positions takes none of them, as far as can be told.
    """
    found: list[list[Name]] = [[] for _ in positions]
    for group in groups:
        held = [place for place, position in enumerate(positions) if position in group]
        if len(held) == 1:
            found[held[0]] += [each for each in group if each in agents]
    return [sorted(each, key=str) for each in found]
