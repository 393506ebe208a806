"""Where the weights of a small model lie on this machine, and whether they are what they should be."""

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from parley.gateway.local_model.catalogue import Packaged, Parts, SmallModel

__all__ = ["cached_file", "find_weights", "sha256_of"]

_CHUNK_BYTES = 1024 * 1024


def find_weights(model: SmallModel) -> Path | None:
    """Return the file of a model's weights, None where it is not on this machine."""
    if isinstance(model.weights, Parts):
        file = cached_file(model.weights)
        return file if file.is_file() else None
    return _packaged(model.weights)


def cached_file(weights: Parts) -> Path:
    """Return where weights lie that were put together on this machine: in the cache folder of this person."""
    cache = os.environ.get("XDG_CACHE_HOME")
    folder = Path(cache) if cache and Path(cache).is_absolute() else Path.home() / ".cache"
    return folder / "parley" / "models" / weights.file


def sha256_of(file: BinaryIO) -> str:
    """Return the SHA-256 of what is left of a file, as hex digits."""
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


def _packaged(weights: Packaged) -> Path | None:
    # The package is looked up and not imported: importing it would need its own dependencies.
    spec = find_spec(weights.package)
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted(Path(spec.origin).parent.glob("*.gguf"))), None)
