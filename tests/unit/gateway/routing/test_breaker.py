"""The breaker against the sentence that describes it, and against a model of it."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from parley.gateway.routing.breaker import BreakerState, Flight, Permit, RouteBreaker
from tests.support.manual_clock import ManualClock


def fail(breaker: RouteBreaker, times: int = 1) -> None:
    for _ in range(times):
        permit = breaker.admit()
        assert permit is not None
        breaker.record_failure(permit, "500")


def state_of(breaker: RouteBreaker) -> str:
    return breaker.state.name


def open_breaker() -> tuple[RouteBreaker, ManualClock]:
    clock = ManualClock()
    breaker = RouteBreaker(clock)
    fail(breaker, 3)
    assert state_of(breaker) == "OPEN"
    return breaker, clock


def trial(breaker: RouteBreaker) -> Permit:
    permit = breaker.admit()
    assert permit is not None
    return permit


def test_only_failures_in_a_row_open_it() -> None:
    breaker = RouteBreaker(ManualClock())
    fail(breaker, 2)
    breaker.record_success(trial(breaker))
    fail(breaker, 2)
    assert state_of(breaker) == "CLOSED"
    fail(breaker)
    assert state_of(breaker) == "OPEN"


def test_failures_that_were_in_flight_together_count_as_one() -> None:
    breaker = RouteBreaker(ManualClock())
    for wave in range(1, 4):
        assert state_of(breaker) == "CLOSED"
        for permit in [trial(breaker) for _ in range(5)]:
            breaker.record_failure(permit, "503")
        assert breaker.snapshot().failures_in_a_row == wave % 3
    assert state_of(breaker) == "OPEN"


def fail_at(breaker: RouteBreaker, *flights: Flight) -> int:
    """Fail an attempt of each flight in turn; how many failures in a row that makes."""
    for flight in flights:
        permit = breaker.admit(flight)
        assert permit is not None
        breaker.record_failure(permit, "503")
    return breaker.snapshot().failures_in_a_row


def test_calls_in_flight_together_count_as_the_one_that_fails_most_often() -> None:
    breaker = RouteBreaker(ManualClock())
    first, second, third = Flight(), Flight(), Flight()
    assert fail_at(breaker, first, second) == 1
    assert fail_at(breaker, second, third, first, third) == 2
    assert state_of(breaker) == "CLOSED"
    fail_at(breaker, first)
    assert state_of(breaker) == "OPEN"


def test_a_call_that_comes_when_those_that_failed_are_over_counts_beside_them() -> None:
    breaker = RouteBreaker(ManualClock())
    first, second = Flight(), Flight()
    assert fail_at(breaker, first, second) == 1
    first.end()
    assert fail_at(breaker, Flight()) == 2
    assert fail_at(breaker, second) == 2


def test_a_failure_after_a_success_counts_though_it_was_in_flight_with_one_before() -> None:
    breaker = RouteBreaker(ManualClock())
    late = trial(breaker)
    fail(breaker)
    breaker.record_success(trial(breaker))
    breaker.record_failure(late, "503")
    assert breaker.snapshot().failures_in_a_row == 1


def test_it_lets_nothing_through_for_a_minute_and_then_one_trial_at_a_time() -> None:
    breaker, clock = open_breaker()
    clock.advance(59.9)
    assert breaker.admit() is None
    clock.advance(0.1)
    first = trial(breaker)
    assert state_of(breaker) == "HALF_OPEN"
    assert breaker.admit() is None
    breaker.record_success(first)
    assert state_of(breaker) == "HALF_OPEN"
    second = trial(breaker)
    assert breaker.admit() is None
    breaker.record_success(second)
    assert state_of(breaker) == "CLOSED"


def test_a_failed_trial_opens_it_for_another_minute() -> None:
    breaker, clock = open_breaker()
    for _ in range(3):
        clock.advance(60)
        breaker.record_failure(trial(breaker), "still 500")
        assert state_of(breaker) == "OPEN"
        clock.advance(59)
        assert breaker.admit() is None
        clock.advance(1)


def test_a_trial_that_says_nothing_frees_the_gate_and_changes_nothing() -> None:
    breaker, clock = open_breaker()
    clock.advance(60)
    breaker.release(trial(breaker))
    assert state_of(breaker) == "HALF_OPEN"
    assert breaker.admit() is not None


def test_a_late_outcome_neither_opens_nor_closes() -> None:
    clock = ManualClock()
    breaker = RouteBreaker(clock)
    late = [trial(breaker) for _ in range(4)]
    fail(breaker, 3)
    clock.advance(50)
    breaker.record_failure(late[0], "late")
    assert breaker.seconds_until_trial == 10
    breaker.record_success(late[1])
    assert state_of(breaker) == "OPEN"
    clock.advance(10)
    current = trial(breaker)
    breaker.record_failure(late[2], "late")
    assert state_of(breaker) == "HALF_OPEN"
    breaker.record_success(current)
    breaker.record_success(late[3])
    assert state_of(breaker) == "HALF_OPEN"


def test_a_snapshot_says_what_a_person_needs() -> None:
    clock = ManualClock()
    breaker = RouteBreaker(clock)
    fail(breaker, 2)
    closed = breaker.snapshot()
    assert (closed.failures_in_a_row, closed.retry_at, closed.last_failure) == (2, None, "500")
    fail(breaker)
    is_open = breaker.snapshot()
    assert is_open.retry_at is not None
    assert (is_open.retry_at - clock.now()).total_seconds() == 60


def test_what_another_replica_found_out_is_taken_over_and_outcomes_from_before_change_nothing() -> None:
    clock = ManualClock()
    breaker = RouteBreaker(clock)
    before = trial(breaker)
    breaker.adopt(BreakerState.OPEN, "503 elsewhere")
    assert state_of(breaker) == "OPEN"
    assert breaker.snapshot().last_failure == "503 elsewhere"
    breaker.record_success(before)
    assert breaker.seconds_until_trial == 60
    clock.advance(60)
    mine = trial(breaker)
    breaker.adopt(BreakerState.CLOSED, "")
    assert state_of(breaker) == "CLOSED"
    breaker.record_failure(mine, "late")
    assert breaker.snapshot().failures_in_a_row == 0


def test_a_trial_that_another_replica_has_out_is_waited_for() -> None:
    breaker, clock = open_breaker()
    clock.advance(60)
    breaker.hold(trial(breaker))
    assert breaker.trial_in_flight
    assert breaker.admit() is None
    breaker.end_hold()
    assert breaker.admit() is not None


class BreakerMachine(RuleBasedStateMachine):
    """Every order of admissions, outcomes and waiting, against a model in a few lines."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.breaker = RouteBreaker(self.clock)
        self.out: list[tuple[Permit, int, int]] = []
        self.moment = 0
        self.counted_until = -1
        self.state = BreakerState.CLOSED
        self.generation = self.failures = self.successes = 0
        self.opened_at = 0.0
        self.gate: Permit | None = None
        self.held = False

    def move(self, state: BreakerState) -> None:
        self.state, self.generation = state, self.generation + 1
        self.failures = self.successes = 0
        self.counted_until = -1
        self.gate = None
        self.held = False
        if state is BreakerState.OPEN:
            self.opened_at = self.clock.monotonic()

    def closed_off(self) -> bool:
        if self.state is BreakerState.OPEN:
            return self.clock.monotonic() < self.opened_at + 60
        return self.gate is not None or self.held

    @rule(seconds=st.sampled_from([1, 30, 60]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def admit(self) -> None:
        permit = self.breaker.admit()
        if self.state is BreakerState.CLOSED:
            assert permit is not None
        elif self.closed_off():
            assert permit is None
        else:
            assert permit is not None
            if self.state is BreakerState.OPEN:
                self.move(BreakerState.HALF_OPEN)
            self.gate = permit
        if permit is not None:
            self.moment += 1
            self.out.append((permit, self.generation, self.moment))

    @precondition(lambda self: self.out)
    @rule(data=st.data(), outcome=st.sampled_from(["success", "failure", "nothing"]))
    def end(self, data: st.DataObject, outcome: str) -> None:
        permit, generation, began = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        if permit is self.gate:
            self.gate = None
        current = generation == self.generation
        if outcome == "success":
            self.breaker.record_success(permit)
            if current:
                self.failures, self.counted_until = 0, -1
                self.successes += self.state is BreakerState.HALF_OPEN
                if self.successes == 2:
                    self.move(BreakerState.CLOSED)
        elif outcome == "failure":
            self.breaker.record_failure(permit, "x")
            if current and (began > self.counted_until or self.state is BreakerState.HALF_OPEN):
                self.failures, self.counted_until = self.failures + 1, self.moment
                if self.state is BreakerState.HALF_OPEN or self.failures == 3:
                    self.move(BreakerState.OPEN)
        else:
            self.breaker.release(permit)

    @rule(state=st.sampled_from([BreakerState.OPEN, BreakerState.CLOSED]))
    def hear_of_another_replica(self, state: BreakerState) -> None:
        self.breaker.adopt(state, "elsewhere")
        if state is BreakerState.OPEN or self.state is not BreakerState.CLOSED:
            self.move(state)

    @precondition(lambda self: self.gate)
    @rule()
    def hold(self) -> None:
        assert self.gate is not None
        self.breaker.hold(self.gate)
        self.out = [each for each in self.out if each[0] is not self.gate]
        self.gate, self.held = None, True

    @rule()
    def end_hold(self) -> None:
        self.breaker.end_hold()
        self.held = False

    @invariant()
    def same_as_the_model(self) -> None:
        assert self.breaker.state is self.state
        if self.state is BreakerState.CLOSED:
            assert self.breaker.snapshot().failures_in_a_row == self.failures
        assert self.breaker.trial_in_flight == (self.gate is not None or self.held)


BreakerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestBreakerMachine = BreakerMachine.TestCase
