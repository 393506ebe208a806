"""Tokens, estimated without a tokenizer, by a rule that errs on the high side.

Three letters or blanks count as a token, every other ASCII character as one (digits and signs rarely share one), and every
byte beyond ASCII as one.
"""

import re
from typing import Final

__all__ = ["estimate_tokens"]

_WORD_CHARACTER: Final = re.compile(r"[A-Za-z\s]+")


def estimate_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text."""
    if text.isascii():
        others = len(_WORD_CHARACTER.sub("", text))
        return (len(text) - others + 2) // 3 + others
    ascii_only = text.encode("ascii", "ignore").decode("ascii")
    beyond = len(text.encode("utf-8", "surrogatepass")) - len(ascii_only)
    return estimate_tokens(ascii_only) + beyond
