"""A tenant's debate of 13 calls alone and beside a tenant at its limits, and how soon GetDebate answers meanwhile."""

import asyncio
import os
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from parley.client import ParleyClient
from parley.storage.opening import open_store
from parley.v1.access_pb2 import ACCESS_ROLE_DEBATE
from parley.v1.event_pb2 import Event
from tests.bench.environment import MODEL
from tests.bench.figures import aim, main, middle, table
from tests.bench.graph import Shape
from tests.bench.greedy_tenant import DEAD_MODEL, Greed, greedy_tenant
from tests.bench.models import Models, model_server
from tests.bench.replicas import cpu_seconds, service
from tests.bench.system import spec
from tests.support.access import SECRET, key_for
from tests.support.model_server import Latency

_SECONDS: Final = 0.2
_SHAPE: Final = Shape(3, 1)
_LOOK_SECONDS: Final = 0.05
_TENANT_DEFAULTS: Final = {"tenant_debates": "500", "tenant_requests": "6000", "tenant_watches": "1000"}
_TIMES_LONGER: Final = 1.2
_MILLISECONDS: Final = 100


@dataclass(slots=True)
class _Measured:
    """Seconds of debates, milliseconds of GetDebate, and CPU seconds of each process while they were held."""

    debates: list[float] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)
    cpu: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _System:
    """A running system: the orchestrator's address, and a key of each tenant."""

    address: str
    greedy: str
    modest: str
    models: Models


async def run(quick: bool) -> None:
    """Measure by turns, each with a system of its own: alone, then beside the greedy tenant."""
    greed = Greed(**{name: _size(name, at_once) for name, at_once in _sizes(quick).items()})
    turns, times = (3, 3) if quick else (6, 4)
    alone, beside = _Measured(), _Measured()
    answers: dict[str, Counter[str]] = {}
    seconds = 0.0
    for _ in range(turns):
        async with _system() as system, ParleyClient(system.address, token=system.modest) as client:
            await _hold(client, _Measured(), 1)  # opens connections, and learns of the endpoint
            await _hold(client, alone, times)
            async with greedy_tenant(system.address, system.greedy, greed) as told:
                await _hold(client, beside, times)
            seconds += float(str(told["seconds"]))
            for what, found in _counts(told):
                answers.setdefault(what, Counter()).update(found)
    _show(alone, beside)
    print()
    table(
        ["the greedy tenant asked for", "times", "heard"],
        [
            [what, str(found.total()), ", ".join(f"{name} {count}" for name, count in found.most_common())]
            for what, found in answers.items()
        ],
    )
    asked = answers.get("request", Counter[str]()).total()
    print(f"\n{asked / seconds:.0f} requests a second, load {os.getloadavg()[0]:.1f}")


def _sizes(quick: bool) -> dict[str, int]:
    whole = Greed()
    return {
        "debates": whole.debates,
        "watches": 1000 if quick else whole.watches,
        "requests": whole.requests,
        "parts": whole.parts,
        "documents": whole.documents,
    }


def _size(name: str, otherwise: int) -> int:
    """Return how much the greedy tenant takes of one thing; `PARLEY_BENCH_WATCHES=0` and the like say otherwise."""
    return int(os.environ.get(f"PARLEY_BENCH_{name.upper()}", otherwise))


def _counts(told: dict[str, Any]) -> list[tuple[str, Counter[str]]]:
    return [(what, Counter(found)) for what, found in told["answers"].items()]


