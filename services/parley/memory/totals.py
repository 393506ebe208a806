"""What debates raise of one kind of issue: the tally of each, and the sums by which a critique pattern is listed."""

from collections.abc import Iterable, Mapping
from sys import intern
from typing import Final

from msgspec import Struct

from parley.v1.memory_pb2 import CritiquePattern

MAX_EXAMPLES: Final = 3
_MAX_CRITICS: Final = 8


class Tally(Struct, frozen=True):
    """What a debate raised of one kind.

    Attributes:
        at: When the debate was concluded, in seconds since 1970.
        severities: Of the issues that have one.
        critics: How often each agent raised it.
    """

    at: int
    raised: int
    taken_up: int
    severities: list[int]
    critics: dict[str, int]


class Example(Struct, frozen=True):
    """An issue in the words of a debate that was concluded at a time."""

    debate: str
    text: str
    at: int


class Totals(Struct, frozen=True):
    """What several debates raised of one kind.

    Attributes:
        debates: Their ids.
        severity: The sum of all severities, of which there are `rated`.
        latest: When the latest of the debates was concluded, in seconds since 1970.
        critics: How often each agent raised it.
        examples: The latest first.
    """

    debates: frozenset[str]
    raised: int
    taken_up: int
    severity: int
    rated: int
    latest: int
    critics: Mapping[str, int]
    examples: tuple[Example, ...]

    @property
    def is_successful(self) -> bool:
        """Whether at least every second one was taken up."""
        return 2 * self.taken_up >= self.raised

    def join(self, other: "Totals") -> "Totals":
        """Return the sums of both; a debate that both have is one debate."""
        return Totals(
            self.debates | other.debates,
            self.raised + other.raised,
            self.taken_up + other.taken_up,
            self.severity + other.severity,
            self.rated + other.rated,
            max(self.latest, other.latest),
            _add(self.critics, [other.critics]),
            choose_examples(self.examples + other.examples),
        )

    def to_message(self, pattern: str, domain: str, percent: float | None) -> CritiquePattern:
        """Return the pattern of these as it is listed; `percent` is how like it is to a text, None without one."""
        found = CritiquePattern(
            pattern_id=pattern,
            domain=domain,
            examples=[each.text for each in self.examples],
            debates=len(self.debates),
            raised=self.raised,
            taken_up=self.taken_up,
            severity=self.severity / self.rated if self.rated else None,
            similarity_percent=percent,
        )
        found.latest_at.FromSeconds(self.latest)
        for agent, raised in sorted(self.critics.items(), key=lambda each: (-each[1], each[0]))[
            :_MAX_CRITICS
        ]:
            found.critics.add(agent_id=agent, raised=raised)
        return found


def sum_up(tallies: Mapping[str, Tally], examples: Iterable[Example]) -> Totals:
    """Return the sums of debates' tallies, by their ids, of which there is at least one."""
    severities = [severity for each in tallies.values() for severity in each.severities]
    return Totals(
        frozenset(map(intern, tallies)),  # most debates count for several kinds
        sum(each.raised for each in tallies.values()),
        sum(each.taken_up for each in tallies.values()),
        sum(severities),
        len(severities),
        max(each.at for each in tallies.values()),
        _add({}, (each.critics for each in tallies.values())),
        choose_examples(examples),
    )


def choose_examples(found: Iterable[Example]) -> tuple[Example, ...]:
    """Return those of the latest debates, the latest first."""
    return tuple(sorted(found, key=lambda each: (-each.at, each.debate))[:MAX_EXAMPLES])


def _add(critics: Mapping[str, int], others: Iterable[Mapping[str, int]]) -> dict[str, int]:
    added = dict(critics)
    for each in others:
        for agent, raised in each.items():
            added[agent] = added.get(agent, 0) + raised
    return added
