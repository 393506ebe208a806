"""Claims that need a citation: sentences of a proposal that state a fact of the world and name no source. Pure functions.

Found by English words and by figures: what a proposal wants, assumes or calculates is no such claim.
"""

import re
from typing import Final

from parley.orchestrator.model.positions import POSITION_LINE

MAX_CLAIMS: Final = 5
_MAX_CHARACTERS: Final = 300
_MAX_READ: Final = 16_000
"""Characters, the read of which holds the loop for less than 50 ms, whatever they are; proposals have a third of that."""

_CODE: Final = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_SKIPPED_LINE: Final = re.compile(r"^[ \t]*(?:#|\||>)")
_BULLET: Final = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[\"')\]*_]*\s+(?=[\"'(*_]*[A-Z0-9])")

_SOURCE: Final = re.compile(
    r"https?://|\]\(|\[\^?\d{1,3}\]|\([A-Z][^()\n]{0,60}\b(?:19|20)\d\d[a-z]?\)|\bdoi:|\b(?:RFC|ISO|IEEE|PEP|arXiv)[ :]?\d"
    r"|\b[Aa]ccording to (?:the |its )?[\"'A-Z`]|\w\.(?:md|txt|pdf|csv|html)\b|\b(?:§|section )\d"
)
_APPEAL: Final = re.compile(
    r"\b(?:studies|study|research(?:ers)?|surveys?|benchmarks?|statistics|experts?|experiments?|reports|analysts|measurements|data)"
    r"\s+(?:\w+\s+){0,2}?(?:shows?|showed|shown|suggests?|suggested|finds?|found|says?|agrees?|proves?|proved|indicates?|indicated"
    r"|confirms?|confirmed|reports?|reported)\b"
    r"|\b(?:has|have) been (?:shown|proven|proved|measured|demonstrated|found)\b|\bit is (?:well[ -])?(?:known|established) that\b",
    re.IGNORECASE,
)
_FIGURE: Final = re.compile(
    r"\b\d[\d.,]{0,15}[ \u00a0\u202f]?(?:%|percent\b|per cent\b)|\b\d[\d.,]{0,15}[ ]?(?:x|\u00d7|times|-fold)\b"
    r"|\b(?:twice|half|double|triple) (?:as|the)\b|[$€£][ ]?\d|\b(?:in|since|by) (?:19|20)\d\d\b",
    re.IGNORECASE,
)
_HYPOTHETICAL: Final = re.compile(
    r"\b(?:should|must|shall|will|would|could|can|may|might|let|assum\w+|suppos\w+|estimat\w+|expect\w*|if|unless|we|our|i|my|you"
    r"|propos\w+|recommend\w*|aims?|targets?|goals?|budgets?|limits?|thresholds?|at most|at least|up to|set|use|keep|choose|plan\w*)\b",
    re.IGNORECASE,
)


def claims_to_cite(text: str) -> tuple[str, ...]:
    """Return the sentences that need a citation and have none, in order, at most five, each once and of 300 characters at most.

    Such a sentence appeals to evidence that it does not name ("studies show"), or gives a share, a factor, a price or a year
    without a sign that it is wanted, assumed or conditional.
    """
    found = dict.fromkeys(
        sentence[:_MAX_CHARACTERS]
        for sentence in _sentences(text[:_MAX_READ])
        if not sentence.endswith("?") and not _SOURCE.search(sentence) and _is_claim(sentence)
    )
    return tuple(found)[:MAX_CLAIMS]


def _is_claim(sentence: str) -> bool:
    return bool(_APPEAL.search(sentence) or (_FIGURE.search(sentence) and not _HYPOTHETICAL.search(sentence)))


def _sentences(text: str) -> list[str]:
    """Return the sentences of prose and of lists; tables, headings, quotations, code and the position are none."""
    blocks: list[list[str]] = [[]]
    for line in POSITION_LINE.sub("", _CODE.sub("", text)).splitlines():
        bullet = _BULLET.match(line)
        if _SKIPPED_LINE.match(line) or not line.strip() or bullet:
            blocks.append([])
        if line.strip() and not _SKIPPED_LINE.match(line):
            blocks[-1].append(line[bullet.end() :] if bullet else line)
    joined = [" ".join(" ".join(block).split()) for block in blocks if block]
    return [sentence.strip() for block in joined for sentence in _SENTENCE_END.split(block)]
