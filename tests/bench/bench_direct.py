"""CPU of a debate whose services and client call directly, beside one where they call over loopback gRPC."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import median
from unittest.mock import patch

from parley.client import ParleyClient
from parley.local_services import LocalServices
from parley.runtime.channel import channel
from tests.bench.figures import main, show_middle, table
from tests.bench.graph import Shape
from tests.bench.models import model_server
from tests.bench.system import run_debate, spec, system
from tests.support.model_server import Latency

_SHAPE = Shape(3, 1)
_AT_ONCE = 8


async def run(quick: bool) -> None:
    """Interleave debates of two systems in this process. Nobody signs or checks: that comes on top over gRPC."""
    amount = 8 if quick else 40
    async with (
        model_server() as models,
        _call_over_ports(models.base_url) as over_ports,
        system(models.base_url, PARLEY_AUTH="none") as direct,
    ):
        arms = {"over loopback gRPC": over_ports, "directly": direct}
        costs: dict[str, list[float]] = {name: [] for name in arms}
        for client in arms.values():
            await _measure_cpu(client, "Warm", _AT_ONCE)
        for number in range(3 if quick else 7):
            await models.begin(Latency())
            for name in sorted(arms, reverse=bool(number % 2)):
                costs[name].append(await _measure_cpu(arms[name], f"Question {number}", amount))
    base = median(costs["over loopback gRPC"])
    table(
        ["services call", f"ms CPU a debate of {_SHAPE.calls} calls", "ratio"],
        [[name, show_middle(found, 1), f"{median(found) / base:.2f}"] for name, found in costs.items()],
    )


@asynccontextmanager
async def _call_over_ports(base_url: str) -> AsyncIterator[ParleyClient]:
    """Run the embedded system as it would be without direct calls."""
    async with AsyncExitStack() as stack:
        with patch.object(LocalServices, "_connect_as", lambda _self, _name: channel):
            client = await stack.enter_async_context(system(base_url, over_port=True, PARLEY_AUTH="none"))
        yield client


async def _measure_cpu(client: ParleyClient, question: str, amount: int) -> float:
    """Return milliseconds of this process's CPU a debate, with some in flight."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def debate(number: int) -> None:
        async with places:
            await run_debate(client, spec(_SHAPE, f"{question} {number}?"))

    began = time.process_time()
    await asyncio.gather(*map(debate, range(amount)))
    return (time.process_time() - began) * 1000 / amount


if __name__ == "__main__":
    main(__doc__, run)
