"""Slots of a route: how many calls at a time, how many requests and tokens a minute, and whose turn it is.

Debates take turns: one with a hundred calls waiting gets every second slot while another waits with one.
"""

import asyncio
from collections import deque
from typing import Final, Self

from msgspec import Struct

_BURST_SECONDS: Final = 10.0
"""An idle route may be asked at once as often as it may in this time."""
_MAX_REST_SECONDS: Final = 300.0
"""No endpoint's word keeps a route from being asked for longer than this."""


class Limits(Struct, frozen=True):
    """What a route takes from this replica; 0: no bound."""

    concurrency: int = 0
    requests_per_minute: int = 0
    tokens_per_minute: int = 0


class NoSlot(Exception):  # noqa: N818 (an outcome, not an error of this program)
    """No slot came in the time that its caller would wait for one."""


class Slot:
    """A slot that was given, until the end of a `with` block; `tokens` is what it was given for, and what it took in the end."""

    def __init__(self, queue: "RouteQueue", tokens: int) -> None:
        self.tokens = tokens
        self._queue = queue
        self._given_for = tokens

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._queue.free(self.tokens - self._given_for)


class RouteQueue:
    """The slots of one route at this replica."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._requests = _Bucket(limits.requests_per_minute)
        self._tokens = _Bucket(limits.tokens_per_minute)
        self._waiting: dict[str, deque[tuple[int, asyncio.Future[None]]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._rests_until = 0.0
        self.in_flight = 0

    @property
    def waiting(self) -> int:
        """How many calls wait for a slot."""
        return sum(len(queue) for queue in self._waiting.values())

    @property
    def rests_until(self) -> float:
        """Until when, in the loop's time, the endpoint asked to be left alone."""
        return self._rests_until

    def rest(self, seconds: float) -> None:
        """Note that the endpoint asked to be left alone; five minutes of that are granted at most."""
        until = asyncio.get_running_loop().time() + min(seconds, _MAX_REST_SECONDS)
        self._rests_until = max(self._rests_until, until)

    def change(self, limits: Limits) -> None:
        """Go by other limits from now on; who has a slot or waits for one keeps it, and so does what was used."""
        self._limits = limits
        self._requests.change(limits.requests_per_minute)
        self._tokens.change(limits.tokens_per_minute)
        self._next()

    async def take_slot(self, debate: str, tokens: int, within: float | None = None) -> Slot:
        """Return a slot for a call of a debate that takes about so many tokens, as soon as it is its turn.

        Raise NoSlot if that is not within so many seconds, at once if that is certain.
        """
        if self._waiting or self._seconds_until_free(tokens):
            if within is not None and self._seconds_until_free(tokens) > within:
                raise NoSlot
            try:
                async with asyncio.timeout(within):
                    await self._wait_for_turn(debate, tokens)
            except TimeoutError:
                raise NoSlot from None
        else:
            self._take(tokens)
        return Slot(self, tokens)

    def free(self, more_tokens: int) -> None:
        """Take a slot back whose call took so many tokens more than the slot was given for."""
        self.in_flight -= 1
        self._tokens.take(more_tokens)
        self._next()

    async def _wait_for_turn(self, debate: str, tokens: int) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(debate, deque()).append((tokens, turn))
        self._next()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # its turn came at the same moment
                self.in_flight -= 1
                self._requests.take(-1)
                self._tokens.take(-tokens)
            turn.cancel()
            self._next()
            raise

    def _next(self) -> None:
        """Give out what slots there are, a debate at a time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            debate, queue = next(iter(self._waiting.items()))
            while queue and queue[0][1].done():
                queue.popleft()
            if not queue:
                del self._waiting[debate]
                continue
            tokens, turn = queue[0]
            seconds = self._seconds_until_free(tokens)
            if seconds:
                if seconds > 0:
                    self._timer = asyncio.get_running_loop().call_later(seconds, self._next)
                return
            queue.popleft()
            del self._waiting[debate]
            if queue:
                self._waiting[debate] = queue  # behind all the others
            self._take(tokens)
            turn.set_result(None)

    def _seconds_until_free(self, tokens: int) -> float:
        """Return 0.0 if there is a slot now, below 0 if one only comes when a call ends."""
        if self._limits.concurrency and self.in_flight >= self._limits.concurrency:
            return -1.0
        return max(self._requests.seconds_until(1), self._tokens.seconds_until(tokens))

    def _take(self, tokens: int) -> None:
        self.in_flight += 1
        self._requests.take(1)
        self._tokens.take(tokens)


class _Bucket:
    """What may be used a minute. Whatever it is asked for it gives when it is full, and owes the rest."""

    def __init__(self, per_minute: int) -> None:
        self._rate = per_minute / 60
        self._capacity = max(self._rate * _BURST_SECONDS, 1.0)
        self._level = self._capacity
        self._at = 0.0

    def change(self, per_minute: int) -> None:
        was_bound = bool(self._rate)
        self._fill()
        self._rate = per_minute / 60
        self._capacity = max(self._rate * _BURST_SECONDS, 1.0)
        self._level = min(self._level, self._capacity) if was_bound else self._capacity

    def seconds_until(self, amount: int) -> float:
        if not self._rate:
            return 0.0
        self._fill()
        missing = min(amount, self._capacity) - self._level
        return missing / self._rate if missing > 1e-9 else 0.0

    def take(self, amount: int) -> None:
        if self._rate:
            self._fill()
            self._level -= amount

    def _fill(self) -> None:
        now = asyncio.get_running_loop().time()
        self._level = min(self._level + (now - self._at) * self._rate, self._capacity)
        self._at = now
