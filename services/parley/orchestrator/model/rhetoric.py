"""What a text does as a piece of rhetoric: which patterns and fallacies of the table its words show. Pure functions.

A mark shows that a phrase occurs, and not that the argument is good or bad. Every phrase is searched in time linear in the
text, of which so much is read at most.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Final

from parley.orchestrator.model.rhetoric_table import FALLACIES, PATTERNS, SIGNS
from parley.v1.rhetoric_pb2 import RhetoricalMark

MAX_CHARACTERS: Final = 20_000
"""Of a text, so much is read at most."""
_MAX_QUOTE: Final = 160
_WORD: Final = re.compile(r"[^\W\d_]+")
_ENGLISH: Final = frozenset(
    _WORD.findall(
        """the a an of and to in is are that it for not on with as be this by or from at which we i if but would its one has have can
    should than they their was were"""
    )
)
_MIN_ENGLISH_SHARE: Final = 0.18
"""The share of these words from which on a text counts as English: English prose has 0.25 to 0.5 of them, other languages less
than 0.1."""
_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)")
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s)|\n")
_DENIED: Final = re.compile(
    r"\b(?:not|no|never|isn't|nor|avoids?|rejects?|fallac(?:y|ies|ious)|claims?|claimed)\b|[\"“”«»„]",
    re.IGNORECASE,
)
_DENIAL_REACH: Final = 60
_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


def is_english(text: str) -> bool:
    """Return whether a text is English, by its most common words."""
    words = [each.lower() for each in _WORD.findall(text[:MAX_CHARACTERS])]
    return bool(words) and sum(each in _ENGLISH for each in words) >= _MIN_ENGLISH_SHARE * len(words)


def patterns_in(text: str) -> list[RhetoricalMark]:
    """Return the patterns of a text, in the order of the table; those of words only if it is English."""
    plain = _without_quotations(text)
    by_words = _find_marks(plain, _lower_ascii(plain), _PATTERNS) if is_english(plain) else []
    return [*by_words, *_find_marks(plain, plain, _SIGNS)]


def fallacies_in(text: str) -> list[RhetoricalMark]:
    """Return the fallacies of an English text, in the order of the table; none that is denied or quoted."""
    plain = _without_quotations(text)
    return _find_marks(plain, _lower_ascii(plain), _FALLACIES, _is_asserted) if is_english(plain) else []


def count_of(text: str, names: Sequence[str]) -> int:
    """Return how often an English text shows these patterns, which are found by words."""
    lowered = _lower_ascii(text[:MAX_CHARACTERS])
    return sum(1 for name in names for _ in _PATTERNS[name].finditer(lowered))


def _compile(phrases: Sequence[str]) -> re.Pattern[str]:
    """Return the expression of phrases; nothing in it repeats without a bound."""
    words = "|".join(re.escape(_lower_ascii(each)).replace(r"\ ", " ") for each in phrases)
    for written, meant in (
        (r"\(", "(?:"),
        (r"\)", ")"),
        (r"\|", "|"),
        (" … ", r"\s[^.!?\n]{0,60}?"),
        (r"\#", r"\d"),
        (" ", r"\s{1,3}"),
    ):
        words = words.replace(written, meant)
    first = "".join(sorted({each for phrase in phrases for each in _first_characters(_lower_ascii(phrase))}))
    return re.compile(rf"(?<!\w)(?=[{first}])(?:{words})(?!\w)")


def _first_characters(phrase: str) -> set[str]:
    """Return the characters that a phrase may begin with: looked for first, which saves nearly all of the time."""
    if phrase.startswith("#"):
        return set("0123456789")
    if not phrase.startswith("("):
        return {phrase[0]}
    return {each[0] for each in phrase[1 : phrase.index(")")].split("|")}


def _lower_ascii(text: str) -> str:
    """Return a text in lower case, as far as it is ASCII, so that every place stays the same."""
    return text.translate(_LOWER)


_PATTERNS: Final = {name: _compile(phrases) for name, phrases in PATTERNS.items()}
_SIGNS: Final = {name: re.compile(sign) for name, sign in SIGNS.items()}
_FALLACIES: Final = {name: _compile(phrases) for name, phrases in FALLACIES.items()}


def _without_quotations(text: str) -> str:
    """Return a text without what it quotes, and without blocks of code."""
    kept, in_code = [], False
    for line in text[:MAX_CHARACTERS].splitlines():
        if _FENCE.match(line):
            in_code = not in_code
        elif not in_code and not line.lstrip().startswith(">"):
            kept.append(line)
    return "\n".join(kept)


def _find_marks(
    text: str,
    searched: str,
    known: Mapping[str, re.Pattern[str]],
    is_meant: Callable[[str, int], bool] = lambda _text, _place: True,
) -> list[RhetoricalMark]:
    """Return what is found in `searched`, each with its sentence in `text`, in which the places are the same."""
    marks = []
    for name, pattern in known.items():
        places = [found.start() for found in pattern.finditer(searched) if is_meant(text, found.start())]
        if places:
            quote = _sentence(text, places[0])
            marks.append(RhetoricalMark(name=name, count=len(places), quote=quote))
    return marks


def _is_asserted(text: str, place: int) -> bool:
    """Return whether nothing shortly before a place in its sentence denies or quotes what stands there."""
    before = _SENTENCE_END.split(text[max(0, place - _DENIAL_REACH) : place])[-1]
    return _DENIED.search(before) is None


def _sentence(text: str, place: int) -> str:
    """Return the sentence around a place on one line, cut to what is around it."""
    before = _SENTENCE_END.split(text[max(0, place - _MAX_QUOTE // 2) : place])[-1]
    after = text[place : place + _MAX_QUOTE]
    end = _SENTENCE_END.search(after)
    quote = " ".join((before + (after[: end.end()] if end else after)).split())
    return quote if len(quote) <= _MAX_QUOTE else f"{quote[: _MAX_QUOTE - 1]}…"
