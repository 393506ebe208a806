"""A service that another one calls is away: who runs them reads it in a log line."""

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from parley.runtime import peers
from parley.runtime.channel import ChannelSettings
from parley.runtime.peers import watch_peers
from parley.runtime.server import ServerSettings, start_server
from tests.integration.runtime.wire import make_service
from tests.support.manual_clock import ManualClock
from tests.support.ports import free_ports


async def tell(_request: bytes, _context: object) -> bytes:
    return b""


async def move_until(clock: ManualClock, is_true: Callable[[], bool]) -> None:
    """Move the clock from look to look until something is true."""
    async with asyncio.timeout(30):
        while not is_true():
            await clock.sleeping()
            clock.advance(2)
            await asyncio.sleep(0.02)


async def test_an_address_where_nobody_listens_is_logged_once_with_its_setting_and_again_when_it_answers() -> (
    None
):
    port, clock = next(free_ports()), ManualClock()
    address = f"127.0.0.1:{port}"

    with capture_logs() as lines:

        def find_lines(event: str) -> list[MutableMapping[str, Any]]:
            return [each for each in lines if each["event"] == event]

        async with watch_peers({"PARLEY_GATEWAY": address}, ChannelSettings(), clock):
            await move_until(clock, lambda: bool(find_lines("a service is not reached")))
            assert clock.monotonic() >= 10, "a service that starts a little later is no trouble"
            (line,) = find_lines("a service is not reached")
            assert (line["setting"], line["address"], line["reason"]) == (
                "PARLEY_GATEWAY",
                address,
                "connection refused",
            )
            for _ in range(10):
                await clock.sleeping()
                clock.advance(2)
            async with start_server([make_service(Tell=tell)], ServerSettings(port=port, grace_seconds=0)):
                await move_until(clock, lambda: bool(find_lines("a service is reached again")))
        assert len(find_lines("a service is not reached")) == 1


async def find_reason(address: str) -> str:
    """Watch an address until it is said that nothing is reached there, and look again."""
    clock = ManualClock()
    with capture_logs() as lines:

        def find_lines() -> list[str]:
            return [each["reason"] for each in lines if each["event"] == "a service is not reached"]

        async with watch_peers({"PARLEY_MEMORY": address}, ChannelSettings(), clock):
            await move_until(clock, lambda: bool(find_lines()))
            await clock.sleeping()
        (reason,) = find_lines()
    return reason


async def test_an_address_with_a_name_that_no_host_can_have_is_logged_and_watching_goes_on() -> None:
    assert await find_reason("memory..svc:7405") == "no such host"


async def test_a_reason_that_cannot_be_found_out_is_unknown_and_watching_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_: object) -> str:
        raise RuntimeError("what nobody expected")

    monkeypatch.setattr(peers, "explain_unreachable", fail)
    assert await find_reason(f"127.0.0.1:{next(free_ports())}") == "unknown"


async def test_an_address_where_another_service_answers_is_logged_once() -> None:
    clock = ManualClock()
    gateway = make_service(name="parley.v1.GatewayService", Tell=tell)
    async with start_server([gateway], ServerSettings(grace_seconds=0)) as server:
        addresses = {"PARLEY_GATEWAY": server.address, "PARLEY_MEMORY": server.address}
        with capture_logs() as lines:
            async with watch_peers(addresses, ChannelSettings(), clock):
                await move_until(clock, lambda: bool(lines))
                for _ in range(3):
                    await clock.sleeping()
                    clock.advance(2)
                await clock.sleeping()
    (line,) = [each for each in lines if each["event"] == "another service answers"]
    assert (line["setting"], line["address"], line["expected"]) == (
        "PARLEY_MEMORY",
        server.address,
        "parley.v1.MemoryService",
    )
