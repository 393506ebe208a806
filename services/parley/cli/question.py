"""The question, from the command line or from a file."""

from pathlib import Path

from parley.cli.failures import GENERAL, INVALID_ARGUMENTS, CommandError

__all__ = ["question_of"]

_OPTION = "--problem-description"


def question_of(text: str | None, path: Path | None) -> str:
    """Exactly one of both: the text is trimmed, the file's text is kept as written."""
    if text is not None and path is not None:
        raise CommandError(f"give a question or {_OPTION} {path}, not both", INVALID_ARGUMENTS)
    if path is not None:
        return _read(path)
    if text is None:
        raise CommandError(f"give a question, or a file that holds it with {_OPTION} FILE", INVALID_ARGUMENTS)
    if not text.strip():
        raise CommandError(
            f"the question is empty; give one, or a file with {_OPTION} FILE", INVALID_ARGUMENTS
        )
    return text.strip()


def _read(path: Path) -> str:
    try:
        if not path.exists():
            raise CommandError(f"{_OPTION} {path}: there is no such file", INVALID_ARGUMENTS)
        if not path.is_file():
            raise CommandError(f"{_OPTION} {path}: is not a file", INVALID_ARGUMENTS)
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        raise CommandError(f"{_OPTION} {path}: is not UTF-8 text", INVALID_ARGUMENTS) from None
    except OSError as error:
        raise CommandError(f"{_OPTION} {path}: cannot be read: {error.strerror or error}", GENERAL) from None
    if not text.strip():
        raise CommandError(f"{_OPTION} {path}: is empty", INVALID_ARGUMENTS)
    return text
