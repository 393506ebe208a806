"""Statements of the kind that agents give as positions, sorted by what they stand for; split by topic."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

import yaml

_FOLDER: Final = Path(__file__).parents[1] / "data" / "agreement"


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two statements on one question, and whether they are the same answer."""

    topic: str
    language: str
    one: str
    other: str
    same: bool


@dataclass(frozen=True, slots=True)
class Topic:
    """A question and, for each stand one may take on it, several ways to say it."""

    name: str
    language: str
    question: str
    stands: tuple[tuple[str, ...], ...]

    def same(self) -> list[tuple[str, str]]:
        """Pairs that say one thing in other words."""
        return [pair for ways in self.stands for pair in combinations(ways, 2)]

    def different(self) -> list[tuple[str, str]]:
        """Pairs that stand for different things."""
        return [(a, b) for one, other in combinations(self.stands, 2) for a in one for b in other]


def training_topics() -> tuple[Topic, ...]:
    """Topics that the head is trained on."""
    return tuple(topic for file in sorted((_FOLDER / "train").glob("*.yaml")) for topic in _read(file))


def held_out_topics() -> tuple[Topic, ...]:
    """Topics that no training reads."""
    return _read(_FOLDER / "held-out.yaml")


def pairs_of(topics: Sequence[Topic]) -> list[LabelledPair]:
    """All pairs of all topics."""
    return [
        LabelledPair(topic.name, topic.language, *pair, same)
        for topic in topics
        for same, pairs in ((True, topic.same()), (False, topic.different()))
        for pair in pairs
    ]


def word_overlap(one: str, other: str) -> float:
    """The share of both statements' words that are in both."""
    ours, theirs = (set(re.findall(r"\w+", each.casefold())) for each in (one, other))
    return len(ours & theirs) / len(ours | theirs)


def _read(file: Path) -> tuple[Topic, ...]:
    return tuple(
        Topic(
            name=each["topic"],
            language=each.get("language", "en"),
            question=each["question"],
            stands=tuple(tuple(ways) for ways in each["stands"]),
        )
        for each in yaml.load(file.read_text("utf-8"), yaml.CSafeLoader)
    )
