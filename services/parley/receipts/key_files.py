"""The key files of a system: those that its operator names, or the one that a system on one machine makes for itself."""

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from parley.receipts.errors import KeyFileError
from parley.receipts.keys import MAX_KEYS, KeyRing, create_ring, parse_pem
from parley.runtime.errors import ConfigurationError

OWN_KEY: Final = "receipt-key.pem"
"""The file, in its data folder, of the key that a system makes for itself."""


def load_ring(files: Sequence[str], revoked: Sequence[str]) -> KeyRing:
    """Return the ring of the files of PARLEY_RECEIPT_KEYS. Raise ConfigurationError if they cannot be used together."""
    if len(files) > MAX_KEYS:
        raise ConfigurationError(f"PARLEY_RECEIPT_KEYS: must be at most {MAX_KEYS} files")
    keys = []
    for each in files:
        try:
            keys.append(parse_pem(Path(each).read_bytes()))
        except OSError as error:
            raise ConfigurationError(
                f"PARLEY_RECEIPT_KEYS: {each} cannot be read: {error.strerror or error}"
            ) from None
        except KeyFileError as error:
            raise ConfigurationError(f"PARLEY_RECEIPT_KEYS: {each}: {error}") from None
    try:
        return create_ring(keys, revoked)
    except KeyFileError as error:
        raise ConfigurationError(f"PARLEY_RECEIPT_KEYS: {error}") from None


def load_own_ring(folder: Path) -> KeyRing:
    """Return the ring of the key that the system of a folder made for itself; create the key if there is none.

    Raises:
        OSError: the file cannot be read or created.
        KeyFileError: it holds no private key.
    """
    path = folder / OWN_KEY
    if not path.exists():
        _create(path)
    return create_ring([parse_pem(path.read_bytes())], machine_only=True)


def _create(path: Path) -> None:
    """Create the file of a new key, whole and for its owner alone, unless another call or process was faster."""
    content = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # with 0600
    temporary = Path(name)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 (a descriptor)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # Never over a key that is there: it may have signed already.
        with suppress(FileExistsError):
            path.hardlink_to(temporary)
    finally:
        temporary.unlink(missing_ok=True)
