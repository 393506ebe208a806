"""Tokens of a text, estimated without a tokenizer, for any language: an upper bound, and what is likely.

The upper bound errs on the high side. Three ASCII letters or blanks count as a token, every other ASCII character as one, and every byte beyond ASCII as one. So
English prose counts at 2.5 to 3 characters a token, and what fits here is never shortened by the gateway, which counts
the same. What debates are asked follows from this rule, so it does not change.
"""

import string
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Final

from parley.runtime.held_texts import HeldText

ASSUMED_CONTEXT_TOKENS: Final = 32_768
"""The assumed size of an agent's context if it is unknown: few models that debate well have less."""

CHARACTERS_A_TOKEN: Final = 3
"""Characters of prose that count as a token."""

_WORD_BYTES: Final = (string.ascii_letters + " \t\n\r\f\v").encode()
_LETTERS_AND_BLANKS: Final = _WORD_BYTES + b"\x1c\x1d\x1e\x1f"
_FIRST_OF_MANY_BYTES: Final = bytes(range(0xE0, 0x100))
"""In UTF-8, how characters above U+07FF begin: of scripts such as Chinese."""
_NARROW_BLANKS: Final = "\x85\xa0"
_WIDE_BLANKS: Final = [chr(each) for each in range(0x800, 0x3001) if chr(each).isspace()]


_CACHED_CHARACTERS: Final = 1024 * 1024
"""Of the texts whose counts are kept. Documents are not among them: a held text keeps its own counts."""
_ENTRY_OVERHEAD: Final = 200
"""The size of what is cached with a text, in characters."""


def _cache_recent(count: Callable[[str], int]) -> Callable[[str], int]:
    """Keep what the texts count that were counted last, which debates ask for again and again."""
    counts: OrderedDict[str, int] = OrderedDict()
    characters, lock = 0, Lock()

    @wraps(count)
    def count_with_cache(text: str) -> int:
        nonlocal characters
        with lock:
            if text in counts:
                counts.move_to_end(text)
                return counts[text]
        tokens = count(text)
        with lock:
            if text not in counts:
                characters += len(text) + _ENTRY_OVERHEAD
            counts[text] = tokens
            while characters > _CACHED_CHARACTERS:
                characters -= len(counts.popitem(last=False)[0]) + _ENTRY_OVERHEAD
        return tokens

    return count_with_cache


def count_upper_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text, of which the caller keeps the count."""
    written = text.encode("utf-8", "surrogatepass")
    others = len(written.translate(None, _WORD_BYTES))
    return -(-(len(written) - others) // CHARACTERS_A_TOKEN) + others


@_cache_recent
def upper_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text."""
    return count_upper_tokens(text)


def count_tokens(held: HeldText) -> None:
    """Count the tokens of a document, which prompts ask for on the event loop. The document keeps the counts."""
    held.count(upper_tokens)
    held.count(likely_tokens)


@_cache_recent
def likely_tokens(text: str) -> int:
    """Return about as many tokens as usual tokenizers make of a text, by its script; budgets are checked by it before a call.

    Four ASCII letters or blanks count as a token, two other characters of ASCII and of alphabets such as Cyrillic, Greek or
    Arabic, and every character of other scripts, such as Chinese, as one.
    """
    written = text.encode("utf-8", "surrogatepass")
    letters = len(written) - len(written.translate(None, _LETTERS_AND_BLANKS))
    wide = len(written) - len(written.translate(None, _FIRST_OF_MANY_BYTES))
    letters += 0 if text.isascii() else sum(map(text.count, _NARROW_BLANKS))
    if wide:
        wide_blanks = sum(map(text.count, _WIDE_BLANKS))
        letters, wide = letters + wide_blanks, wide - wide_blanks
    return letters // 4 + (len(text) - letters - wide) // 2 + wide
