"""Make texts of others safe to show: nothing in them moves the cursor, hides text or changes the terminal."""

import re
from typing import Final

_SEQUENCE: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colors, movements, modes
    r"|\x1b[\]PX^_](?:[^\x07\x1b\n]*(?:\x07|\x1b\\))?"  # OSC, DCS and other strings: titles, links, the clipboard
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but TAB and LF
    "\u202a-\u202e\u2066-\u206f"  # what turns the direction of text, beyond its own end too
    "\u200b\u2060-\u2064\ufeff\U000e0000-\U000e007f"  # invisible, and joins nothing: text could hide in it
    "\ufff9-\ufffb\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]"
)
_JOINING: Final = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")
"""Characters that join or change others: terminals do not agree on their width."""
_LINE_END: Final = re.compile(r"\r\n?|[\x85\u2028\u2029]")


def printable(text: str) -> str:
    """Return the text without escape sequences and control characters; its lines and tabs stay."""
    if text.replace("\n", "").replace("\t", "").isprintable():  # as most texts are; found much faster
        return text
    return _UNPRINTABLE.sub("", _SEQUENCE.sub("", _LINE_END.sub("\n", text)))


def printable_json(text: str) -> str:
    """Return the same JSON with escapes for characters that do not belong on a terminal."""
    for pattern in (_UNPRINTABLE, _LINE_END):
        text = pattern.sub(_escape, text)
    return text


def _escape(found: re.Match[str]) -> str:
    units = found.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def picture_text(text: str) -> str:
    """Return the printable text without characters whose width differs between terminals."""
    return _JOINING.sub("", printable(text))


def printable_line(text: str) -> str:
    """Return the text on one line, without escape sequences and control characters."""
    return " ".join(printable(text).split())
