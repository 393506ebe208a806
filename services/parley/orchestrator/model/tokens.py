"""Tokens of a text, estimated without a tokenizer, for any language: an upper bound, and what is likely.

The upper bound errs on the high side. Three ASCII letters or blanks count as a token, every other ASCII character as one, and every byte beyond ASCII as one. So
English prose counts at 2.5 to 3 characters a token, and what fits here is never shortened by the gateway, which counts
the same. What debates are asked follows from this rule, so it does not change.
"""

import re
from functools import lru_cache
from typing import Final

__all__ = ["ASSUMED_CONTEXT_TOKENS", "CHARACTERS_A_TOKEN", "likely_tokens", "upper_tokens"]

ASSUMED_CONTEXT_TOKENS: Final = 32_768
"""Tokens that an agent's context is taken to have where nobody knows: few models that debate well have less."""

CHARACTERS_A_TOKEN: Final = 3
"""Characters of prose that count as a token."""

_WORD_CHARACTER: Final = re.compile(rb"[A-Za-z\s]+")


@lru_cache(maxsize=4096)
def upper_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text."""
    written = text.encode("utf-8", "surrogatepass")
    others = len(_WORD_CHARACTER.sub(b"", written))
    return -(-(len(written) - others) // CHARACTERS_A_TOKEN) + others


_LETTERS: Final = re.compile(r"[A-Za-z\s]+")
_SHORT: Final = re.compile(r"[\x00-\u07ff]+")


def likely_tokens(text: str) -> int:
    """Return about as many tokens as usual tokenizers make of a text, by its script; what budgets are held to before a call.

    Four ASCII letters or blanks count as a token, two other characters of ASCII and of alphabets such as Cyrillic, Greek or
    Arabic, and every character of other scripts, such as Chinese, as one.
    """
    others = _LETTERS.sub("", text)
    rest = _SHORT.sub("", others)
    return (len(text) - len(others)) // 4 + (len(others) - len(rest)) // 2 + len(rest)
