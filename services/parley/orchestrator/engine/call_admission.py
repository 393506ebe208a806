"""Whether a debate may make a call now: its gate must be open (it is not paused), and it must have a slot of its replica."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager


class Gate:
    """Stops new calls while it is closed, but not calls in flight. Open at first. A call is made inside of `async with gate`."""

    def __init__(self) -> None:
        """Start open, with nothing in flight."""
        self._open = asyncio.Event()
        self._open.set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._inside = 0

    @property
    def is_empty(self) -> bool:
        """Whether no call is in flight."""
        return self._inside == 0

    def close(self) -> None:
        """Stop new calls."""
        self._open.clear()

    def open(self) -> None:
        """Admit calls again."""
        self._open.set()

    async def wait_until_empty(self) -> None:
        """Wait until no call is in flight."""
        await self._empty.wait()

    async def __aenter__(self) -> None:
        """Wait until the gate is open, then count a call in flight until the block ends."""
        await self._open.wait()
        self._inside += 1
        self._empty.clear()

    async def __aexit__(self, *_: object) -> None:
        """Count the call no more."""
        self._inside -= 1
        if self._inside == 0:
            self._empty.set()


class Slot:
    """The slot of one debate: freed while the debate only waits, taken again before a call. Held at first.

    A call is made inside of `async with slot`.

    Attributes:
        is_held: Whether the debate has its slot. Without one it makes no call.
        revoked: Set once a call needed a slot and none was free.
    """

    def __init__(
        self, is_free: Callable[[], bool] = lambda: True, on_freed: Callable[[], None] = lambda: None
    ) -> None:
        """Hold a slot. `is_free` returns whether one may be taken now; `on_freed` is called if this one becomes free."""
        self.is_held = True
        self.revoked = asyncio.Event()
        self._is_needed = True
        self._is_free = is_free
        self._on_freed = on_freed
        self._waits = 0
        self._asks = 0
        self._steps = 0
        self._calls = 0

    @property
    def only_waits_for_person(self) -> bool:
        """Whether the debate waits for a person and nothing else: no step and no timer."""
        return self._asks > 0 and self._asks == self._waits and not self._steps

    @contextmanager
    def free_while_waiting(self) -> Generator[None, None, None]:
        """Free the slot while the block waits, unless a call is in flight."""
        self._waits += 1
        self._free_if_waiting()
        try:
            yield
        finally:
            self._waits -= 1

    @contextmanager
    def free_while_asking(self) -> Generator[None, None, None]:
        """Free the slot, as `free_while_waiting`, while the block waits for a person."""
        self._asks += 1
        try:
            with self.free_while_waiting():
                yield
        finally:
            self._asks -= 1

    @contextmanager
    def track_step(self) -> Generator[None, None, None]:
        """Count a step while the block runs, also while it makes no call."""
        self._steps += 1
        try:
            yield
        finally:
            self._steps -= 1

    async def __aenter__(self) -> None:
        """Hold a slot until the block ends. If none is free, set `revoked` and wait for ever: that ends the run."""
        if self._is_needed and not self.is_held:
            if not self._is_free():
                self.revoked.set()
                await asyncio.Event().wait()
            self.is_held = True
        self._calls += 1

    async def __aexit__(self, *_: object) -> None:
        """Count the call no more, and free the slot if the debate only waits."""
        self._calls -= 1
        self._free_if_waiting()

    def release(self) -> None:
        """Need no slot from now on."""
        self._is_needed = False

    def _free_if_waiting(self) -> None:
        if self.is_held and self._waits and not self._calls:
            self.is_held = False
            self._on_freed()
