"""How the text of a running call is told: the first of it at once, then gathered, and never a piece lost or late."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.calls.stream import CallFailed, RunningCall
from parley.gateway.failures import BAD_REQUEST, CALL_CANCELLED, CALL_TIMEOUT, Failure
from parley.v1.gateway_pb2 import GenerateCompleted, GenerateResponse
from tests.unit.gateway.calls.events import attempt, delta

GATHER = 0.025
ANSWER = GenerateCompleted(text="all", route="p/m", model="m")


class ManualLoop(asyncio.SelectorEventLoop):
    """A loop whose time stands still until it is moved."""

    now = 1000.0

    def time(self) -> float:
        return self.now

    def timers(self) -> int:
        """How many timers would still go off."""
        return sum(not timer.cancelled() for timer in self._scheduled)  # type: ignore[attr-defined]


@dataclass
class Telling:
    """A call that goes as the test says, and what its one listener has heard, with the time of each event."""

    loop: ManualLoop
    call: RunningCall = field(default_factory=lambda: RunningCall(lambda: "asked"))
    heard: list[tuple[float, GenerateResponse]] = field(default_factory=list)
    failure: Exception | None = None
    _outcome: asyncio.Future[GenerateCompleted] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    _listening: asyncio.Task[None] | None = None

    async def begin(self, until: float = 1e9) -> None:
        """Starts the call, and listens to it."""

        async def work(_: RunningCall) -> GenerateCompleted:
            return await self._outcome

        self.call.start(work)
        self._listening = asyncio.create_task(self._listen(until))
        await self.settle()

    async def _listen(self, until: float) -> None:
        try:
            async for event in self.call.events(until):
                self.heard.append((self.loop.time(), event))
        except (CallFailed, RuntimeError) as failure:
            self.failure = failure

    async def settle(self) -> None:
        """Lets everything happen that happens now."""
        for _ in range(10):
            await asyncio.sleep(0)

    async def passes(self, seconds: float) -> None:
        """Moves time on."""
        self.loop.now += seconds
        await self.settle()

    async def says(self, *pieces: str) -> None:
        for piece in pieces:
            self.call.add_text(piece)
        await self.settle()

    async def tries(self, route: str) -> None:
        self.call.start_route_attempt(route)
        await self.settle()

    async def ends(self, error: BaseException | None = None) -> None:
        """The call is answered, or fails."""
        if error is None:
            self._outcome.set_result(ANSWER)
        else:
            self._outcome.set_exception(error)
        await self.settle()

    def events(self) -> list[GenerateResponse]:
        return [event for _, event in self.heard]


def run_scenario(scenario: Callable[[Telling], Awaitable[None]]) -> Telling:
    """What came of a scenario, after which no timer may be left."""
    told: list[Telling] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ManualLoop)
        told.append(Telling(loop))
        await scenario(told[0])
        assert told[0].call.over
        assert loop.timers() == 0

    with asyncio.Runner(loop_factory=ManualLoop) as runner:
        runner.run(run())
    return told[0]


def test_the_first_text_is_told_at_once_and_what_follows_as_one_piece_when_the_moment_is_over() -> None:
    async def scenario(told: Telling) -> None:
        await told.begin()
        await told.tries("p/m")
        await told.says("one ")
        assert told.events() == [attempt(1, "p/m"), delta(1, 0, "one ")]
        await told.says("two ")
        await told.passes(GATHER / 2)
        await told.says("three ")
        assert len(told.heard) == 2
        await told.passes(GATHER / 2)
        assert told.events()[2:] == [delta(1, 4, "two three ")]
        await told.ends()

    run_scenario(scenario)


def test_text_after_a_silence_is_told_at_once() -> None:
    async def scenario(told: Telling) -> None:
        await told.begin()
        await told.tries("p/m")
        await told.says("one ")
        await told.passes(2 * GATHER)
        assert told.loop.timers() == 1, "only the listener's own time: nothing waits to be told"
        await told.says("two ")
        assert told.events()[1:] == [delta(1, 0, "one "), delta(1, 4, "two ")]
        await told.ends()

    run_scenario(scenario)


@pytest.mark.parametrize("error", [None, Failure(BAD_REQUEST, "no"), RuntimeError("a fault")])
def test_gathered_text_is_told_before_the_end_whichever_it_is(error: Exception | None) -> None:
    async def scenario(told: Telling) -> None:
        await told.begin()
        await told.tries("p/m")
        await told.says("one ", "two ", "three")
        await told.ends(error)

    told = run_scenario(scenario)
    assert told.events()[1:3] == [delta(1, 0, "one "), delta(1, 4, "two three")]
    if error is None:
        assert told.events()[3:] == [GenerateResponse(completed=ANSWER)]
    else:
        assert len(told.heard) == 3
        assert str(told.failure) == ("a fault" if isinstance(error, RuntimeError) else "no")


class Panic(BaseException):
    """What a library in Rust raises for a fault of its own; no Exception."""


def test_a_listener_of_a_call_that_ends_in_no_exception_hears_that_it_was_given_up() -> None:
    async def scenario(told: Telling) -> None:
        told.loop.set_exception_handler(lambda _, context: seen.append(context["exception"]))
        await told.begin()
        await told.ends(Panic())

    seen: list[BaseException] = []
    told = run_scenario(scenario)
    assert isinstance(told.failure, CallFailed)
    assert told.failure.failure.kind is CALL_CANCELLED
    del told
    gc.collect()
    assert [type(each) for each in seen] == [Panic], "the loop reports it"


def test_text_that_was_gathered_when_the_call_is_stopped_is_told_first() -> None:
    async def scenario(told: Telling) -> None:
        await told.begin()
        await told.tries("p/m")
        await told.says("one ", "two")
        await told.call.stop(cancelled=True)
        await told.settle()

    told = run_scenario(scenario)
    assert told.events()[1:] == [delta(1, 0, "one "), delta(1, 4, "two")]
    assert str(told.failure) == "the call was cancelled"


def test_the_first_text_of_a_new_attempt_is_told_at_once_and_nothing_more_of_the_old_one() -> None:
    async def scenario(told: Telling) -> None:
        await told.begin()
        await told.tries("p/m")
        await told.says("old ", "older ")
        await told.tries("q/m")
        await told.says("new ")
        assert told.events() == [
            attempt(1, "p/m"),
            delta(1, 0, "old "),
            attempt(2, "q/m"),
            delta(2, 0, "new "),
        ]
        await told.says("words")
        await told.passes(GATHER)
        assert told.events()[4:] == [delta(2, 4, "words")]
        await told.ends()

    run_scenario(scenario)


def test_a_listener_whose_time_is_over_hears_so_while_the_call_goes_on() -> None:
    async def scenario(told: Telling) -> None:
        await told.begin(until=told.loop.time() + 1)
        await told.tries("p/m")
        await told.passes(0.5)
        early = told.failure
        await told.passes(0.5)
        assert early is None
        assert isinstance(told.failure, CallFailed)
        assert told.failure.failure.kind is CALL_TIMEOUT
        assert not told.call.over
        await told.ends()

    run_scenario(scenario)


@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=5), st.sampled_from([0.0, 0.004, 0.011, 0.04])), max_size=60
    )
)
def test_text_is_told_whole_in_order_and_no_more_often_than_every_25_ms(
    words: list[tuple[str, float]],
) -> None:
    async def scenario(told: Telling) -> None:
        await told.begin()
        await told.tries("p/m")
        for word, pause in words:
            await told.says(word)
            await told.passes(pause)
        await told.ends()

    told = run_scenario(scenario)
    deltas = [(at, event.delta) for at, event in told.heard if event.HasField("delta")]
    text = ""
    for _, piece in deltas:
        assert piece.offset == len(text)
        text += piece.text
    assert text == "".join(word for word, _ in words)
    told_at = [at for at, _ in deltas[:-1]]  # the last may come with the end
    assert all(later - earlier > GATHER - 1e-6 for earlier, later in pairwise(told_at))
