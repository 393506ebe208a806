"""What stands around the text of a streamed event: nearly all events of an answer differ in their text alone.

To parse each of them would take most of what reading an answer takes.
"""

import json
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from pydantic_core import from_json

_encoder: Final = json.JSONEncoder(ensure_ascii=False)


class TextFrame(Struct, frozen=True):
    """The JSON of an event before its text, with the quotation mark, and after it."""

    before: str
    after: str

    def read(self, events: Sequence[str], start: int = 0) -> list[str]:
        """Return the texts of these events, from the one at `start` up to the first that has another frame."""
        before, after, texts = self.before, self.after, []
        begin, end = len(before), -len(after)
        least = begin - end
        for place in range(start, len(events)):
            data = events[place]
            if len(data) < least or not (data.startswith(before) and data.endswith(after)):
                break
            text = data[begin:end]
            if '"' in text or "\\" in text or not text.isprintable():
                try:
                    text = from_json(f'"{text}"')
                except ValueError:  # as where more than one text stands there
                    break
            texts.append(text)
        return texts


def find_frame(data: str, text: str) -> TextFrame | None:
    """Return the frame of an event that says this text; None if it is not certain where in its JSON that stands."""
    quoted = _encoder.encode(text)
    # What only has blanks and colons may stand between a name and its value too.
    if not any(map(str.isalnum, text)) or data.count(quoted) != 1:
        return None
    before, _, after = data.partition(quoted)
    return TextFrame(f'{before}"', f'"{after}')
