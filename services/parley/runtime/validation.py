"""Validation of requests: all bad fields are reported together."""

import re
from typing import Final

from parley.runtime.errors import FieldViolation, invalid_argument

AGENT_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
DEBATE_ID: Final = re.compile(r"deb-\d{8}-\d{6}-[a-z2-7]{8}")
CHECKPOINT_KEY: Final = re.compile(r"(?=.{1,256}\Z)[a-z0-9._-]+(/[a-z0-9._-]+)*")
NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
"""An id that its owner chose: of a request, or of a debate outside the orchestrator."""
REQUEST_ID: Final = NAME
CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
MAX_PATH_CHARACTERS: Final = 1024

_DEFAULT_PAGE: Final = 50
_MAX_PAGE: Final = 200


class Violations:
    """The bad fields of one request."""

    def __init__(self) -> None:
        """Start with none."""
        self._found: list[FieldViolation] = []

    def add(self, field: str, description: str) -> None:
        """Add a bad field."""
        self._found.append(FieldViolation(field, description))

    def check(self, *, that: bool, field: str, otherwise: str) -> None:
        """Add a bad field unless `that` is true."""
        if not that:
            self.add(field, otherwise)

    def check_range(self, field: str, value: float, minimum: float, maximum: float) -> None:
        """Add a field whose number is out of its range."""
        if not minimum <= value <= maximum:
            self.add(field, f"must be {minimum} to {maximum}")

    def check_setting(self, field: str, value: int, maximum: int) -> None:
        """Add a field whose number is neither 1 to `maximum` nor 0, which means the default."""
        if not 0 <= value <= maximum:
            self.add(field, f"is {value}, must be 1 to {maximum}, or 0 for the default")

    def page_size(self, asked: int) -> int:
        """Return the page size for a request: 200 at most, 50 if it is 0; add a negative one as a bad field."""
        self.check(that=asked >= 0, field="page_size", otherwise="must not be negative")
        return min(asked or _DEFAULT_PAGE, _MAX_PAGE)

    def check_text(self, field: str, text: str, *, max_characters: int) -> None:
        """Add a field whose text is blank or too long."""
        if not text.strip():
            self.add(field, "is blank")
        elif len(text) > max_characters:
            self.add(field, f"has {len(text)} characters, at most {max_characters} are allowed")

    def check_stored_text(self, field: str, text: str, *, max_bytes: int) -> None:
        """Add a field whose text is blank, too long in UTF-8, or contains a NUL character."""
        if not text.strip():
            self.add(field, "is blank")
        elif len(text.encode()) > max_bytes:
            self.add(field, f"is longer than {max_bytes // 1024} KiB")
        elif "\0" in text:
            self.add(field, "contains a NUL character")

    def check_agent_count(self, field: str, count: int, *, minimum: int, maximum: int) -> None:
        """Add a field whose list of agents is too short or too long."""
        self.check(
            that=minimum <= count <= maximum,
            field=field,
            otherwise=f"has {count} agents, {minimum} to {maximum} are allowed",
        )

    def check_new(self, field: str, name: str, seen: set[str]) -> None:
        """Add a field whose name was seen before, and add the name to those seen."""
        self.check(that=name not in seen, field=field, otherwise=f"{name!r} is there twice")
        seen.add(name)

    def refuse(self) -> None:
        """Raise ParleyError if any field is bad: INVALID_ARGUMENT with all of them."""
        if self._found:
            raise invalid_argument(self._found)
