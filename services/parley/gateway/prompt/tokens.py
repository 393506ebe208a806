"""Tokens, estimated without a tokenizer, by a rule that errs on the high side.

Three letters or blanks count as a token, every other ASCII character as one (digits and signs rarely share one), and every
byte beyond ASCII as one.
"""

import string
from typing import Final

__all__ = ["CHARACTERS_A_TOKEN", "estimate_tokens"]

CHARACTERS_A_TOKEN: Final = 3
"""At most, by this estimate."""
_WORD_BYTES: Final = (string.ascii_letters + string.whitespace + "\x1c\x1d\x1e\x1f").encode()


def estimate_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text."""
    written = text.encode("utf-8", "surrogatepass")
    others = len(written.translate(None, _WORD_BYTES))
    return -(-(len(written) - others) // CHARACTERS_A_TOKEN) + others
