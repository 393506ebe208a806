"""A debate's slot of its replica: given back while the debate does nothing but wait, taken again before a call."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

__all__ = ["Slot"]


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
        self.held = True
        self.lacking = asyncio.Event()
        self._is_needed = True
        self._is_free = is_free
        self._given_back = given_back
        self._waits = 0
        self._asks = 0
        self._steps = 0
        self._calls = 0

    @property
    def only_asks(self) -> bool:
        """Whether a person is waited for, and nothing else: no step is on its way, and no time is to pass."""
        return self._asks > 0 and self._asks == self._waits and not self._steps

    @contextmanager
    def waiting(self) -> Generator[None, None, None]:
        """Wait in the block for time to pass; the slot is given back unless a call is in flight."""
        self._waits += 1
        self._give_back()
        try:
            yield
        finally:
            self._waits -= 1

    @contextmanager
    def asking(self) -> Generator[None, None, None]:
        """Wait in the block for a person, as `waiting`."""
        self._asks += 1
        try:
            with self.waiting():
                yield
        finally:
            self._asks -= 1

    @contextmanager
    def step(self) -> Generator[None, None, None]:
        """Be on the way with a step in the block, though no call may be made at times."""
        self._steps += 1
        try:
            yield
        finally:
            self._steps -= 1

    @asynccontextmanager
    async def call(self) -> AsyncGenerator[None, None]:
        """Make a call in the block, with a slot. Where none is free, never get there: `lacking` ends the run."""
        if self._is_needed and not self.held:
            if not self._is_free():
                self.lacking.set()
                await asyncio.Event().wait()
            self.held = True
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            self._give_back()

    def forgo(self) -> None:
        """Do without a slot from now on: what is left to do takes none."""
        self._is_needed = False

    def _give_back(self) -> None:
        if self.held and self._waits and not self._calls:
            self.held = False
            self._given_back()
