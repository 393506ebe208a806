"""The version of Parley stands in pyproject.toml; other files repeat it: `python -m tests.support.versions 0.2.0` sets it in all of them.

`make version TO=0.2.0` does so. `make check` runs this without a version, which writes nothing and fails if a file says another one.
"""

import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_SOURCE: Final = "pyproject.toml"
_NUMBER: Final = r"\d+\.\d+\.\d+(?:[a-z-][\w.]*)?"
PLACES: Final = {
    _SOURCE: (rf'(?m)^(version = ")({_NUMBER})(")',),
    "charts/parley/Chart.yaml": (rf"(?m)^(version: )({_NUMBER})()$", rf'(?m)^(appVersion: ")({_NUMBER})(")'),
    "docker/Dockerfile": (rf"(--tag parley-gateway:)({_NUMBER})( )", rf"(ARG VERSION=)({_NUMBER})()"),
    "docker/compose.yaml": (rf"(image: parley-[a-z]+:)({_NUMBER})()",),
    "docker/README.md": (rf"(--tag parley-[a-z]+:)({_NUMBER})( )",),
    "docs/guides/install.md": (rf"(/?parley-\$service:)({_NUMBER})()",),
}
"""How each file writes it: what stands before it, the version, what stands after it."""


def read_version(root: Path = ROOT) -> str:
    """Return the version."""
    found = re.search(PLACES[_SOURCE][0], (root / _SOURCE).read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{_SOURCE} states no version")
    return found[2]


def find_other_versions(root: Path = ROOT) -> list[str]:
    """Return a line for each place that says another version than pyproject.toml, or none at all."""
    version, wrong = read_version(root), []
    for name, patterns in PLACES.items():
        text = (root / name).read_text(encoding="utf-8")
        for pattern in patterns:
            said = {found[2] for found in re.finditer(pattern, text)}
            if said != {version}:
                wrong.append(
                    f"{name} says {', '.join(sorted(said)) or 'no version'}, and {_SOURCE} {version}: run make version TO={version}"
                )
    return wrong


def set_version(version: str, root: Path = ROOT) -> None:
    """Write the version wherever it stands. Raise ValueError if it is none."""
    if not re.fullmatch(_NUMBER, version):
        raise ValueError(f"{version!r} is no version: write MAJOR.MINOR.PATCH, such as 0.2.0")
    for name, patterns in PLACES.items():
        text = (root / name).read_text(encoding="utf-8")
        for pattern in patterns:
            text = re.sub(pattern, rf"\g<1>{version}\g<3>", text)
        (root / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    try:
        if len(sys.argv) > 1:
            set_version(sys.argv[1])
    except ValueError as error:
        sys.exit(str(error))
    sys.exit("\n".join(find_other_versions()) or None)
