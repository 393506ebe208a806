"""Whether a debate may make a call now: its gate is closed while it is paused, its slot is one of its replica's."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

__all__ = ["Gate", "Slot"]


class Gate:
    """Open at first. Closing it stops new calls, not those in flight."""

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
        """Let no new call through."""
        self._open.clear()

    def open(self) -> None:
        """Let calls through again."""
        self._open.set()

    async def wait_until_empty(self) -> None:
        """Wait until no call is in flight."""
        await self._empty.wait()

    @asynccontextmanager
    async def pass_through(self) -> AsyncGenerator[None, None]:
        """Wait until the gate is open, then count as in flight until the block is left."""
        await self._open.wait()
        self._inside += 1
        self._empty.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if self._inside == 0:
                self._empty.set()


class Slot:
    """The slot of one debate, held at first.

    Attributes:
        held: Whether the debate has it. One that has none makes no call.
        lacking: Set once a call was to be made, and no slot was free for it.
    """

    def __init__(
        self, is_free: Callable[[], bool] = lambda: True, given_back: Callable[[], None] = lambda: None
    ) -> None:
        """Hold a slot. `is_free` tells whether one may be taken now; `given_back` hears that one is free."""
        self.is_held = True
        self.revoked = asyncio.Event()
        self._is_needed = True
        self._is_free = is_free
        self._on_freed = given_back
        self._waits = 0
        self._asks = 0
        self._steps = 0
        self._calls = 0

    @property
    def only_waits_for_person(self) -> bool:
        """Whether a person is waited for, and nothing else: no step is on its way, and no time is to pass."""
        return self._asks > 0 and self._asks == self._waits and not self._steps

    @contextmanager
    def free_while_waiting(self) -> Generator[None, None, None]:
        """Wait in the block for time to pass; the slot is given back unless a call is in flight."""
        self._waits += 1
        self._free_if_waiting()
        try:
            yield
        finally:
            self._waits -= 1

    @contextmanager
    def free_while_asking(self) -> Generator[None, None, None]:
        """Wait in the block for a person, as `free_while_waiting`."""
        self._asks += 1
        try:
            with self.free_while_waiting():
                yield
        finally:
            self._asks -= 1

    @contextmanager
    def track_step(self) -> Generator[None, None, None]:
        """Be on the way with a step in the block, though no call may be made at times."""
        self._steps += 1
        try:
            yield
        finally:
            self._steps -= 1

    @asynccontextmanager
    async def hold_for_call(self) -> AsyncGenerator[None, None]:
        """Make a call in the block, with a slot. Where none is free, never get there: `revoked` ends the run."""
        if self._is_needed and not self.is_held:
            if not self._is_free():
                self.revoked.set()
                await asyncio.Event().wait()
            self.is_held = True
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            self._free_if_waiting()

    def release(self) -> None:
        """Do without a slot from now on: what is left to do takes none."""
        self._is_needed = False

    def _free_if_waiting(self) -> None:
        if self.is_held and self._waits and not self._calls:
            self.is_held = False
            self._on_freed()
