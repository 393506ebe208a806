"""The gate that calls pass."""

import asyncio

from parley.orchestrator.engine.call_admission import Gate


async def test_a_closed_gate_stops_new_calls_and_lets_those_in_flight_end() -> None:
    gate, may_end, happened = Gate(), asyncio.Event(), list[str]()
    came = {name: asyncio.Event() for name in ("first", "second", "emptied")}
    inside = asyncio.Event()

    async def call(name: str) -> None:
        came[name].set()
        async with gate:
            inside.set()
            await may_end.wait()
            happened.append(name)

    async def empty() -> None:
        came["emptied"].set()
        await gate.wait_until_empty()
        happened.append("emptied")

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(call("first"))
        await inside.wait()
        gate.close()
        tasks.create_task(call("second"))
        await came["second"].wait()
        emptied = tasks.create_task(empty())
        await came["emptied"].wait()
        may_end.set()
        await emptied
        assert gate.is_empty
        gate.open()
    # Had the second call got through the closed gate, the gate would not have been empty before that call ended; had the
    # first one not counted, the gate would have been empty before it ended.
    assert happened == ["first", "emptied", "second"]


async def test_a_call_that_is_cancelled_is_no_longer_in_flight() -> None:
    gate, inside = Gate(), asyncio.Event()

    async def call() -> None:
        async with gate:
            inside.set()
            await asyncio.Event().wait()

    hanging = asyncio.create_task(call())
    await inside.wait()
    hanging.cancel()
    await asyncio.wait_for(gate.wait_until_empty(), 30)
    assert gate.is_empty
