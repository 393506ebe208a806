"""One breaker a route, on pybreaker's state machine.

The call itself is awaited outside the breaker; only an outcome that counts is reported to it, with the permit the
call went out on. A permit knows the breaker's generation, so that a late outcome changes nothing, and while the
breaker is half-open there is one permit at a time. See docs/architecture/breaker.md.
"""

import itertools
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

import pybreaker
from msgspec import Struct, field

from parley.runtime.clock import Clock


class BreakerState(Enum):
    """Closed lets calls through, open none, half-open one trial at a time."""

    CLOSED = pybreaker.STATE_CLOSED
    OPEN = pybreaker.STATE_OPEN
    HALF_OPEN = pybreaker.STATE_HALF_OPEN


class BreakerPolicy(Struct, frozen=True):
    """Failures in a row that open a breaker, seconds until a trial, successes in a row that close it."""

    failures: int = 3
    cooldown_seconds: float = 60.0
    successes: int = 2


DEFAULT_POLICY: Final = BreakerPolicy()


class BreakerSnapshot(Struct, frozen=True):
    """A breaker as it is at one moment; `retry_at` is None while it is closed."""

    state: BreakerState
    failures_in_a_row: int
    retry_at: datetime | None
    last_failure: str


_moments = itertools.count()
"""What came before what, within this process; a clock may stand still between two moments."""


class Flight(Struct, eq=False):
    """A call at a route: from when it first comes to it until it is over, or goes on to another route.

    `failures` are its own in `row`, a row of failures of the breaker, which had `before` when this flight and those
    that were in flight with it began to fail.
    """

    began: int = field(default_factory=lambda: next(_moments))
    ended: int | None = None
    row: int = -1
    before: int = 0
    failures: int = 0

    def end(self) -> None:
        """Note that the call is not at the route any more."""
        if self.ended is None:
            self.ended = next(_moments)

    def began_after(self, other: "Flight") -> bool:
        """Return whether the two were not in flight together, and this one came second."""
        return other.ended is not None and other.ended < self.began


class Permit(Struct, frozen=True, eq=False):
    """Leave for one route attempt; given back with exactly one of `record_success`, `record_failure` and `release`.

    `is_whole_flight` says that the attempt is all that its call does at the route.
    """

    generation: int
    trial: bool
    flight: Flight
    is_whole_flight: bool


