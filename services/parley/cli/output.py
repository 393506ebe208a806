"""Results on stdout and in files."""

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from parley.cli.failures import GENERAL, INVALID_ARGUMENTS, CommandError
from parley.cli.state import as_json
from parley.client import Debate
from parley.v1.orchestrator_pb2 import Solution

__all__ = ["check_target", "debate_json", "report_path", "solution_text", "write"]


def solution_text(solution: Solution) -> str:
    """The answer as plain text; parts that are empty are left out."""
    parts = [solution.description.strip()]
    if solution.implementation.strip():
        parts.append(f"Implementation\n{solution.implementation.strip()}")
    unmet = [f"{each.text}{' (a must)' if each.hard else ''}" for each in solution.unfulfilled_requirements]
    parts += [
        _listed("Trade-offs", solution.tradeoffs),
        _listed("Recommendations", solution.recommendations),
        _listed("Unfulfilled requirements", unmet),
        _listed("Open questions", solution.open_questions),
        f"Confidence: {solution.confidence} of 100",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _listed(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *(f"- {line}" for line in lines)]) if lines else ""


def debate_json(debate: Debate) -> str:
    """The whole state as JSON text."""
    return json.dumps(as_json(debate), indent=2, ensure_ascii=False) + "\n"


def report_path(path: Path) -> Path:
    """The path with `.md` at its end."""
    return path if path.suffix.lower() == ".md" else path.with_name(f"{path.name}.md")


def check_target(option: str, path: Path) -> None:
    """Refuses a path that `write` could not write; raises CommandError. Nothing is made."""
    try:
        problem = _obstacle(path)
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
    if problem is not None:
        raise CommandError(f"{option} {path}: {problem}", INVALID_ARGUMENTS)


def _obstacle(path: Path) -> str | None:
    if path.is_dir():
        return "is a folder; name a file in it"
    if path.exists() and not path.is_file():  # a device or a pipe
        return None if os.access(path, os.W_OK) else "cannot be written: no permission"
    parents = path.resolve().parents
    folder = next(each for each in parents if each.exists())
    if not folder.is_dir():
        return f"cannot be written: {folder} is not a folder"
    return None if os.access(folder, os.W_OK | os.X_OK) else f"cannot be written: no permission in {folder}"


def write(path: Path, text: str) -> None:
    """Writes the whole file or leaves what was there; makes parent folders; raises CommandError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(None, "Is a directory")
        if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
            path.write_text(text, "utf-8")
            return
        _replace(path.resolve(), text)
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror or error}", GENERAL) from None


def _replace(path: Path, text: str) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:  # noqa: PTH123 (a descriptor)
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    present = os.umask(0)
    os.umask(present)
    return present
