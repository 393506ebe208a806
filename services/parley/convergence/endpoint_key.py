"""The key of the embeddings endpoint, in a variable or in a file that may change while the service runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from parley.runtime.watched_files import WatchedFiles

__all__ = ["key_in_file"]

_MAX_BYTES: Final = 16 * 1024


def key_in_file(path: Path) -> Callable[[], str]:
    """Return what reads the key that a file holds now, without a line end after it.

    Raises:
        ConfigurationError: the file cannot be read or holds no key. Later its last good key counts.
    """
    files = WatchedFiles("PARLEY_EMBEDDING_API_KEY_FILE", path, check=lambda held: _check(path, held[0]))
    return lambda: files.contents()[0].decode("ascii").strip()


def _check(path: Path, held: bytes) -> None:
    key = held.strip()
    if not key:
        raise ValueError(f"{path} holds no key")
    if len(held) > _MAX_BYTES or not (held.isascii() and key.decode("ascii").isprintable()):
        raise ValueError(f"{path} holds what is no key")
