"""What an agent stands for, and the sentences of what it wrote."""

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Stand", "sentences"]

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(*_#-])|\n+")
_MARKUP: Final = re.compile(r"^[\s#>*_\-•\d.)]*|[*_`]+")
_FENCED: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MAX_SENTENCES: Final = 200


@dataclass(frozen=True, slots=True)
class Stand:
    """What one agent stands for in one round; `position` or `text` is not empty.

    Without a position, what it stands for cannot be told: a text weighs many things, and which of its sentences is the
    stand is a guess.
    """

    agent_id: str
    position: str
    text: str


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without code, markup and headings of a word or two; at most 200."""
    plain = _FENCED.sub("\n", text)
    cleaned = (" ".join(_MARKUP.sub("", part).split()) for part in _SENTENCE_END.split(plain))
    return [part for part in cleaned if len(part.split()) > 2][:_MAX_SENTENCES]
