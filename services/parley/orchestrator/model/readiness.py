"""Readiness: the line with which an agent states whether it is ready for the vote, and how sure it is of its proposal."""

import re
from typing import Final

from msgspec import Struct

READINESS_FORM: Final = (
    "One line for those who run the debate, such as `Ready: no, 40 %`: yes or no, whether you would vote now"
    " since more discussion would not change your proposal, and how sure you are that it is right. The other agents do not see it."
)
_LINE: Final = re.compile(
    r"^[ \t>*_#-]*(?:\d{1,2}[.)][ \t*_]*)?ready[ \t*_]*:(?P<statement>[^\n]{0,200})$\n?",
    re.IGNORECASE | re.MULTILINE,
)
_READY: Final = re.compile(r"\b(?P<yes>yes)\b|\bno\b", re.IGNORECASE)
_PERCENT: Final = re.compile(r"(?<![\d.,-])(\d{1,3}(?:[.,]\d{1,3})?)[ \t\u00a0\u202f]*%")


class Readiness(Struct, frozen=True):
    """An agent's statement of its own readiness. `ready` and `confidence` (0 to 1) are None if it gave none."""

    ready: bool | None = None
    confidence: float | None = None


def parse_readiness(text: str) -> Readiness:
    """Return the readiness by the last such line; what is absent or makes no sense is None."""
    lines = [found["statement"] for found in _LINE.finditer(text)]
    if not lines:
        return Readiness()
    words = {bool(found["yes"]) for found in _READY.finditer(lines[-1])}
    percents = [float(each.replace(",", ".")) for each in _PERCENT.findall(lines[-1])]
    is_clear = len(percents) == 1 and percents[0] <= 100
    return Readiness(
        ready=words.pop() if len(words) == 1 else None, confidence=percents[0] / 100 if is_clear else None
    )


def without_readiness(text: str) -> str:
    """Return a text without that line: other agents must not learn how sure its author is."""
    lines = list(_LINE.finditer(text))
    return f"{text[: lines[-1].start()]}{text[lines[-1].end() :]}".strip() if lines else text
