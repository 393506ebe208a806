"""What probes ask of real processes whose store is away: they are not ready, they live, and they are ready again by themselves."""

import asyncio

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from parley.runtime.health import LIVENESS
from tests.chaos.harness import System

_SERVICES = {
    "orchestrator-1": "parley.v1.OrchestratorService",
    "gateway-1": "parley.v1.GatewayService",
    "ratings": "parley.v1.RatingsService",
    "memory": "parley.v1.MemoryService",
}


async def _status(system: System, name: str, service: str) -> str:
    async with grpc.aio.insecure_channel(system.target(name)) as channel:
        asked = health_pb2.HealthCheckRequest(service=service)
        answer = await health_pb2_grpc.HealthStub(channel).Check(asked, timeout=20)  # type: ignore[attr-defined]
    return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)


async def _becomes(system: System, status: str) -> None:
    async with asyncio.timeout(90):
        for name, service in _SERVICES.items():
            while True:
                if await _status(system, name, service) == status:
                    break
                await asyncio.sleep(0.2)


async def test_a_store_that_is_away_makes_services_not_ready_and_ends_none(system: System) -> None:
    system.make_ready()
    pids = {name: system.pid(name) for name in _SERVICES}
    for name in _SERVICES:
        system.proxies.cut(f"{name}>store", refuse=True)
    try:
        await _becomes(system, "NOT_SERVING")
        for name in _SERVICES:
            assert await _status(system, name, LIVENESS) == "SERVING"
    finally:
        for name in _SERVICES:
            system.proxies.mend(f"{name}>store")
    await _becomes(system, "SERVING")
    assert {name: system.pid(name) for name in _SERVICES} == pids
    assert all(system.alive(name) for name in _SERVICES)
