"""Prompts fitted to the context of a route."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from parley.gateway.prompt.parts import Message, PromptPart, join
from parley.gateway.prompt.tokens import CHARACTERS_A_TOKEN, estimate_tokens

__all__ = ["Fitted", "Unfittable", "fit"]

_MESSAGE_TOKENS: Final = 8
"""What a chat template puts around a message."""
_MIN_TOKENS: Final = 24
"""No part is shortened below this, unless the parts that give less need it too."""
_READABLE_TOKENS: Final = 128
"""A document that would be shortened below this is better left out, unless it is the only one."""
_LEAST_MARKS: Final = 3
"""Of a line that opens or closes a quotation."""
_HEAD_SHARE: Final = 0.65
"""Of a shortened text this much is kept from its beginning, the rest from its end."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt that fits, and how many characters were left out for it."""

    messages: tuple[Message, ...]
    characters_left_out: int = 0

    @property
    def tokens(self) -> int:
        """An upper estimate of its tokens."""
        return sum(estimate_tokens(message.text) + _MESSAGE_TOKENS for message in self.messages)


class Unfittable(Exception):  # noqa: N818 (said of the prompt, not of the program)
    """The parts that must not be shortened are too long by themselves."""

    def __init__(self, needed: int, allowed: int) -> None:
        super().__init__(f"the prompt needs about {needed} tokens, {allowed} fit")


def fit(parts: Sequence[PromptPart], allowed: int) -> Fitted:
    """Return the prompt within `allowed` tokens; 0 or less means that the limit is unknown.

    Parts with a larger `give` are shortened first, the longest of them most. Where too little of each document would be
    left to be of use, the later ones are left out altogether. Raises Unfittable.
    """
    if allowed <= 0 or _surely_fits(parts, allowed):
        return Fitted(join(parts))
    documents = [part for part in parts if part.document]
    shown = len(documents)
    while True:
        chosen = _with_documents(parts, shown)
        shortened = _shortened(chosen, allowed)
        if shortened.tokens <= allowed and (shown <= 1 or shortened.readable):
            left_out = shortened.left_out + sum(len(part.text) for part in documents[shown:])
            return Fitted(join(shortened.parts), left_out)
        if not shown:
            raise Unfittable(shortened.tokens, allowed)
        shown //= 2


@dataclass(frozen=True, slots=True)
class _Shortened:
    """`readable`: no document was shortened beyond use. `left_out` counts characters."""

    parts: Sequence[PromptPart]
    tokens: int
    left_out: int
    readable: bool


def _shortened(parts: Sequence[PromptPart], allowed: int) -> _Shortened:
    sizes = [estimate_tokens(part.text) + _MESSAGE_TOKENS for part in parts]
    shortened = list(parts)
    left_out, readable = 0, True
    for give in sorted({part.give for part in parts if part.give > 0}, reverse=True):
        excess = sum(sizes) - allowed
        if excess <= 0:
            break
        group = [index for index, part in enumerate(parts) if part.give == give]
        limit = _common_limit([sizes[index] for index in group], excess)
        for index in group:
            if sizes[index] > limit:
                text, gone = _shorten(parts[index].text, limit - _MESSAGE_TOKENS)
                shortened[index] = replace(parts[index], text=text)
                sizes[index] = estimate_tokens(text) + _MESSAGE_TOKENS
                left_out += gone
                readable = readable and not (parts[index].document and limit < _READABLE_TOKENS)
    return _Shortened(shortened, sum(sizes), left_out, readable)


def _with_documents(parts: Sequence[PromptPart], shown: int) -> list[PromptPart]:
    """Return the parts with the first so many documents, and a word for the others."""
    documents = [index for index, part in enumerate(parts) if part.document]
    others = documents[shown:]
    if not others:
        return list(parts)
    told = PromptPart(parts[others[0]].role, f"[… {len(others)} more documents left out …]")
    return [
        told if index == others[0] else part for index, part in enumerate(parts) if index not in others[1:]
    ]


def _surely_fits(parts: Sequence[PromptPart], allowed: int) -> bool:
    """Tell whether the parts fit without counting: no text has more tokens than bytes."""
    return sum(4 * len(part.text) + _MESSAGE_TOKENS for part in parts) <= allowed


def _common_limit(sizes: Sequence[int], excess: int) -> int:
    """Return the size that, as everyone's upper bound, takes `excess` off the sum: the longest give, the short keep all."""
    target = max(sum(sizes) - excess, 0)
    remaining = target
    for position, size in enumerate(sorted(sizes)):
        share = remaining // (len(sizes) - position)
        if size > share:
            return max(share, _MIN_TOKENS + _MESSAGE_TOKENS)
        remaining -= size
    return max(sizes)


def _shorten(text: str, tokens: int) -> tuple[str, int]:
    """Return head and tail of the text with a mark between, in at most so many tokens; and the characters left out.

    A quotation keeps its title and its marks; where there is no room for them, nothing of it is left.
    """
    before, quoted, after = _quotation(text)
    low, high = 0, min(len(quoted), CHARACTERS_A_TOKEN * tokens)
    while low < high:
        kept = (low + high + 1) // 2
        if estimate_tokens(f"{before}{_marked(quoted, kept)}{after}") <= tokens:
            low = kept
        else:
            high = kept - 1
    if not low and before:
        return _marked(text, 0).strip(), len(text)
    return f"{before}{_marked(quoted, low)}{after}", len(quoted) - low


def _quotation(text: str) -> tuple[str, str, str]:
    """Return what stands before what is quoted, that, and what stands after it; only the middle for what is no quotation."""
    closing = text.rpartition("\n")[2]
    if len(closing) < _LEAST_MARKS or closing.strip(">"):
        return "", text, ""
    opening = f"\n{'<' * len(closing)}\n"
    title, found, rest = text.partition(opening)
    if not found or "\n" in title or len(rest) <= len(closing):
        return "", text, ""
    return title + opening, rest[: -len(closing) - 1], f"\n{closing}"


def _marked(text: str, kept: int) -> str:
    if kept >= len(text):
        return text
    head = round(kept * _HEAD_SHARE)
    tail = kept - head
    mark = f"\n[… {len(text) - kept} characters left out …]\n"
    return text[:head] + mark + (text[-tail:] if tail else "")
