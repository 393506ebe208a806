"""A decoder of server-sent events, as the WHATWG HTML standard defines them (section 9.2, "event stream").

It reads the bytes of a stream in chunks of any size, and does no I/O. It passes on the data of the events: model servers
say all in it. Types, ids and reconnection times are passed over as unknown fields are.
"""

import codecs
import re
from typing import Final

_EMPTY_LINES: Final = re.compile(r"\n{3,}")


class EventTooLargeError(ValueError):
    """An event, finished or not, has more characters than the decoder accepts."""


class EventDecoder:
    """Decodes one stream. An event may have at most `max_characters`, counted with its comments and field names."""

    def __init__(self, max_characters: int) -> None:
        self._max_characters = max_characters
        # drops a leading byte order mark
        self._characters = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._after_cr = False
        self._unfinished_line: list[str] = []  # joined at the line's end: a large event comes in many chunks
        self._size = 0
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[str]:
        """Return the data of the events that are complete with this chunk, their lines joined by LF.

        An event is complete when its empty line ends; one without data is none.

        Raise EventTooLargeError if the present event is too large.
        """
        text = self._unify_line_ends(self._characters.decode(chunk))
        events: list[str] = []
        end = text.rfind("\n\n") + 2
        if not self._size and text.startswith("data: ") and end >= 2:
            found = text[6 : end - 2].split("\n\ndata: ")
            if "\n" not in "".join(found):  # each is one line of data, as nearly all of model servers are
                events, text = found, text[end:]
        # More than one empty line between events means nothing, and each would cost a turn of the loop.
        *lines, rest = (_EMPTY_LINES.sub("\n\n", text) if "\n\n\n" in text else text).split("\n")
        for line in lines:
            self._size += len(line) + 1
            whole = "".join((*self._unfinished_line, line)) if self._unfinished_line else line
            self._unfinished_line.clear()
            if not whole:
                self._size = 0
                if (data := self._take_data()) is not None:
                    events.append(data)
            elif whole[0] != ":":  # a comment otherwise
                self._read_field(whole)
        self._size += len(rest)
        if rest:
            self._unfinished_line.append(rest)
        if self._size > self._max_characters:
            raise EventTooLargeError(f"an event has more than {self._max_characters} characters")
        return events

    def _unify_line_ends(self, text: str) -> str:
        """Return the text with LF for CR and CRLF, also if a CRLF is split over two chunks."""
        if self._after_cr and text:
            text = text.removeprefix("\n")
            self._after_cr = False
        if "\r" in text:
            self._after_cr = text.endswith("\r")
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return text

    def _read_field(self, line: str) -> None:
        """Take over the field of a line if it is data."""
        name, _, value = line.partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))

    def _take_data(self) -> str | None:
        """Return the data of the event that an empty line ends, None if it has none."""
        if not self._data:
            return None
        data, self._data = self._data, []
        return data[0] if len(data) == 1 else "\n".join(data)
