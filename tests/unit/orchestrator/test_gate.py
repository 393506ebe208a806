"""The gate that calls pass."""

import asyncio

from parley.orchestrator.gate import Gate


async def test_a_closed_gate_stops_new_calls_and_lets_those_in_flight_end() -> None:
    gate, left, passed = Gate(), asyncio.Event(), []

    async def call(name: str) -> None:
        async with gate.passage():
            await left.wait()
            passed.append(name)

    first = asyncio.create_task(call("first"))
    await asyncio.sleep(0)
    assert gate._inside == 1
    gate.close()
    second = asyncio.create_task(call("second"))
    emptied = asyncio.create_task(gate.emptied())
    await asyncio.sleep(0)
    assert not emptied.done()
    left.set()
    await asyncio.gather(first, emptied)
    assert passed == ["first"]
    assert gate.empty
    gate.open()
    await second
    assert passed == ["first", "second"]


async def test_a_call_that_is_cancelled_is_no_longer_in_flight() -> None:
    gate = Gate()

    async def call() -> None:
        async with gate.passage():
            await asyncio.Event().wait()

    hanging = asyncio.create_task(call())
    await asyncio.sleep(0)
    hanging.cancel()
    await asyncio.wait_for(gate.emptied(), 1)
    assert gate.empty
