"""The messages of one direction of a call."""

from collections import deque
from typing import Final

from parley.runtime.direct.waiters import Waiters

WINDOW_BYTES: Final = 64 * 1024
"""What may lie unread before a writer waits: the window of a gRPC stream."""
_EACH: Final = 64
"""What a message takes beside its bytes, so that empty ones are bounded too."""


class MessagePipe(Waiters):
    """Serialized messages in order. A writer waits while its reader is behind.

    Serialized, since then no side sees what the other one changes later, and sizes are known: that costs microseconds.

    Attributes:
        is_closed: Whether it takes no further message.
    """

    __slots__ = ("_messages", "_size", "is_closed")

    def __init__(self) -> None:
        super().__init__()
        self._messages: deque[bytes] = deque()
        self._size = 0
        self.is_closed = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing lies unread."""
        return not self._messages

    def put(self, message: bytes) -> None:
        """Add a message, whether or not there is room."""
        if not self.is_closed:
            self._messages.append(message)
            self._size += len(message) + _EACH
            self.wake()

    async def write(self, message: bytes) -> None:
        """Add a message, and wait while more than WINDOW_BYTES lie unread."""
        self.put(message)
        while self._size > WINDOW_BYTES and not self.is_closed:
            await self.wait()

    async def read(self) -> bytes | None:
        """Wait for the next message and return it; None: there is no further one."""
        while (message := self.take()) is None and not self.is_closed:
            await self.wait()
        return message

    def take(self) -> bytes | None:
        """Return the next message, or None if nothing lies unread."""
        if not self._messages:
            return None
        message = self._messages.popleft()
        self._size -= len(message) + _EACH
        self.wake()
        return message

    def close(self) -> None:
        """Take no further message; those that are there can be read."""
        self.is_closed = True
        self.wake()

    def cut(self) -> None:
        """Drop what lies unread, and close."""
        self._messages.clear()
        self._size = 0
        self.close()
