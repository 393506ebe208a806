"""How much work may be made of an answer: it and its schema are somebody else's, and together can be written so that it never ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

__all__ = ["CHARACTERS", "TooMuchWorkError", "bounded_work", "take_work"]

CHARACTERS: Final = 32
"""Characters that are compared or written are as much work as one keyword."""
_MAX_WORK: Final = 200_000
"""Keywords, and the entries of their values and of what they are put to, that are looked at for an answer: a second or two, and 50
times what ours need."""


class TooMuchWorkError(Exception):
    """What was done with an answer was given up."""


class _Work:
    """How much work is left."""

    def __init__(self) -> None:
        self.left = _MAX_WORK


_work: ContextVar[_Work] = ContextVar("work that an answer makes")


@contextmanager
def bounded_work() -> Iterator[None]:
    """Let so much work be taken in the block."""
    given = _work.set(_Work())
    try:
        yield
    finally:
        _work.reset(given)


def take_work(amount: int) -> None:
    """Take work of the block around; raise TooMuchWorkError where none is left."""
    work = _work.get()
    work.left -= amount
    if work.left < 0:
        raise TooMuchWorkError("it takes too long to be checked against its schema")
