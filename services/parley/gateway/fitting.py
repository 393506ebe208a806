"""Prompts are fitted to what a route can read.

Tokens are estimated without a tokenizer, by a rule that errs on the high side: three letters or blanks a token, one
token for every other ASCII character (digits and signs rarely share one), one for every byte beyond ASCII.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

__all__ = ["Fitted", "Message", "PromptPart", "Unfittable", "estimate_tokens", "fit", "join"]

_MESSAGE_TOKENS: Final = 8
"""What a chat template puts around a message."""
_LEAST_TOKENS: Final = 24
"""No part is shortened below this, unless the parts that give less need it too."""
_READABLE_TOKENS: Final = 128
"""A document that would be shortened below this is better left out, unless it is the only one."""
_HEAD_SHARE: Final = 0.65
"""Of a shortened text this much is kept from its beginning, the rest from its end."""

_WORD_CHARACTER: Final = re.compile(r"[A-Za-z\s]+")


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One piece of a prompt: who says it (`system`, `user`, `assistant`), and how readily it is shortened.

    `document` is the path of the context document that the text is; empty: it is none.
    """

    role: str
    text: str
    give: int = 0
    document: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """What an endpoint is sent as one message."""

    role: str
    text: str


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


def estimate_tokens(text: str) -> int:
    """An upper estimate of the tokens of a text."""
    if text.isascii():
        others = len(_WORD_CHARACTER.sub("", text))
        return (len(text) - others + 2) // 3 + others
    ascii_only = text.encode("ascii", "ignore").decode("ascii")
    beyond = len(text.encode("utf-8", "surrogatepass")) - len(ascii_only)
    return estimate_tokens(ascii_only) + beyond


def join(parts: Sequence[PromptPart]) -> tuple[Message, ...]:
    """The parts as messages; neighbours of one role become one, with a blank line between them."""
    messages: list[Message] = []
    run: list[str] = []
    for index, part in enumerate(parts):
        run.append(part.text)
        if index + 1 == len(parts) or parts[index + 1].role != part.role:
            messages.append(Message(part.role, "\n\n".join(run)))
            run = []
    return tuple(messages)


def fit(parts: Sequence[PromptPart], allowed: int) -> Fitted:
    """The prompt within `allowed` tokens; 0 or less means that the limit is unknown.

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
        most = _common_limit([sizes[index] for index in group], excess)
        for index in group:
            if sizes[index] > most:
                text, gone = _shorten(parts[index].text, most - _MESSAGE_TOKENS)
                shortened[index] = replace(parts[index], text=text)
                sizes[index] = estimate_tokens(text) + _MESSAGE_TOKENS
                left_out += gone
                readable = readable and not (parts[index].document and most < _READABLE_TOKENS)
    return _Shortened(shortened, sum(sizes), left_out, readable)


def _with_documents(parts: Sequence[PromptPart], shown: int) -> list[PromptPart]:
    """The parts with the first so many documents, and a word for the others."""
    documents = [index for index, part in enumerate(parts) if part.document]
    others = documents[shown:]
    if not others:
        return list(parts)
    told = PromptPart(parts[others[0]].role, f"[… {len(others)} more documents left out …]")
    return [
        told if index == others[0] else part for index, part in enumerate(parts) if index not in others[1:]
    ]


def _surely_fits(parts: Sequence[PromptPart], allowed: int) -> bool:
    """No text has more tokens than bytes: nothing need be counted where even those fit."""
    return sum(4 * len(part.text) + _MESSAGE_TOKENS for part in parts) <= allowed


def _common_limit(sizes: Sequence[int], excess: int) -> int:
    """The size that, as everyone's upper bound, takes `excess` off the sum: the longest give, the short keep all."""
    target = max(sum(sizes) - excess, 0)
    remaining = target
    for position, size in enumerate(sorted(sizes)):
        share = remaining // (len(sizes) - position)
        if size > share:
            return max(share, _LEAST_TOKENS + _MESSAGE_TOKENS)
        remaining -= size
    return max(sizes)


def _shorten(text: str, tokens: int) -> tuple[str, int]:
    """Head and tail of the text with a mark between, in at most so many tokens; and the characters left out."""
    low, high = 0, len(text)
    while low < high:
        kept = (low + high + 1) // 2
        if estimate_tokens(_marked(text, kept)) <= tokens:
            low = kept
        else:
            high = kept - 1
    return _marked(text, low), len(text) - low


def _marked(text: str, kept: int) -> str:
    if kept >= len(text):
        return text
    head = round(kept * _HEAD_SHARE)
    tail = kept - head
    mark = f"\n[… {len(text) - kept} characters left out …]\n"
    return text[:head] + mark + (text[-tail:] if tail else "")
