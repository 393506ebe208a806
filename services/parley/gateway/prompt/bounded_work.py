"""How much work one answer may make: all that is done with it takes from one amount."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

CHARACTERS: Final = 32
"""Characters that are compared or written are as much work as one keyword."""
_MAX_WORK: Final = 200_000
"""Keywords, and the entries of their values and of what they are put to, that are looked at for an answer: a second or two, and 50
times what ours need."""


class TooMuchWorkError(Exception):
    """What was done with an answer was given up."""


class InapplicableSchemaError(Exception):
    """A schema's references cannot be followed."""


class _Work:
    """How much work is left."""

    def __init__(self, most: int) -> None:
        self.left = most


_work: ContextVar[_Work] = ContextVar("work that an answer makes")
_ENOUGH: Final = _Work(_MAX_WORK)


@contextmanager
def limit_work(most: int = _MAX_WORK) -> Iterator[None]:
    """Let so much work be taken in the block, and no more than is left of a block around it."""
    given = _work.set(_Work(min(most, _work.get(_ENOUGH).left)))
    try:
        yield
    finally:
        _work.reset(given)


def take_work(amount: int) -> None:
    """Take work of the block around; raise TooMuchWorkError if none is left."""
    work = _work.get()
    work.left -= amount
    if work.left < 0:
        raise TooMuchWorkError("it takes too long to be checked against its schema")
