"""A model that is loaded when it is first used, and released once nobody has used it for a while."""

import asyncio
import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Final, Generic, TypeVar

from parley.runtime.clock import Clock

IDLE_SECONDS: Final = 300.0
"""Since the last use of a model, after which it is released. To load it again takes half a second, an encoder some seconds."""
_LOOK_SECONDS: Final = 30.0

T = TypeVar("T")


class HeldModel(Generic[T]):
    """A model for several threads."""

    def __init__(self, load: Callable[[], T], clock: Clock) -> None:
        self._load = load
        self._clock = clock
        self._model: T | None = None
        self._users = 0
        self._used_at = 0.0
        self._lock = Lock()

    @contextmanager
    def use(self) -> Iterator[T]:
        """Hold the model as long as the block lasts; load it on this thread if it is not there. Raise what `load` raises."""
        with self._lock:
            if self._model is None:
                self._model = self._load()
            model = self._model
            self._users += 1
        try:
            yield model
        finally:
            with self._lock:
                self._users -= 1
                self._used_at = self._clock.monotonic()

    def release_if_idle(self) -> None:
        """Release the model if it has not been used for `IDLE_SECONDS`. Waits while it is loaded."""
        with self._lock:
            is_used = self._users or self._clock.monotonic() - self._used_at < IDLE_SECONDS
            if self._model is not None and not is_used:
                self._model = None
                _return_freed_memory()


def _return_freed_memory() -> None:
    """Let the C library give back what is free: of two embedding models glibc would keep 100 MB."""
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


async def release_idle_models(models: Sequence[HeldModel[T]], clock: Clock) -> None:
    """Release each model once it is idle; forever."""
    while True:
        await clock.sleep(_LOOK_SECONDS)
        for each in models:
            await asyncio.to_thread(each.release_if_idle)
