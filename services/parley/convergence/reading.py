"""Reads a stand for what it chooses, denies and counts, by rules that a person can follow.

A model of meaning puts `do X` and `do not X` side by side. These rules see what it does not: denials, opposite
words, numbers, and which of several named options is chosen.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from parley.convergence.words import (
    AFTERTHOUGHT,
    CLAUSE,
    DENIERS,
    HEAD_DENIERS,
    LIGHT,
    NUMBER_WORDS,
    OPPOSITES,
    PHRASES,
    SECONDS,
    TOKEN,
    side_words,
    stem,
)

__all__ = ["accord", "contradiction"]

_SIDES: Final = tuple((side_words(left), side_words(right)) for left, right in OPPOSITES)
_SECONDS: Final = {stem(unit): seconds for unit, seconds in SECONDS.items()}
_YES_NO: Final = frozenset(
    [
        "should",
        "is",
        "are",
        "do",
        "does",
        "did",
        "can",
        "could",
        "would",
        "will",
        "shall",
        "must",
        "may",
        "has",
        "have",
        "was",
        "were",
        "am",
    ]
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a stand says.

    Attributes:
        affirmed: Stems of what it is for.
        denied: Stems of what it is against.
        names: Words that look like names, as they are written, affirmed ones first to last.
        amounts: Numbers with what they count.
        answer: 1 where it begins with yes, -1 where with no, else 0.
    """

    affirmed: frozenset[str]
    denied: frozenset[str]
    names: tuple[str, ...]
    amounts: frozenset[tuple[str, float]]
    answer: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks.

    Attributes:
        yes_or_no: Whether yes or no answers it.
        stems: Stems of its words.
        options: Stems of the options it names (`Kafka or RabbitMQ`).
        alternatives: Pairs of opposites it offers (`build or buy`).
    """

    yes_or_no: bool
    stems: frozenset[str]
    options: frozenset[str]
    alternatives: tuple[tuple[frozenset[str], frozenset[str]], ...]


def contradiction(question: str, one: str, other: str) -> str | None:
    """Says in one line why the two stands cannot both hold, or None where no rule finds them apart."""
    asked, a, b = _asked(question), _read(one), _read(other)
    apart = (
        _different_answers(asked, a, b)
        or _different_options(asked, a, b)
        or _different_amounts(a, b)
        or _opposite_words(a, b)
    )
    if apart or _chosen(asked, a) & _chosen(asked, b):
        return apart
    # What only looks like a denial is settled by an explicit answer that both give; which name is chosen is not.
    return _different_names(a, b) or (None if _accord(asked, a, b) else _denied_by_one(asked, a, b))


def accord(question: str, one: str, other: str) -> bool:
    """Whether both stands give the same explicit answer: one option of those asked about, one yes, one no, one amount.

    Only meaningful where `contradiction` finds nothing.
    """
    return _accord(_asked(question), _read(one), _read(other))


def _accord(asked: Asked, a: Reading, b: Reading) -> bool:
    if _chosen(asked, a) & _chosen(asked, b):
        return True
    if any(_side(a, *sides) * _side(b, *sides) > 0 for sides in asked.alternatives):
        return True
    if asked.yes_or_no:
        answer = _answer(asked, a)
        return answer != 0 and answer == _answer(asked, b)
    return bool(a.amounts & b.amounts)


def _different_answers(asked: Asked, a: Reading, b: Reading) -> str | None:
    if not asked.yes_or_no:
        return None
    if _answer(asked, a) * _answer(asked, b) < 0:
        return "opposite answers: yes, no"
    return None


def _different_options(asked: Asked, a: Reading, b: Reading) -> str | None:
    ours, theirs = _chosen(asked, a), _chosen(asked, b)
    if ours and theirs and not ours & theirs:
        return f"different options: {_listed(ours)}; {_listed(theirs)}"
    return None


def _different_amounts(a: Reading, b: Reading) -> str | None:
    for unit in sorted({unit for unit, _ in a.amounts} & {unit for unit, _ in b.amounts}):
        ours = {value for each, value in a.amounts if each == unit}
        theirs = {value for each, value in b.amounts if each == unit}
        if not ours & theirs:
            return (
                f"different numbers of {unit}: {_listed(map(_number, ours))}; {_listed(map(_number, theirs))}"
            )
    return None


def _denied_by_one(asked: Asked, a: Reading, b: Reading) -> str | None:
    apart = (a.affirmed & b.denied) | (a.denied & b.affirmed)
    together = (a.affirmed & b.affirmed) | (a.denied & b.denied)
    # A word that both use alike is common ground only if it is more than the subject of the question.
    if apart and len(apart) >= len(together - (asked.stems - apart)):
        return f"one denies what the other affirms: {_listed(apart)}"
    return None


def _opposite_words(a: Reading, b: Reading) -> str | None:
    for left, right in _SIDES:
        ours, theirs = _side(a, left, right), _side(b, left, right)
        if ours * theirs < 0:
            words = ((a.affirmed | a.denied) & (left | right), (b.affirmed | b.denied) & (left | right))
            return f"opposite words: {_listed(words[0])}; {_listed(words[1])}"
    return None


def _different_names(a: Reading, b: Reading) -> str | None:
    """The first thing each one names is what it chooses, unless the other names it too."""
    if not a.names or not b.names:
        return None
    ours, theirs = stem(a.names[0]), stem(b.names[0])
    if ours != theirs and ours not in b.affirmed and theirs not in a.affirmed:
        return f"different names: {a.names[0]}; {b.names[0]}"
    return None


def _chosen(asked: Asked, reading: Reading) -> frozenset[str]:
    chosen = (asked.options & reading.affirmed) - reading.denied
    if chosen:
        return chosen
    left = asked.options - reading.denied
    return left if len(left) == 1 and left != asked.options else frozenset()


def _answer(asked: Asked, reading: Reading) -> int:
    """1 for yes, -1 for no, 0 where the stand does not say."""
    if reading.answer:
        return reading.answer
    evidence = {
        (bool(asked.stems & left) - bool(asked.stems & right)) * _side(reading, left, right)
        for left, right in _SIDES
    }
    # Repeating a word of the question says little; saying its opposite says no.
    if -1 in evidence:
        return -1
    if 1 in evidence:
        return 1
    score = len(asked.stems & reading.affirmed) - len(asked.stems & reading.denied)
    return (score > 0) - (score < 0)


def _side(reading: Reading, left: frozenset[str], right: frozenset[str]) -> int:
    """1 where the stand takes the left side, -1 the right, 0 neither or both."""
    for_left = bool(reading.affirmed & left) or bool(reading.denied & right)
    for_right = bool(reading.affirmed & right) or bool(reading.denied & left)
    return for_left - for_right


@lru_cache(maxsize=4096)
def _read(text: str) -> Reading:
    plain = text
    for pattern, word in PHRASES:
        plain = pattern.sub(word, plain)
    plain = AFTERTHOUGHT.sub("", plain)
    affirmed: set[str] = set()
    denied: set[str] = set()
    names: list[str] = []
    amounts: set[tuple[str, float]] = set()
    answer = 0
    for clause in CLAUSE.split(plain):
        tokens = TOKEN.findall(clause)
        if not tokens:
            continue
        first = tokens[0].lower()
        if not (affirmed or denied or answer) and first in {"yes", "no", "yeah", "nope"} and len(tokens) == 1:
            answer = 1 if first.startswith("y") else -1
            continue
        against = _denies(tokens)
        amounts |= _amounts(tokens)
        words = {stem(token) for token in tokens if _carries_meaning(token)}
        (denied if against else affirmed).update(words)
        if not against:
            names += [token for place, token in enumerate(tokens) if _is_name(token, place)]
    both = affirmed & denied
    return Reading(
        affirmed=frozenset(affirmed - both),
        denied=frozenset(denied - both),
        names=tuple(names),
        amounts=frozenset(amounts),
        answer=answer,
    )


@lru_cache(maxsize=1024)
def _asked(question: str) -> Asked:
    sentences = [part for part in question.replace("\n", " ").split("?")[0].split(". ") if part.strip()]
    asked = sentences[-1] if sentences else question
    for pattern, word in PHRASES:
        asked = pattern.sub(word, asked)
    tokens = TOKEN.findall(asked)
    stems = frozenset(stem(token) for token in tokens if _carries_meaning(token))
    alternatives = tuple(sides for sides in _SIDES if stems & sides[0] and stems & sides[1])
    lowered = [token.lower() for token in tokens]
    options: set[str] = set()
    if "or" in lowered and not alternatives:
        place = lowered.index("or")
        before = [token for token in tokens[:place] if _may_be_option(token)]
        after = [token for token in tokens[place + 1 :] if _may_be_option(token)]
        options = {stem(each) for each in (before[-1:] + after[:1])} | _listed_before_or(asked)
    return Asked(
        yes_or_no=bool(lowered) and lowered[0] in _YES_NO and not options and not alternatives,
        stems=stems,
        options=frozenset(options),
        alternatives=alternatives,
    )


def _listed_before_or(asked: str) -> set[str]:
    """`A, B or C`: what stands right before the commas is an option too, where the items between are one word each."""
    items = [TOKEN.findall(item) for item in re.split(r"\bor\b", asked, maxsplit=1)[0].split(",")]
    listed = [item for item in items[1:] if item]
    if not listed or any(len(item) != 1 for item in listed):
        return set()
    return {stem(item[-1]) for item in items if item and _may_be_option(item[-1])}


def _may_be_option(token: str) -> bool:
    return token.lower() not in LIGHT or (token[0].isupper() and token.lower() not in _YES_NO)


def _denies(tokens: list[str]) -> bool:
    count = 0
    for place, token in enumerate(tokens):
        word = token.lower()
        base = stem(word)
        if word in HEAD_DENIERS:
            count += place == 0
        elif word in DENIERS or base in _DENIER_STEMS:
            count += 1
    return count % 2 == 1


_DENIER_STEMS: Final = frozenset(
    stem(word) for word in ("avoid", "reject", "oppose", "refuse", "abandon", "resist", "discourage")
)


def _carries_meaning(token: str) -> bool:
    word = token.lower()
    if token in {"Go", "GO"}:
        return True
    return word not in LIGHT and word not in DENIERS and not token[0].isdigit() and token[0] not in "$€£%"


def _is_name(token: str, place: int) -> bool:
    if token.lower() in LIGHT and token != "Go":  # noqa: S105
        return False
    inner = any(letter.isupper() for letter in token[1:])
    return inner or (place > 0 and token[0].isupper())


def _amounts(tokens: list[str]) -> set[tuple[str, float]]:
    found: set[tuple[str, float]] = set()
    for place, token in enumerate(tokens):
        value, unit = _value(token)
        if value is None:
            continue
        if not unit:
            following = next(
                (each for each in tokens[place + 1 : place + 3] if _carries_meaning(each) or each == "%"), ""
            )
            unit = "%" if following in {"%", "percent"} else stem(following) if following else ""
        if not unit:
            continue
        scale = _SECONDS.get(stem(unit))
        found.add(("seconds", value * scale) if scale is not None else (unit, value))
    return found


def _value(token: str) -> tuple[float | None, str]:
    word = token.lower()
    if word in NUMBER_WORDS:
        return NUMBER_WORDS[word], ""
    sign = word[0] if word[0] in "$€£" else ""
    digits = word.lstrip("$€£")
    end = next((place for place, letter in enumerate(digits) if letter not in "0123456789.,"), len(digits))
    try:
        value = float(digits[:end].replace(",", ""))
    except ValueError:
        return None, ""
    tail = digits[end:]
    if tail in {"k", "m"}:
        return value * (1_000 if tail == "k" else 1_000_000), sign
    return value, sign or tail


def _number(value: float) -> str:
    return f"{value:g}"


def _listed(words: "frozenset[str] | set[str] | map[str]") -> str:
    return ", ".join(sorted(words))
