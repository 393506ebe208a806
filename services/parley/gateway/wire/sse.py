"""A decoder of server-sent events, as the WHATWG HTML standard defines them (section 9.2, "event stream").

It reads the bytes of a stream in chunks of any size, and does no I/O.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_EMPTY_LINES: Final = re.compile(r"\n{3,}")
_DIGITS: Final = re.compile("[0-9]{1,15}")


class EventTooLargeError(ValueError):
    """An event, finished or not, has more characters than the decoder accepts."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """An event: its data lines joined by LF, its type, and the last event id of the stream so far."""

    data: str
    type: str = "message"
    id: str = ""


class EventDecoder:
    """Decodes one stream. An event may have at most `max_characters`, counted with its comments and field names.

    `retry_milliseconds` is the reconnection time that the stream asked for last; None: it asked for none.
    """

    def __init__(self, max_characters: int) -> None:
        self.retry_milliseconds: int | None = None
        self._max_characters = max_characters
        self._characters = codecs.getincrementaldecoder("utf-8-sig")(
            "replace"
        )  # drops a leading byte order mark
        self._after_cr = False
        self._unfinished_line: list[str] = []  # joined at the line's end: a large event comes in many chunks
        self._size = 0
        self._data: list[str] = []
        self._type = ""
        self._id = ""

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that are complete with this chunk. An event is complete when its empty line ends.

        Raise EventTooLargeError if the present event is too large.
        """
        text = self._unify_line_ends(self._characters.decode(chunk))
        # More than one empty line between events means nothing, and each would cost a turn of the loop.
        *lines, rest = _EMPTY_LINES.sub("\n\n", text).split("\n")
        for line in lines:
            self._size += len(line) + 1
            whole = "".join((*self._unfinished_line, line)) if self._unfinished_line else line
            self._unfinished_line.clear()
            if not whole:
                self._size = 0
                if (event := self._take_event()) is not None:
                    yield event
            elif whole[0] != ":":  # a comment otherwise
                self._read_field(whole)
        self._size += len(rest)
        if rest:
            self._unfinished_line.append(rest)
        if self._size > self._max_characters:
            raise EventTooLargeError(f"an event has more than {self._max_characters} characters")

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
        """Take over the field of a line; unknown fields are ignored."""
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self._data.append(value)
            case "event":
                self._type = value
            case "id" if "\0" not in value:
                self._id = value
            case "retry" if _DIGITS.fullmatch(value):
                self.retry_milliseconds = int(value)

    def _take_event(self) -> ServerSentEvent | None:
        """Return the event that an empty line ends, None if it has no data."""
        data, self._data = self._data, []
        event_type, self._type = self._type, ""
        if not data:
            return None
        return ServerSentEvent("\n".join(data), event_type or "message", self._id)
