"""Files that hold a key and nothing else, so that it can be changed without a restart."""

from pathlib import Path
from typing import Final

from parley.runtime.errors import ConfigurationError

__all__ = ["read_key"]

_MAX_BYTES: Final = 16 * 1024


def read_key(path: Path) -> str:
    """Return the key that a file holds, without a line end after it. Raises ConfigurationError, which never repeats it."""
    try:
        if not path.is_file():  # a pipe would have us wait
            raise ConfigurationError(f"{path}: is no file; it should hold the key")
        with path.open("rb") as file:
            held = file.read(_MAX_BYTES + 1)
        key = held.decode("ascii").strip()
    except OSError as error:
        raise ConfigurationError(f"{path}: the key cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: holds characters that no key has") from None
    if not key or len(held) > _MAX_BYTES:
        raise ConfigurationError(f"{path}: {'is too long for a key' if key else 'holds no key'}")
    return key
