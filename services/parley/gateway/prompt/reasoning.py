"""What a model thinks aloud before its answer, between `<think>` and `</think>` say, is no part of the answer.

Some endpoints send it in the text, and some without its first tag, which stood in the prompt.
"""

import re
from typing import Final

_NAMES: Final = ("think", "thinking", "thought", "reasoning", "seed:think")
_OPENING: Final = (*(f"<{name}>" for name in _NAMES), "[think]", "◁think▷")
_CLOSING: Final = (*(f"</{name}>" for name in _NAMES), "[/think]", "◁/think▷")
_TAGS: Final = (*_OPENING, *_CLOSING)
_MAX_TAG: Final = max(map(len, _CLOSING))
_BEGINNINGS: Final = frozenset(tag[:length] for tag in _OPENING for length in range(len(tag)))
"""What may yet become an opening tag."""
_ANY_OPENING: Final = re.compile("|".join(map(re.escape, _OPENING)), re.IGNORECASE)
_ANY_CLOSING: Final = "|".join(map(re.escape, _CLOSING))
_OPENED: Final = re.compile(rf"\s*(?:{_ANY_OPENING.pattern})", re.IGNORECASE)
_CLOSED: Final = re.compile(_ANY_CLOSING, re.IGNORECASE)
_UNOPENED: Final = re.compile(
    rf"(?:\A[ \t]*|(?<=[.!?…][ \t]))(?:{_ANY_CLOSING})"
    rf"|(?<![\"'`(<])(?:{_ANY_CLOSING})(?=[^\s.,;:)\"'`])"
    rf"|(?<=[^\s\"'`(<])(?:{_ANY_CLOSING})(?=[ \t]*\r?\n?\Z)",
    re.IGNORECASE,
)
"""The end of reasoning that has no beginning: where a line or a sentence begins, or with no blank between it and what comes
after it, or what it ends a line with. Prose that speaks of a tag has blanks or quotes around it.
"""


class ReasoningFilter:
    """Leaves out the reasoning that one answer begins with, as the answer comes in pieces."""

    def __init__(self) -> None:
        self._began = False
        self._inside = False
        self._reasoning: list[str] = []
        self._skip_reasoning = False
        self._space: list[str] = []
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what of the text is known to be the answer now."""
        while piece and not self._began:
            piece = self._skip_to_closing(piece) if self._inside else self._read_before_answer(piece)
        return piece

    @property
    def unclosed(self) -> str:
        """The reasoning, while its end tag has not come; else empty."""
        return "".join([*self._reasoning, self._held]) if self._inside else ""

    def end(self) -> str:
        """Return what was held back until the text's end."""
        if self._inside:
            return ""
        held = "".join(self._space) + self._held
        self._space, self._held = [], ""
        return held

    def _read_before_answer(self, piece: str) -> str:
        """Return what is left to look at, once it is known how the text begins; nothing while it is not."""
        if not self._held:
            text = piece.lstrip()
            if not self._skip_reasoning:
                self._space.append(piece[: len(piece) - len(text)])
            piece = text
        self._held += piece
        begun = self._held[:_MAX_TAG].lower()
        if begun in _BEGINNINGS:
            return ""
        rest, self._held = self._held, ""
        if begun.startswith(_OPENING):
            opening = next(tag for tag in _OPENING if begun.startswith(tag))
            self._inside, self._space = True, []
            return rest[len(opening) :]
        self._began = True
        space, self._space = "".join(self._space), []
        return space + rest

    def _skip_to_closing(self, piece: str) -> str:
        text = self._held + piece
        closed = _CLOSED.search(text)
        if closed is None:
            self._held = text[1 - _MAX_TAG :]
            self._reasoning.append(text[: 1 - _MAX_TAG])
            return ""
        self._inside, self._skip_reasoning, self._held = False, True, ""
        self._reasoning.clear()
        return text[closed.end() :]


def drop_stray_end(text: str) -> str:
    """Return the text without an end tag that is its last word and closes nothing: it ends no reasoning if no answer follows."""
    end = whole = len(text.rstrip())
    while (last := text[max(end - _MAX_TAG, 0) : end].lower()).endswith(_CLOSING):
        end -= len(next(tag for tag in _CLOSING if last.endswith(tag)))
        while end and text[end - 1].isspace():
            end -= 1
    left = text[:end]
    return text if end in {0, whole} or _ANY_OPENING.search(left) else left


def strip_reasoning(text: str) -> str:
    """Return a whole answer without the reasoning in it.

    Reasoning begins with a tag at the start of a line, or has begun before the text if only its end is there: on a
    line of its own, or close between two texts. Inside of a code block and elsewhere in a line, tags are what the answer is
    about.
    """
    lowered = text.lower()
    # each line would be searched for what is nowhere
    if not any(map(lowered.__contains__, _TAGS)):
        return text
    left = _strip_tags(text)[0]
    while left != text:  # a tag may stand on a line of its own only now
        text, left = left, _strip_tags(left)[0]
    return left


def starts_inside_reasoning(text: str) -> bool:
    """Return whether an answer begins with reasoning that only its end marks as such."""
    return _strip_tags(text)[1]


def _strip_tags(text: str) -> tuple[str, bool]:
    """Return what is left of a text, and whether it began with reasoning that had no first tag."""
    kept: list[str] = []
    inside = in_code = opened = began_inside = False
    for line in text.splitlines(keepends=True):
        tag = line.strip().lower()
        if not inside and tag.startswith("```"):
            in_code = not in_code
        if in_code:
            kept.append(line)
        elif not inside and (begins := _skip_unopened(line, tag, opened=opened)):
            kept = [line[begins:]]
            began_inside = True
        else:
            begins, inside = _skip_reasoning(line, inside=inside)
            kept.append(line[begins:].lstrip() if begins else line)
        opened = opened or _ANY_OPENING.search(line) is not None
    left = "".join(kept)
    return (left if left == text else left.strip()), began_inside


def _skip_unopened(line: str, tag: str, *, opened: bool) -> int:
    """Return where a line goes on after reasoning that began before the text, 0 if none ends in it.

    A tag that closes nothing is not taken for one in the midst of a line if an opening one was there before.
    """
    if tag in _CLOSING:
        return len(line)
    ends = 0
    for closed in () if opened or _ANY_OPENING.search(line) else _UNOPENED.finditer(line):
        ends = closed.end()
    return ends


def _skip_reasoning(line: str, *, inside: bool) -> tuple[int, bool]:
    """Return where a line goes on after the reasoning that it begins with, and whether that goes on in the next one."""
    place = 0
    while True:
        if not inside:
            opened = _OPENED.match(line, place)
            if opened is None:
                return place, False
            place = opened.end()
        closed = _CLOSED.search(line, place)
        if closed is None:
            return len(line), True
        place, inside = closed.end(), False