def _show(alone: _Measured, beside: _Measured) -> None:
    ratio = round(median(beside.debates) / median(alone.debates), 3)
    looks = [_p99(each.looks) for each in (alone, beside)]
    table(
        [f"13 calls at {_SECONDS * 1000:.0f} ms", "alone", "beside the greedy tenant", "ratio", "aim"],
        [
            [
                "debate, seconds (lowest-highest)",
                middle(alone.debates),
                middle(beside.debates),
                f"{ratio:.3f}",
                aim(ratio, _TIMES_LONGER),
            ],
            [
                "GetDebate, ms (lowest-highest)",
                middle(alone.looks, 1),
                middle(beside.looks, 1),
                f"{median(beside.looks) / median(alone.looks):.1f}",
                "",
            ],
            [
                f"p99 of {len(alone.looks)} and {len(beside.looks)}",
                *(f"{each:.1f}" for each in looks),
                f"{looks[1] / looks[0]:.1f}",
                aim(round(looks[1], 1), _MILLISECONDS),
            ],
        ],
    )
    print()
    table(
        ["CPU, % of a core", "alone", "beside"],
        [
            [name, *(f"{100 * each.cpu[name] / each.seconds:.0f}" for each in (alone, beside))]
            for name in sorted(alone.cpu | beside.cpu)
        ],
    )


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[-1]


async def _hold(client: ParleyClient, measured: _Measured, times: int) -> None:
    """Hold debates one after the other, looking at each twenty times a second."""
    for number in range(times):
        before, began = cpu_seconds(), time.monotonic()
        debate = spec(_SHAPE, f"How is it to be built, {time.monotonic_ns()} {number}?")
        made = await client.create_debate(debate)
        looking = asyncio.create_task(_look(client, made, measured.looks))
        try:
            await _end(client, made)
        finally:
            looking.cancel()
        took = time.monotonic() - began
        measured.debates.append(took)
        measured.seconds += took
        measured.cpu.update({name: used - before.get(name, 0.0) for name, used in cpu_seconds().items()})


async def _end(client: ParleyClient, debate: str) -> None:
    async for event in client.watch(debate):
        if isinstance(event, Event):
            kind = event.WhichOneof("payload")
            assert kind != "debate_failed", event.debate_failed.failure.message
            if kind == "concluded" and event.concluded.HasField("outcome"):
                return
    raise RuntimeError("the debate did not conclude")


async def _look(client: ParleyClient, debate: str, looks: list[float]) -> None:
    while True:
        began = time.monotonic()
        await client.get(debate)
        looks.append(1000 * (time.monotonic() - began))
        await asyncio.sleep(_LOOK_SECONDS)


@asynccontextmanager
async def _system() -> AsyncIterator[_System]:
    """Run each service as a process that asks who calls, on SQLite stores, with the limits that tenants have by default."""
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        greedy, modest = [await _key(folder, tenant) for tenant in ("greedy", "modest")]
        models = await enter(model_server())
        await models.begin(Latency(median=_SECONDS))
        await models.follow([{"match": {"model": DEAD_MODEL}, "fault": {"kind": "hang"}}])

        async def started(name: str, **settings: str) -> str:
            return await enter(service(name, service_secret=SECRET, **settings))

        def store(name: str) -> str:
            return f"sqlite:///{folder}/{name}"

        convergence = await started("convergence")
        gateway = await started(
            "gateway",
            store=store("gateway"),
            model=MODEL,
            OPENAI_API_KEY="bench",
            OPENAI_BASE_URL=models.base_url,
        )
        ratings = await started("ratings", store=store("ratings"))
        memory = await started(
            "memory", store=store("memory"), vectors=f"edge:{folder}/vectors", convergence=convergence
        )
        address = await started(
            "orchestrator",
            store=store("orchestrator"),
            auth="key",
            gateway=gateway,
            convergence=convergence,
            ratings=ratings,
            memory=memory,
            **_TENANT_DEFAULTS,
        )
        yield _System(address, greedy, modest, models)


async def _key(folder: str, tenant: str) -> str:
    """Make a key of a tenant in the orchestrator's store, which nobody else uses yet."""
    async with open_store(f"sqlite:///{Path(folder) / 'orchestrator'}", "orchestrator") as store:
        ((_, header),) = await key_for(store.documents, tenant, [ACCESS_ROLE_DEBATE])
    return header.removeprefix("Bearer ")


if __name__ == "__main__":
    main(__doc__, run)