class RouteBreaker:
    """3 failures in a row, of calls that were not in flight together, open it; after 60 s one trial at a time, 2 successes close it."""

    def __init__(
        self,
        clock: Clock,
        policy: BreakerPolicy = DEFAULT_POLICY,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._policy = policy
        self._on_change = on_change
        self._generation = 0
        self._opened_at = 0.0
        self._last_failure = ""
        self._trial: Permit | None = None
        self._held = False
        self._row = 0
        self._counted: Flight | None = None  # whose failure was the last that counted in this row
        self._machine = pybreaker.CircuitBreaker(
            fail_max=policy.failures,
            success_threshold=policy.successes,
            listeners=[_Listener(self._enter_state)],
            throw_new_error_on_trip=False,
        )

    @property
    def state(self) -> BreakerState:
        """The present state; an open breaker stays open until its first trial goes out."""
        return BreakerState(self._machine.current_state)

    @property
    def generation(self) -> int:
        """How often the state has changed."""
        return self._generation

    @property
    def trial_in_flight(self) -> bool:
        """Whether a trial is out, from here or from another replica, so that its outcome is worth waiting for."""
        return self._trial is not None or self._held

    @property
    def would_admit(self) -> bool:
        """Whether `admit` would give leave now."""
        return self.state is BreakerState.CLOSED or (
            not self.trial_in_flight and self.seconds_until_trial <= 0
        )

    @property
    def seconds_until_trial(self) -> float:
        """How long an open breaker still lets nothing through; 0.0 in the other states."""
        if self.state is not BreakerState.OPEN:
            return 0.0
        return max(self._opened_at + self._policy.cooldown_seconds - self._clock.monotonic(), 0.0)

    def snapshot(self) -> BreakerSnapshot:
        """Return state and counters of this moment."""
        state = self.state
        return BreakerSnapshot(
            state=state,
            failures_in_a_row=self._machine.fail_counter if state is BreakerState.CLOSED else 0,
            retry_at=(
                None
                if state is BreakerState.CLOSED
                else self._clock.now() + timedelta(seconds=self.seconds_until_trial)
            ),
            last_failure=self._last_failure,
        )

    def admit(self, flight: Flight | None = None) -> Permit | None:
        """Give leave for a route attempt of this flight, or None if none may go out now. None: a flight of its own."""
        state, whole = self.state, flight is None
        flight = flight or Flight()
        if state is BreakerState.CLOSED:
            return Permit(self._generation, trial=False, flight=flight, is_whole_flight=whole)
        if not self.would_admit:
            return None
        if state is BreakerState.OPEN:
            self._machine.half_open()
        self._trial = Permit(self._generation, trial=True, flight=flight, is_whole_flight=whole)
        return self._trial

    def record_success(self, permit: Permit) -> None:
        """Record that the call was answered."""
        if self._give_back(permit):
            recovering = permit.trial or self._machine.fail_counter > 0
            self._begin_row()
            if recovering:
                self._machine.call(_pass)
                self._on_change()

    def record_failure(self, permit: Permit, why: str) -> None:
        """Record that the call failed in a way that counts; `why` is one line.

        Calls that are in flight together count as one, the one of them that fails most often: they meet one outage.
        """
        if self._give_back(permit):
            self._last_failure = why
            if not self._is_news(permit.flight):
                return
            try:
                self._machine.call(_fail)
            except _Failure:
                self._on_change()

    def release(self, permit: Permit) -> None:
        """Give the permit of a call back that ended in a way that says nothing about the route."""
        if self._give_back(permit) and permit.trial:
            self._on_change()

    def hold(self, permit: Permit) -> None:
        """Give a trial back unused: another replica has one out. No other goes out before `end_hold`."""
        if self._give_back(permit):
            self._held = True

    def end_hold(self) -> None:
        """Note that another trial may be asked for."""
        if self._held:
            self._held = False
            self._on_change()

    def adopt(self, state: BreakerState, why: str) -> None:
        """Take over what another replica found out; outcomes of calls that are out now change nothing.

        If the breaker is open already, it begins its cooldown anew.
        """
        if state is BreakerState.OPEN:
            self._last_failure = why
            if self.state is BreakerState.OPEN:
                self._enter_state(pybreaker.STATE_OPEN)
            else:
                self._machine.open()
        elif self.state is BreakerState.CLOSED:
            return
        else:
            self._machine.close()
        self._on_change()

    def _give_back(self, permit: Permit) -> bool:
        """Free the gate, and says whether the permit is of the present generation."""
        if permit is self._trial:
            self._trial = None
        if permit.is_whole_flight:
            permit.flight.end()
        return permit.generation == self._generation

    def _is_news(self, flight: Flight) -> bool:
        """Return whether one more failure of a flight is more than the failures of those that it was in flight with."""
        if flight.row != self._row:
            last = self._counted
            flight.row, flight.failures = self._row, 0
            if last is None or flight.began_after(last):
                flight.before = self._machine.fail_counter
            else:
                flight.before = last.before
        flight.failures += 1
        if flight.before + flight.failures <= self._machine.fail_counter:
            return False
        self._counted = flight
        return True

    def _begin_row(self) -> None:
        self._row += 1
        self._counted = None

    def _enter_state(self, state: str) -> None:
        self._generation += 1
        self._begin_row()
        self._trial = None
        self._held = False
        if state == pybreaker.STATE_OPEN:
            self._opened_at = self._clock.monotonic()


class _Listener(pybreaker.CircuitBreakerListener):
    def __init__(self, changed: Callable[[str], None]) -> None:
        self._on_state_change = changed

    def state_change(
        self,
        cb: pybreaker.CircuitBreaker,  # noqa: ARG002
        old_state: pybreaker.CircuitBreakerState | None,  # noqa: ARG002
        new_state: pybreaker.CircuitBreakerState,
    ) -> None:
        self._on_state_change(new_state.name)


class _Failure(Exception):  # noqa: N818 (never leaves this module)
    pass


def _pass() -> None:
    pass


def _fail() -> None:
    raise _Failure
