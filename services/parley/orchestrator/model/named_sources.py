"""The sentences of a text, and the sources that they name. Pure functions."""

import re
from typing import Final

from parley.orchestrator.model.positions import POSITION_LINE
from parley.orchestrator.model.sources import CITATION

MAX_CHARACTERS: Final = 300
"""Of a sentence, as it is kept."""
MAX_READ: Final = 10_000
"""Characters, the read of which holds the loop for 20 ms, and for 70 ms whatever they are; proposals have half of that."""

_CODE: Final = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_SKIPPED_LINE: Final = re.compile(r"^[ \t]*(?:#|\||>)")
_BULLET: Final = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[\"')\]*_]*\s+(?=[\"'(*_]*[A-Z0-9])")
_NAMED_SOURCE: Final = re.compile(
    r"https?://[^\s<>()\[\]]+|\bdoi:\S+|\b(?:RFC|ISO|IEEE|PEP|arXiv)[ :]?\d[\w.:-]*"
    rf"|{CITATION}"
    r"|\([A-Z][^()\n]{0,60}\b(?:19|20)\d\d[a-z]?\)|[\w./-]*\w\.(?:md|txt|pdf|csv|html)\b"
)
"""A source that can be looked up by what is written."""


def list_citations(text: str) -> list[tuple[str, list[str]]]:
    """Return the sentences that name sources which can be looked up, each once and of 300 characters at most, with the sources as written."""
    found = {
        sentence[:MAX_CHARACTERS]: [source[0].rstrip(".,;:").strip("()") for source in sources]
        for sentence in split_sentences(text[:MAX_READ])
        if (sources := list(_NAMED_SOURCE.finditer(sentence)))
    }
    return list(found.items())


def split_sentences(text: str) -> list[str]:
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
