"""Every text that comes from a model passes here before anything else reads it.

What goes in is whatever an endpoint sent. What comes out is valid UTF-8 of bounded length in which:

- lines end in LF (CR, CRLF, NEL and the Unicode line and paragraph separators become LF);
- there are no control characters but LF and TAB, no NUL, no noncharacters;
- nothing changes the direction of the text beyond the marks that right-to-left scripts need: embeddings, overrides
  and isolates are taken out, LRM, RLM and ALM stay;
- nothing is invisible but joins letters: zero-width space, word joiner, byte order mark and tag characters are
  taken out, the joiners of scripts and emoji (ZWJ, ZWNJ) stay;
- halves of surrogate pairs are joined, or become U+FFFD if the other half never came.
"""

import re
from typing import Any, Final

MAX_CHARACTERS: Final = 262_144
"""Characters of one answer at most; the rest is left out and the answer counts as truncated."""

MAX_LEVELS: Final = 64
"""Lists and objects inside of each other in one JSON value; later readers have stacks of their own."""

_REMOVED: Final = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"  # control characters but TAB, LF, CR, NEL
    "\u200b\u2060-\u2064\ufeff"  # zero width, joins nothing
    "\u202a-\u202e\u2066-\u206f"  # direction, and deprecated format characters
    "\ufff9-\ufffb\ufdd0-\ufdef\ufffe\uffff"  # annotations, noncharacters
    "\U000e0000-\U000e007f"  # tags: invisible ASCII
)
_ODD: Final = re.compile(f"[{_REMOVED}\r\x85\u2028\u2029\ud800-\udfff]")
_GONE: Final = re.compile(f"[{_REMOVED}]")
_LINE_END: Final = re.compile("\r\n|[\r\x85\u2028\u2029]")
_SURROGATES: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")


class TextSanitizer:
    """Cleans one text that comes in pieces, to the same result as if it had come whole."""

    def __init__(self, limit: int = MAX_CHARACTERS) -> None:
        self._left = limit
        self._half = ""
        self._after_cr = False
        self.full = False
        """Whether text was left out because the limit was reached."""

    def feed(self, piece: str) -> str:
        """Return what of the text is clean and ready now."""
        if not (self._half or self._after_cr) and _ODD.search(piece) is None:
            return self._cut_to_limit(piece)
        if not piece:
            return ""
        piece = self._half + piece
        self._half = ""
        if "\ud800" <= piece[-1] <= "\udbff":  # its other half may be on the way
            piece, self._half = piece[:-1], piece[-1]
        if not piece:
            return ""
        return self._cut_to_limit(self._clean(piece))

    def end(self) -> str:
        """Return what was held back until the text's end."""
        held, self._half = self._half, ""
        return self._cut_to_limit("\ufffd") if held else ""

    def _clean(self, piece: str) -> str:
        piece = _SURROGATES.sub(_join_surrogates, piece)
        # Removed first, so that what stands between CR and LF cannot make two line ends of one.
        piece = _GONE.sub("", piece)
        if not piece:
            return ""
        after_cr, self._after_cr = self._after_cr, piece[-1] == "\r"
        if after_cr and piece[0] == "\n":
            piece = piece[1:]
        return _LINE_END.sub("\n", piece)

    def _cut_to_limit(self, piece: str) -> str:
        if len(piece) > self._left:
            piece, self.full = piece[: self._left], True
        self._left -= len(piece)
        return piece


def clean(text: str, limit: int = MAX_CHARACTERS) -> str:
    """Return the text as it may be read by the rest of the system, of at most `limit` characters."""
    if len(text) <= limit and _ODD.search(text) is None:
        return text
    sanitizer = TextSanitizer(limit)
    return sanitizer.feed(text) + sanitizer.end()


def clean_value(value: Any, levels: int = MAX_LEVELS) -> Any:
    """Return a JSON value whose texts, keys included, are clean. Raise RecursionError beyond so many levels."""
    if isinstance(value, str):
        return clean(value)
    if not isinstance(value, list | dict):
        return value
    if levels == 0:
        raise RecursionError(f"nested more than {MAX_LEVELS} levels deep")
    if isinstance(value, list):
        return [clean_value(each, levels - 1) for each in value]
    return {clean(key): clean_value(each, levels - 1) for key, each in value.items()}


def to_line(text: str, limit: int = 300) -> str:
    """Return a clean text as one line for a message, shortened in its middle of words if it is long."""
    line = " ".join(clean(text, 4 * limit).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _join_surrogates(match: re.Match[str]) -> str:
    found = match.group()
    if len(found) == 1:
        return "\ufffd"
    high, low = ord(found[0]), ord(found[1])
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
