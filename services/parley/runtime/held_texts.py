"""Long texts, such as the documents of debates, held once in a process and named by their digests."""

import hashlib
from collections.abc import Callable
from typing import Final
from weakref import WeakValueDictionary


class HeldText:
    """A text that is held once in this process, as UTF-8. It is dropped with the last reference to it.

    Attributes:
        digest: Stands for the text, 32 hex digits.
        utf8: The text, encoded.
    """

    __slots__ = ("__weakref__", "_counts", "_written", "digest", "utf8")

    def __init__(self, digest: str, utf8: bytes) -> None:
        """Hold an encoded text. `hold_text` returns the one that this process has already."""
        self.digest = digest
        self.utf8 = utf8
        self._counts: dict[Callable[[str], int], int] = {}
        self._written: dict[Callable[[str], bytes], bytes] = {}

    @property
    def text(self) -> str:
        """The text, decoded anew. Do not keep it."""
        return self.utf8.decode()

    def count(self, counter: Callable[[str], int]) -> int:
        """Return what `counter` returns for the text, which is computed once."""
        if counter not in self._counts:
            self._counts[counter] = counter(self.text)
        return self._counts[counter]

    def write(self, writer: Callable[[str], bytes]) -> bytes:
        """Return what `writer` makes of the text. It is computed once, unless it is much longer than the text."""
        written = self._written.get(writer)
        if written is None:
            written = writer(self.text)
            if len(written) <= len(self.utf8) + len(self.utf8) // 4:
                self._written[writer] = written
        return written


_held: Final[WeakValueDictionary[str, HeldText]] = WeakValueDictionary()


def digest_of_text(utf8: bytes) -> str:
    """Return the digest of an encoded text: BLAKE2b of 16 bytes, as 32 hex digits."""
    return hashlib.blake2b(utf8, digest_size=16).hexdigest()


def hold_text(text: str) -> HeldText:
    """Return a text as this process holds it. May be called from threads."""
    utf8 = text.encode()
    digest = digest_of_text(utf8)
    return _held.setdefault(digest, HeldText(digest, utf8))


def find_text(digest: str) -> HeldText | None:
    """Return the text that is held under a digest, None if this process holds no such text."""
    return _held.get(digest)
