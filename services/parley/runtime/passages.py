"""Passages of long texts: what is kept of a text that has to be shortened."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from parley.v1.source_pb2 import Passage

MAX_PASSAGES: Final = 256
"""Of a debate's documents, and so of a part of a prompt."""


def keep_passages(text: str, passages: Iterable[Passage], kept: int) -> str:
    """Return `kept` characters of a text in its order, with a mark in place of each run that is left out.

    The first passages are kept as long as there is room, then the text from its beginning.
    """
    if kept >= len(text):
        return text
    left = kept
    chosen: list[tuple[int, int]] = []
    for each in passages:
        size = min(each.end - each.start, len(text) - each.start, left)
        if size > 0:
            chosen.append((each.start, each.start + size))
            left -= size
    chosen = _join_runs(chosen)
    left = kept - sum(end - start for start, end in chosen)
    for start, end in _list_gaps(chosen, len(text)):
        size = min(end - start, left)
        chosen.append((start, start + size))
        left -= size
    return "".join(_render_runs(text, _join_runs(chosen)))


def shorten_to_passages(
    text: str, passages: Sequence[Passage], most: int, measure: Callable[[str], int] = len
) -> tuple[str, int]:
    """Return what `keep_passages` keeps of a text so that it measures `most` at most, marks included, and how many characters are gone.

    If there is no room for marks, they alone are left.
    """
    kept = min(len(text) * most // max(measure(text), 1), len(text))
    while (excess := measure(short := keep_passages(text, passages, kept)) - most) > 0 < kept:
        kept = max(kept - excess, 0)
    return short, len(text) - kept


def move_passages(passages: Iterable[Passage], by: int) -> list[Passage]:
    """Return the passages of a text that begins after so many characters of another one, these first."""
    return [
        Passage(start=0, end=by),
        *(Passage(start=each.start + by, end=each.end + by) for each in passages),
    ]


def _list_gaps(runs: Sequence[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Return what stands between runs that are in order and apart."""
    starts = [0, *(end for _, end in runs)]
    ends = [*(start for start, _ in runs), length]
    return list(zip(starts, ends, strict=True))


def _join_runs(runs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(runs):
        if start == end:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _render_runs(text: str, runs: Sequence[tuple[int, int]]) -> Iterator[str]:
    place = 0
    for start, end in runs:
        if start > place:
            yield _mark(start - place)
        yield text[start:end]
        place = end
    if place < len(text):
        yield _mark(len(text) - place)


def _mark(characters: int) -> str:
    return f"\n[… {characters} characters left out …]\n"
