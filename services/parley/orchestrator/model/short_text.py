"""Texts of agents in few words: one line, its first sentence, its beginning."""

import re
from typing import Final

_MAX_TITLE: Final = 120
_MAX_LISTED: Final = 200
_MAX_HEADLINE: Final = 300
_FEW_WORDS: Final = 3
_MAX_PARAGRAPHS: Final = 8
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[*_]*\s+(?![a-z])|(?<=[。！？])")  # noqa: RUF001 - of texts in Chinese and Japanese
"""Where a sentence ends; what goes on with a small letter does not, as after `e.g.`."""
_NO_PROSE: Final = ("```", "~~~", "|", "<")
_BEFORE_PROSE: Final = re.compile(r"^(?:#{1,6}\s+|[>*+-]\s+|\d{1,2}[.)]\s+)+")
_LABEL: Final = re.compile(
    r"^[*_]{0,3}(?:the\s+)?(?:short\s+)?(?:decision|answer|recommendation|summary|conclusion|tl;?dr|result)[*_]{0,3}[.:][*_]{0,3}\s+(?=\S)",
    re.IGNORECASE,
)
"""What a text begins with that names it, such as `**Decision.**`."""
_EMPHASIS: Final = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")


def to_line(text: str, most: int) -> str:
    """Return a text in one line of at most so many characters; what does not fit ends with an ellipsis, after a word if it can."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    whole = line[: most - 1].rpartition(" ")[0]
    beginning = whole if len(whole) > most // 2 else line[: most - 2].rstrip()
    return f"{beginning} …"


def to_beginning(text: str, most: int) -> str:
    """Return a text of at most so many characters, or its beginning and an ellipsis: up to the end of a sentence, if one is in its second half."""
    if len(text) <= most:
        return text
    cut = text[:most]
    ends = [found.start() for found in _SENTENCE_END.finditer(cut, most // 2)]
    return f"{cut[: ends[-1]]} …" if ends else f"{cut}…"


def to_title(question: str) -> str:
    """Return a question in one line: all of it if it is short, else its last sentence that asks, else its beginning."""
    line = " ".join(question.split())
    if len(line) <= _MAX_TITLE:
        return line
    asking = [each for each in _SENTENCE_END.split(line) if each.endswith(("?", "？"))]  # noqa: RUF001
    return to_line(asking[-1] if asking else line, 2 * _MAX_TITLE if asking else _MAX_TITLE)


def to_listed_question(question: str) -> str:
    """Return a question as lists show it: whole, or the beginning of a long one in one line."""
    return question if len(question) <= _MAX_LISTED else to_line(question, _MAX_LISTED)


def to_headline(text: str) -> str:
    """Return what a text says first, in plain words: its first sentence, or as many as make three words."""
    paragraphs = [each.strip() for each in re.split(r"\n[ \t]*\n", text) if each.strip()]
    prose = " ".join(filter(None, map(_to_prose, paragraphs[:_MAX_PARAGRAPHS])))
    plain = _EMPHASIS.sub(r"\2", _LABEL.sub("", prose))
    said = ""
    for sentence in _SENTENCE_END.split(plain):
        said = f"{said} {sentence}".strip()
        if len(said.split()) >= _FEW_WORDS:
            break
    return to_line(said or text, _MAX_HEADLINE)


def _to_prose(paragraph: str) -> str:
    """Return a paragraph as a line of prose; empty for a heading, a table or code."""
    lines = [each for each in paragraph.splitlines() if not each.startswith("#")]
    if not lines or lines[0].startswith(_NO_PROSE):
        return ""
    return " ".join([_BEFORE_PROSE.sub("", lines[0]), *lines[1:]])
