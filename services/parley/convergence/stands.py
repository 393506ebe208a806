"""What an agent stands for: its stated position, or the sentence of its text that states one."""

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Stand", "sentences"]

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(*_#-])|\n+")
_MARKUP: Final = re.compile(r"^[\s#>*_\-•\d.)]*|[*_`]+")
_FENCED: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_STATES: Final = re.compile(
    r"\b(?:(?:my|our|the)\s+(?:position|recommendation|answer|proposal|verdict|conclusion)\b|i\s+(?:\w+\s+)?(?:recommend|"
    r"propose|suggest|advise|argue)|(?:we|you|one|the\s+\w+)\s+(?:should|must)\b|in\s+conclusion|in\s+short|overall,|"
    r"therefore,|^position\s*:|^recommendation\s*:|^answer\s*:)",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(
    r"^(?:(?:my|our|the)\s+)?(?:position|recommendation|answer|proposal|verdict|conclusion)\s*(?::|\bis(?:\s+that)?\b|\bis\s+to\b)"
    r"\s*|^(?:in\s+conclusion|in\s+short|overall|therefore),\s*",
    re.IGNORECASE,
)
_MOST_SENTENCES: Final = 200


@dataclass(frozen=True, slots=True)
class Stand:
    """What one agent stands for in one round; `position` or `text` is not empty."""

    agent_id: str
    position: str
    text: str

    @property
    def taken(self) -> str:
        """The stated position, or the one found in the text.

        It is the last sentence with the words of a recommendation (`I recommend`, `we should`, `Position:`), since
        texts that weigh come to their point; a heading or opening that says so outright wins; without any it is the
        first sentence.
        """
        if self.position.strip():
            return " ".join(self.position.split())
        found = sentences(self.text) or [" ".join(self.text.split())[:1000]]
        outright = [each for each in found if _LEAD.match(each) and len(_LEAD.sub("", each)) > 8]
        stating = outright or [each for each in found if _STATES.search(each)]
        chosen = stating[0] if outright else stating[-1] if stating else found[0]
        return _LEAD.sub("", chosen)[:2000] or chosen


def sentences(text: str) -> list[str]:
    """The sentences of a text, without code, markup and headings of a word or two; at most 200."""
    plain = _FENCED.sub("\n", text)
    cleaned = (" ".join(_MARKUP.sub("", part).split()) for part in _SENTENCE_END.split(plain))
    return [part for part in cleaned if len(part.split()) > 2][:_MOST_SENTENCES]
