"""Sealed bytes: a mark, the id of the data key, a nonce, and the ciphertext of AES-256-GCM with its tag.

The mark begins with a byte with which neither a message nor JSON begins, so plain bytes of before stay readable among sealed ones. The
place of the bytes is authenticated with them: they open nowhere else.
"""

import os
import secrets
from operator import ne
from typing import TYPE_CHECKING, Final, Self

from parley.storage.ports import StoreDamagedError

if TYPE_CHECKING:  # imported on use: most systems on one machine encrypt nothing
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MARK: Final = b"\x00\xb1\xe9\x9cPS\xd7\x01"
"""Its last byte is the version of the form."""
KEY_BYTES: Final = 32
_ID_END: Final = len(MARK) + 8
_NONCE_END: Final = _ID_END + 12


def is_sealed(stored: bytes) -> bool:
    """Return whether bytes are sealed. A mark with one wrong byte is a damaged one, not plain bytes."""
    mark = stored[: len(MARK)]
    if mark[:1] != MARK[:1]:  # so begin plain bytes, and there are many of them
        return mark[1:] == MARK[1:]
    return mark == MARK or (len(mark) == len(MARK) and sum(map(ne, mark, MARK)) == 1)


def read_key_id(sealed: bytes) -> bytes:
    """Return the id of the data key that sealed bytes name."""
    return sealed[len(MARK) : _ID_END]


def create_cipher(key: bytes) -> "AESGCM":
    """Return the cipher of a key of 256 bits."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


class DataKey:
    """A data key, ready for use.

    Attributes:
        id: 8 random bytes, by which sealed bytes name it.
    """

    def __init__(self, id_: bytes, key: bytes) -> None:
        self.id = id_
        self._cipher = create_cipher(key)

    @classmethod
    def generate(cls) -> tuple[Self, bytes]:
        """Return a new data key, and the key itself, to be wrapped."""
        key = secrets.token_bytes(KEY_BYTES)
        return cls(secrets.token_bytes(8), key), key

    def seal(self, plain: bytes, place: str) -> bytes:
        """Return bytes sealed for a place."""
        header, nonce = MARK + self.id, os.urandom(12)
        return header + nonce + self._cipher.encrypt(nonce, plain, header + place.encode())

    def open(self, sealed: bytes, place: str) -> bytes:
        """Return the plain bytes of sealed ones. Raise StoreDamagedError if they were changed, or are of another place."""
        from cryptography.exceptions import InvalidTag

        nonce, header = sealed[_ID_END:_NONCE_END], sealed[:_ID_END]
        try:
            return self._cipher.decrypt(nonce, sealed[_NONCE_END:], header + place.encode())
        except (InvalidTag, ValueError):
            raise StoreDamagedError(
                f"{place}: the stored bytes were changed, or are of another place; restore them from a backup"
            ) from None
