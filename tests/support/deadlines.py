"""The time that the calls of a test have."""

from collections.abc import Iterator
from contextlib import contextmanager

from parley.runtime.deadline import set_call_deadline


@contextmanager
def deadline_in(seconds: float) -> Iterator[None]:
    """What runs inside has so many seconds left, as if a call that has them had asked for it."""
    set_call_deadline(seconds)
    try:
        yield
    finally:
        set_call_deadline(None)
