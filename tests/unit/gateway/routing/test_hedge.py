"""A try and its hedge: whoever speaks is listened to, and who breaks off does not take the other with it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from parley.gateway.failures import BAD_REQUEST, Failure
from parley.gateway.routing.breaker import RouteBreaker
from parley.gateway.routing.call import Progress
from parley.gateway.routing.hedge import Hedge, Outcome
from parley.gateway.routing.queue import Limits, RouteQueue
from parley.gateway.routing.route import LiveRoute, Route
from parley.v1.gateway_pb2 import GenerateCompleted
from tests.support.manual_clock import ManualClock

Script = Callable[[Progress], Coroutine[Any, Any, Outcome]]


class Said:
    """What a listener heard: routes, and the texts after each."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def start_route_attempt(self, route: str) -> None:
        self.heard.append((route, ""))

    def mark_alive(self) -> None:
        pass

    def add_text(self, piece: str) -> None:
        route, text = self.heard[-1]
        self.heard[-1] = route, text + piece


def make_live_route(name: str) -> LiveRoute:
    route = Route(name, "p", name)
    return LiveRoute(route, None, RouteBreaker(ManualClock()), RouteQueue(Limits()))  # type: ignore[arg-type]


def answer(route: str) -> Outcome:
    return GenerateCompleted(text="whole", route=route, model="m"), True


async def race(said: Said, first: Script, hedge: Script) -> Outcome:
    scripts = {"first": first, "hedge": hedge}

    async def try_route(route: LiveRoute, progress: Progress) -> Outcome:
        progress.start_route_attempt(route.route.name)
        return await scripts[route.route.name](progress)

    async with asyncio.timeout(30):
        outcome, other = await Hedge(said, 0.01).run(
            make_live_route("first"), [make_live_route("hedge")], try_route
        )
    assert other is not None
    return outcome


async def breaks_off(progress: Progress) -> Outcome:
    progress.add_text("hi")
    await asyncio.sleep(0.05)
    return None, True


async def test_a_hedge_that_speaks_and_breaks_off_leaves_the_silent_first_to_answer() -> None:
    broken = asyncio.Event()

    async def answer_first(progress: Progress) -> Outcome:
        await broken.wait()
        progress.add_text("whole")
        return answer("first")

    async def hedge(progress: Progress) -> Outcome:
        try:
            return await breaks_off(progress)
        finally:
            asyncio.get_running_loop().call_later(0.05, broken.set)

    said = Said()
    found, asked = await race(said, answer_first, hedge)
    assert found is not None
    assert found.route == "first"
    assert asked
    assert said.heard == [("first", ""), ("hedge", "hi"), ("first", "whole")]


async def test_a_first_that_speaks_late_and_breaks_off_leaves_the_hedge_to_answer() -> None:
    hedging, broken = asyncio.Event(), asyncio.Event()

    async def answer_first(progress: Progress) -> Outcome:
        await hedging.wait()
        try:
            return await breaks_off(progress)
        finally:
            asyncio.get_running_loop().call_later(0.05, broken.set)

    async def hedge(progress: Progress) -> Outcome:
        hedging.set()
        await broken.wait()
        progress.add_text("whole")
        return answer("hedge")

    said = Said()
    found, _ = await race(said, answer_first, hedge)
    assert found is not None
    assert found.route == "hedge"
    assert said.heard == [("first", "hi"), ("hedge", "whole")]


async def test_what_no_route_can_help_is_raised_only_where_the_other_does_not_answer() -> None:
    hedging, refused = asyncio.Event(), asyncio.Event()

    async def refuses(_: Progress) -> Outcome:
        await hedging.wait()
        asyncio.get_running_loop().call_later(0.05, refused.set)
        raise Failure(BAD_REQUEST, "no")

    async def answers(progress: Progress) -> Outcome:
        hedging.set()
        await refused.wait()
        progress.add_text("whole")
        return answer("hedge")

    async def fails(_: Progress) -> Outcome:
        hedging.set()
        return None, True

    found, _ = await race(Said(), refuses, answers)
    assert found is not None
    hedging.clear()
    with pytest.raises(Failure, match="no"):
        await race(Said(), refuses, fails)


async def test_both_failing_is_no_answer_and_says_whether_the_first_was_asked() -> None:
    hedging = asyncio.Event()

    async def stay_unasked(_: Progress) -> Outcome:
        await hedging.wait()
        return None, False

    async def fails(_: Progress) -> Outcome:
        hedging.set()
        return None, True

    assert await race(Said(), stay_unasked, fails) == (None, False)
