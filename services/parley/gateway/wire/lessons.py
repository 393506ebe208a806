"""What turned out about an endpoint, each for so long: it may be mended, or another one, by then."""

import time
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

__all__ = ["LESSON_SECONDS", "Lessons"]

LESSON_SECONDS: Final = 3600.0
"""How long a lesson holds."""
_KEPT: Final = 4096
"""The newest: callers name models and bring schemas as they like."""

K = TypeVar("K", bound=Hashable)


class Lessons(Generic[K]):
    """Lessons of one sort; each holds for `LESSON_SECONDS` after it was learned last."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._until: dict[K, float] = {}

    def learn(self, lesson: K) -> None:
        """Let it hold from now on."""
        self.forget(lesson)
        self._until[lesson] = self._now() + LESSON_SECONDS
        if len(self._until) > _KEPT:
            self.forget(next(iter(self._until)))

    def forget(self, lesson: K) -> None:
        """Let it hold no more."""
        self._until.pop(lesson, None)

    def holds(self, lesson: K) -> bool:
        """Tell whether it was learned, and not too long ago."""
        until = self._until.get(lesson)
        if until is None:
            return False
        if self._now() < until:
            return True
        del self._until[lesson]
        return False
