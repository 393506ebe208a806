"""The material of a decision: the sides of the first drafts, and the judge's choice. Pure functions."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from parley.orchestrator.model.voting import Group


def sides(groups: Iterable[Collection[str]], voters: Collection[str]) -> tuple[Group, ...]:
    """Return the voters by the position of their first drafts, in the order of the groups; who has no draft is in none."""
    found = (tuple(sorted(set(group).intersection(voters))) for group in groups)
    return tuple(group for group in found if group)


def single_best(scores: Mapping[str, float], groups: Iterable[Group]) -> str | None:
    """Return the option with the highest score; None if there is none, or several that do not form one group.

    In one group, it is the first by name.
    """
    best = sorted(option for option, score in scores.items() if score == max(scores.values()))
    alike = next((group for group in groups if best and best[0] in group), tuple(best[:1]))
    return best[0] if best and set(best) <= set(alike) else None


def positions_taken(
    unlike: Iterable[tuple[str, str]], positions: Sequence[str], agents: Collection[str]
) -> list[list[str]]:
    """Return which agents take each position, ordered; `unlike` are pairs that are not the same answer beyond doubt.

    An agent that is like several positions is counted for none of them.
    """
    apart = {frozenset(each) for each in unlike}
    found: list[list[str]] = [[] for _ in positions]
    for agent in sorted(agents):
        near = [place for place, each in enumerate(positions) if {agent, each} not in apart]
        if len(near) == 1:
            found[near[0]].append(agent)
    return found
