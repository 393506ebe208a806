"""What stands around the text of a streamed event: nearly all events of an answer differ in their text alone.

To parse each of them would take most of what reading an answer takes.
"""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextFrame:
    """The JSON of an event before its text, with the quotation mark, and after it."""

    before: str
    after: str

    def read(self, data: str) -> str | None:
        """Return the text of an event with this frame, None of any other."""
        is_framed = data.startswith(self.before) and data.endswith(self.after)
        if not is_framed or len(data) < len(self.before) + len(self.after):
            return None
        written = data[len(self.before) : -len(self.after)]
        if _stands_for_itself(written):
            return written
        try:
            text = json.loads(f'"{written}"')
        except ValueError:  # more than one text stands there
            return None
        return text if isinstance(text, str) else None


def find_frame(data: str, text: str) -> TextFrame | None:
    """Return the frame of an event that says this text; None if it is not certain where in its JSON that stands."""
    quoted = f'"{text}"'
    # What only has blanks and colons may stand between a name and its value too.
    if not (_stands_for_itself(text) and any(map(str.isalnum, text)) and data.count(quoted) == 1):
        return None
    before, _, after = data.partition(quoted)
    return TextFrame(f'{before}"', f'"{after}')


def _stands_for_itself(text: str) -> bool:
    """Return whether a text is written in JSON as it is."""
    return '"' not in text and "\\" not in text and text.isprintable()
