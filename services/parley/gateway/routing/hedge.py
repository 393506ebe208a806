"""Hedging: a second route attempt, concurrent with one that stays silent. The first to give a sign of life is used."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from parley.gateway.failures import Failure
from parley.gateway.routing.call import Progress
from parley.gateway.routing.route import LiveRoute
from parley.v1.gateway_pb2 import GenerateCompleted

Outcome = tuple[GenerateCompleted | None, bool]
"""The answer if there is one, and whether the route was asked at all."""

Ask = Callable[[LiveRoute, Progress], Coroutine[Any, Any, Outcome]]


class _Lane:
    """Passes the progress of a route attempt on while this lane leads, and keeps it back until it does."""

    def __init__(self, progress: Progress, *, leads: bool) -> None:
        self._progress = progress
        self._leads = leads
        self._route: str | None = None
        self._pieces: list[str] = []
        self.spoke = asyncio.Event()

    def start_route_attempt(self, route: str) -> None:
        """Note that a route attempt starts; text of earlier ones is void."""
        self._route, self._pieces = route, []
        if self._leads:
            self._progress.start_route_attempt(route)

    def mark_alive(self) -> None:
        """Note that its model is at work."""
        self.spoke.set()
        if self._leads:
            self._progress.mark_alive()

    def add_text(self, piece: str) -> None:
        """Add text of it."""
        self.spoke.set()
        if self._leads:
            self._progress.add_text(piece)
        else:
            self._pieces.append(piece)

    def lead(self) -> None:
        """Pass progress on from now on, and first what was kept back."""
        if not self._leads:
            self._leads = True
            if self._route is not None:
                self._progress.start_route_attempt(self._route)
            for piece in self._pieces:
                self._progress.add_text(piece)

    def follow(self) -> None:
        """Pass progress on no more."""
        self._leads = False


class Hedge:
    """A route attempt, and after `seconds` of silence a concurrent one at another route."""

    def __init__(self, progress: Progress, seconds: float) -> None:
        self._seconds = seconds
        self._lanes = (_Lane(progress, leads=True), _Lane(progress, leads=False))

    async def run(
        self, live: LiveRoute, others: Sequence[LiveRoute], ask: Ask
    ) -> tuple[Outcome, LiveRoute | None]:
        """Return the outcome, and the other route if it was asked too. The loser is stopped before this returns.

        Raises what an attempt raised, if the other one does not answer either.
        """
        tasks = [asyncio.create_task(ask(live, self._lanes[0]))]
        try:
            await self._wait_for_sign(tasks, self._seconds)
            if tasks[0].done() or self._lanes[0].spoke.is_set() or not others:
                return await tasks[0], None
            tasks.append(asyncio.create_task(ask(others[0], self._lanes[1])))
            await self._wait_for_sign(tasks, None)
            return await self._choose_winner(tasks), others[0]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait_for_sign(self, tasks: Sequence["asyncio.Task[Outcome]"], seconds: float | None) -> None:
        """Return when an attempt ended or spoke, or after so many seconds."""
        spoken = [asyncio.create_task(lane.spoke.wait()) for lane in self._lanes]
        try:
            await asyncio.wait((*tasks, *spoken), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in spoken:
                each.cancel()

    async def _choose_winner(self, tasks: Sequence["asyncio.Task[Outcome]"]) -> Outcome:
        """Return what the one that leads answers; if it breaks off, the other, which has run concurrently."""
        first_asked = False
        failure: Failure | None = None
        for number in self._order(tasks):
            if not tasks[number].done() or _has_won(tasks[number]):
                self._listen_to(number)
            try:
                answer, asked = await tasks[number]
            except Failure as failed:
                failure = failure or failed
                continue
            if answer is not None:
                return answer, True
            first_asked = first_asked or (number == 0 and asked)
        if failure is not None:
            raise failure
        return None, first_asked

    def _order(self, tasks: Sequence["asyncio.Task[Outcome]"]) -> tuple[int, int]:
        """Return the lane to use, and the one to use if that fails: first the one that has spoken or answered, else one that has not failed."""
        first, second = tasks
        if self._lanes[0].spoke.is_set() or (first.done() and _has_won(first)):
            return 0, 1
        if self._lanes[1].spoke.is_set() or (second.done() and _has_won(second)):
            return 1, 0
        return (1, 0) if first.done() else (0, 1)

    def _listen_to(self, number: int) -> None:
        self._lanes[1 - number].follow()
        self._lanes[number].lead()


def _has_won(task: "asyncio.Task[Outcome]") -> bool:
    return task.exception() is None and task.result()[0] is not None
