"""The health that a server reports: whether the process lives, and whether its services can work now."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from parley.runtime.logs import get_logger

ReadyCheck = Callable[[], Awaitable[object]]
"""Returns if a service can work now, and raises if not, for example because its store does not answer."""

LIVENESS: Final = "liveness"
"""The name of the liveness check: SERVING as long as the process lives, even if a dependency is down."""
_SERVING: Final = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING
_CHECK_SECONDS: Final = 5.0
"""Between two checks, and how long one may take."""

_logger = get_logger(__name__)


class Health:
    """The health of each service by its name, of all of them (""), and of the process (`liveness`).

    A service whose check fails is NOT_SERVING until it succeeds, so that clients call another replica. A restart
    would not help, so `liveness` stays SERVING.
    """

    def __init__(self, checks: Mapping[str, ReadyCheck | None]) -> None:
        self._servicer = health.aio.HealthServicer()
        self._checks = checks
        self._failing: frozenset[str] = frozenset()

    def register(self, server: grpc.aio.Server) -> None:
        """Add the health service to a server."""
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def start_serving(self) -> None:
        """Set every name to SERVING."""
        for name in ("", LIVENESS, *self._checks):
            await self._servicer.set(name, _SERVING)

    async def stop_serving(self) -> None:
        """Set every name to NOT_SERVING for good."""
        await self._servicer.enter_graceful_shutdown()

    async def check_forever(self) -> None:
        """Check every 5 seconds, until cancelled."""
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            await self.check()

    async def check(self, seconds: float = _CHECK_SECONDS) -> None:
        """Check each service once, for at most `seconds`, and set its status."""
        failing = set()
        for name, ready in self._checks.items():
            if ready is not None and not await self._is_ready(name, ready, seconds):
                failing.add(name)
        for name in self._checks:
            await self._servicer.set(name, _NOT_SERVING if name in failing else _SERVING)
        await self._servicer.set("", _NOT_SERVING if failing else _SERVING)
        self._failing = frozenset(failing)

    async def _is_ready(self, name: str, ready: ReadyCheck, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await ready()
        except Exception as error:  # noqa: BLE001 (whatever it is, the service cannot work)
            if name not in self._failing:
                _logger.warning("not ready", service=name, reason=str(error) or type(error).__name__)
            return False
        if name in self._failing:
            _logger.info("ready again", service=name)
        return True
