"""Hedging: a second try beside one that stays silent. The first to say something is the one that is listened to."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from parley.gateway.call import Answer, Progress
from parley.gateway.routes import LiveRoute

__all__ = ["Outcome", "Race"]

Outcome = tuple[Answer | None, bool]
"""The answer if there is one, and whether the route was asked at all."""

Trying = Callable[[LiveRoute, Progress], Coroutine[Any, Any, Outcome]]


class _Lane:
    """Passes a try's progress on while it leads, and keeps it back until it does."""

    def __init__(self, progress: Progress, *, leads: bool) -> None:
        self._progress = progress
        self._leads = leads
        self._route: str | None = None
        self._pieces: list[str] = []
        self.spoke = asyncio.Event()

    def attempt_started(self, route: str) -> None:
        """A try at a route begins; text of earlier ones is void."""
        self._route, self._pieces = route, []
        if self._leads:
            self._progress.attempt_started(route)

    def text(self, piece: str) -> None:
        """More text of it."""
        self.spoke.set()
        if self._leads:
            self._progress.text(piece)
        else:
            self._pieces.append(piece)

    def lead(self) -> None:
        """Is listened to from now on, and says what was kept back."""
        if not self._leads:
            self._leads = True
            if self._route is not None:
                self._progress.attempt_started(self._route)
            for piece in self._pieces:
                self._progress.text(piece)

    def follow(self) -> None:
        """Is not listened to any more."""
        self._leads = False


class Race:
    """A try, and after `seconds` of silence another beside it."""

    def __init__(self, progress: Progress, seconds: float) -> None:
        self._seconds = seconds
        self._lanes = (_Lane(progress, leads=True), _Lane(progress, leads=False))

    async def run(
        self, live: LiveRoute, others: Sequence[LiveRoute], trying: Trying
    ) -> tuple[Outcome, LiveRoute | None]:
        """The outcome, and the other route if it was asked too. The loser is stopped before this returns.

        Raises what the first try raised, if it did.
        """
        tasks = [asyncio.create_task(trying(live, self._lanes[0]))]
        try:
            await self._said_something(tasks, self._seconds)
            if tasks[0].done() or self._lanes[0].spoke.is_set() or not others:
                return await tasks[0], None
            tasks.append(asyncio.create_task(trying(others[0], self._lanes[1])))
            await self._said_something(tasks, None)
            return await self._winner(tasks), others[0]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _said_something(self, tasks: Sequence["asyncio.Task[Outcome]"], seconds: float | None) -> None:
        """Returns when a try ended or spoke, or after so many seconds."""
        spoken = [asyncio.create_task(lane.spoke.wait()) for lane in self._lanes]
        try:
            await asyncio.wait((*tasks, *spoken), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in spoken:
                each.cancel()

    async def _winner(self, tasks: Sequence["asyncio.Task[Outcome]"]) -> Outcome:
        first, second = tasks
        if self._lanes[0].spoke.is_set() or (first.done() and _won(first)):
            return await first
        if self._lanes[1].spoke.is_set() or (second.done() and _won(second)):
            return await self._second(second)
        if first.done():  # it failed before either said a word
            await first
            return await self._second(second)
        return await first

    async def _second(self, task: "asyncio.Task[Outcome]") -> Outcome:
        self._lanes[0].follow()
        self._lanes[1].lead()
        return await task


def _won(task: "asyncio.Task[Outcome]") -> bool:
    return task.exception() is None and task.result()[0] is not None
