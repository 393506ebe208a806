"""What stands around the text of a streamed event: nearly all events of an answer differ in their text alone.

To parse each of them would take most of what reading an answer takes.
"""

import json

from msgspec import Struct
from pydantic_core import from_json


class TextFrame(Struct, frozen=True):
    """The JSON of an event before its text, with the quotation mark, and after it."""

    before: str
    after: str

    def read(self, data: str) -> str | None:
        """Return the text of an event with this frame, None of any other."""
        is_framed = data.startswith(self.before) and data.endswith(self.after)
        if not is_framed or len(data) < len(self.before) + len(self.after):
            return None
        written = data[len(self.before) : -len(self.after)]
        if '"' not in written and "\\" not in written and written.isprintable():
            return written
        try:
            text: str = from_json(f'"{written}"')
        except ValueError:  # as where more than one text stands there
            return None
        return text


def find_frame(data: str, text: str) -> TextFrame | None:
    """Return the frame of an event that says this text; None if it is not certain where in its JSON that stands."""
    quoted = json.dumps(text, ensure_ascii=False)
    # What only has blanks and colons may stand between a name and its value too.
    if not any(map(str.isalnum, text)) or data.count(quoted) != 1:
        return None
    before, _, after = data.partition(quoted)
    return TextFrame(f'{before}"', f'"{after}')
