"""The parts of a prompt: their tokens, the messages that they become, and how they are shortened to fit a context.

Parts and messages are both the contract's `PromptPart`. Tokens are estimated without a tokenizer, by a rule that errs on
the high side: three letters or blanks count as one token, every other ASCII character as one (digits and signs rarely
share one), and every byte beyond ASCII as one.
"""

import string
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final

from msgspec import Struct

from parley.runtime.passages import keep_passages
from parley.v1.gateway_pb2 import (
    PROMPT_ROLE_ASSISTANT,
    PROMPT_ROLE_SYSTEM,
    PROMPT_ROLE_USER,
    PromptPart,
    PromptRole,
)

CHARACTERS_A_TOKEN: Final = 3
"""At most, by this estimate."""
_WORD_BYTES: Final = (string.ascii_letters + string.whitespace + "\x1c\x1d\x1e\x1f").encode()


def estimate_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text."""
    written = text.encode("utf-8", "surrogatepass")
    others = len(written.translate(None, _WORD_BYTES))
    return -(-(len(written) - others) // CHARACTERS_A_TOKEN) + others


ROLE_NAMES: Final[Mapping[PromptRole.ValueType, str]] = {
    PROMPT_ROLE_SYSTEM: "system",
    PROMPT_ROLE_USER: "user",
    PROMPT_ROLE_ASSISTANT: "assistant",
}
"""The roles as both APIs name them."""


def join(parts: Iterable[PromptPart]) -> tuple[PromptPart, ...]:
    """Return the parts as messages: neighbours of one role become one, with a blank line between their texts."""
    messages: list[PromptPart] = []
    for role, run in groupby(parts, key=lambda part: part.role):
        first, *others = run
        text = "\n\n".join(part.text for part in (first, *others)) if others else ""
        messages.append(PromptPart(role=role, text=text) if others else first)
    return tuple(messages)


def with_text(part: PromptPart, text: str) -> PromptPart:
    """Return the part with another text."""
    return PromptPart(
        role=part.role,
        text=text,
        shrink_priority=part.shrink_priority,
        document=part.document,
        source=part.source,
        passages=part.passages,
    )


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


def count_tokens(messages: Iterable[PromptPart]) -> int:
    """Return an upper estimate of the tokens of messages."""
    return sum(estimate_tokens(message.text) + _MESSAGE_TOKENS for message in messages)


class Unfittable(Exception):  # noqa: N818 (said of the prompt, not of the program)
    """The parts that must not be shortened are too long by themselves."""

    def __init__(self, needed: int, allowed: int) -> None:
        super().__init__(f"the prompt needs about {needed} tokens, {allowed} fit")


def fit(parts: Sequence[PromptPart], allowed: int) -> tuple[tuple[PromptPart, ...], int]:
    """Return the messages of a prompt within `allowed` tokens, and how many characters were left out for that.

    0 or less means that the limit is unknown.

    Parts with a larger `shrink_priority` are shortened first, the longest of them most. Where too little of each document would be
    left to be of use, the later ones are left out altogether. Raise Unfittable.
    """
    if allowed <= 0 or _fits_surely(parts, allowed):
        return join(parts), 0
    documents = [part for part in parts if part.document]
    shown = len(documents)
    while True:
        chosen = _keep_documents(parts, shown)
        shortened = _shorten_parts(chosen, allowed)
        if shortened.tokens <= allowed and (shown <= 1 or shortened.readable):
            left_out = shortened.left_out + sum(len(part.text) for part in documents[shown:])
            return join(shortened.parts), left_out
        if not shown:
            raise Unfittable(shortened.tokens, allowed)
        shown //= 2


class _ShortPrompt(Struct, frozen=True):
    """`readable`: no document was shortened beyond use. `left_out` counts characters."""

    parts: Sequence[PromptPart]
    tokens: int
    left_out: int
    readable: bool


def _shorten_parts(parts: Sequence[PromptPart], allowed: int) -> _ShortPrompt:
    sizes = [estimate_tokens(part.text) + _MESSAGE_TOKENS for part in parts]
    shortened = list(parts)
    left_out, readable = 0, True
    for give in sorted({part.shrink_priority for part in parts if part.shrink_priority > 0}, reverse=True):
        excess = sum(sizes) - allowed
        if excess <= 0:
            break
        group = [index for index, part in enumerate(parts) if part.shrink_priority == give]
        limit = _common_limit([sizes[index] for index in group], excess)
        for index in group:
            if sizes[index] > limit:
                text, gone = _shorten(parts[index], limit - _MESSAGE_TOKENS)
                shortened[index] = with_text(parts[index], text)
                sizes[index] = estimate_tokens(text) + _MESSAGE_TOKENS
                left_out += gone
                readable = readable and not (parts[index].document and limit < _READABLE_TOKENS)
    return _ShortPrompt(shortened, sum(sizes), left_out, readable)


def _keep_documents(parts: Sequence[PromptPart], shown: int) -> list[PromptPart]:
    """Return the parts with the first so many documents, and a word for the others."""
    documents = [index for index, part in enumerate(parts) if part.document]
    others = documents[shown:]
    if not others:
        return list(parts)
    note = PromptPart(role=parts[others[0]].role, text=f"[… {len(others)} more documents left out …]")
    return [
        note if index == others[0] else part for index, part in enumerate(parts) if index not in others[1:]
    ]


def _fits_surely(parts: Sequence[PromptPart], allowed: int) -> bool:
    """Return whether the parts fit without counting: no text has more tokens than bytes."""
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


def _shorten(part: PromptPart, tokens: int) -> tuple[str, int]:
    """Return a text with marks where something is left out, in at most so many tokens; and the characters left out.

    Its passages are kept, or else head and tail. A quotation keeps its title and its marks; if there is no room for them, nothing of it
    is left.
    """
    text = part.text
    before, quoted, after = _split_quotation(text)

    def cut(kept: int) -> str:
        return keep_passages(quoted, part.passages, kept) if part.passages else _cut_middle(quoted, kept)

    low, high = 0, min(len(quoted), CHARACTERS_A_TOKEN * tokens)
    while low < high:
        kept = (low + high + 1) // 2
        if estimate_tokens(f"{before}{cut(kept)}{after}") <= tokens:
            low = kept
        else:
            high = kept - 1
    if not low and before:
        return _cut_middle(text, 0).strip(), len(text)
    return f"{before}{cut(low)}{after}", len(quoted) - low


def _split_quotation(text: str) -> tuple[str, str, str]:
    """Return what stands before what is quoted, that, and what stands after it; only the middle for what is no quotation."""
    closing = text.rpartition("\n")[2]
    if len(closing) < _LEAST_MARKS or closing.strip(">"):
        return "", text, ""
    opening = f"\n{'<' * len(closing)}\n"
    title, found, rest = text.partition(opening)
    if not found or "\n" in title or len(rest) <= len(closing):
        return "", text, ""
    return title + opening, rest[: -len(closing) - 1], f"\n{closing}"


def _cut_middle(text: str, kept: int) -> str:
    if kept >= len(text):
        return text
    head = round(kept * _HEAD_SHARE)
    tail = kept - head
    mark = f"\n[… {len(text) - kept} characters left out …]\n"
    return text[:head] + mark + (text[-tail:] if tail else "")
