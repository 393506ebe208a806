"""Two tenants of one system: what a modest tenant's debates take, alone and next to a greedy tenant."""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from parley.client import ParleyClient
from parley.storage.opening import open_store
from parley.v1.access_pb2 import ACCESS_ROLE_DEBATE
from parley.v1.event_pb2 import Event
from tests.bench.environment import MODEL
from tests.bench.figures import aim, show_middle, table
from tests.bench.graph import Shape
from tests.bench.models import Models, model_server
from tests.bench.replicas import cpu_seconds, service
from tests.bench.system import spec
from tests.support.access import SECRET, key_for
from tests.support.model_server import Latency

CALL_SECONDS: Final = 0.2
"""How long a model call of the modest tenant takes."""
_SHAPE: Final = Shape(3, 1)
_LOOK_SECONDS: Final = 0.05
_AGENTS: Final = """
providers:
  - {{name: usual, base_url: "{usual}"}}
  - {{name: other, base_url: "{other}", api: chat, models: [{model}]}}
"""
_TENANT_DEFAULTS: Final = {"tenant_debates": "500", "tenant_requests": "6000", "tenant_watches": "1000"}


@dataclass(slots=True)
class Measured:
    """Seconds of debates, milliseconds of GetDebate, and CPU seconds of each process meanwhile."""

    debates: list[float] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)
    cpu: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class System:
    """A running system: the orchestrator's address, and a key of each tenant."""

    address: str
    greedy: str
    modest: str
    models: Models


def show_debates(alone: Measured, beside: Measured, times_longer: float, milliseconds: float) -> list[str]:
    """Print debates, calls and CPU, without the greedy tenant and with it. Return which of the two aims are missed."""
    ratio = round(median(beside.debates) / median(alone.debates), 3)
    slowest = [round(_percentile_99(each.looks), 1) for each in (alone, beside)]
    table(
        [f"13 calls at {CALL_SECONDS * 1000:.0f} ms", "alone", "beside the greedy tenant", "ratio", "aim"],
        [
            [
                "debate, seconds (lowest-highest)",
                show_middle(alone.debates),
                show_middle(beside.debates),
                f"{ratio:.3f}",
                aim(ratio, times_longer),
            ],
            [
                "GetDebate, ms (lowest-highest)",
                show_middle(alone.looks, 1),
                show_middle(beside.looks, 1),
                f"{median(beside.looks) / median(alone.looks):.1f}",
                "",
            ],
            [
                f"p99 of {len(alone.looks)} and {len(beside.looks)}",
                *(f"{each:.1f}" for each in slowest),
                f"{slowest[1] / slowest[0]:.1f}",
                aim(slowest[1], milliseconds),
            ],
        ],
    )
    _show_cpu(alone, beside)
    return [
        *(["ratio of debates"] if ratio > times_longer else []),
        *(["p99 of GetDebate"] if slowest[1] > milliseconds else []),
    ]


def show_answers(answers: Mapping[str, Counter[str]]) -> None:
    """Print what the greedy tenant asked for, and how often it heard which answer."""
    print()
    table(
        ["the greedy tenant asked for", "times", "heard"],
        [
            [what, str(found.total()), ", ".join(f"{name} {count}" for name, count in found.most_common())]
            for what, found in answers.items()
        ],
    )


def _show_cpu(alone: Measured, beside: Measured) -> None:
    print()
    table(
        ["CPU, % of a core", "alone", "beside"],
        [
            [name, *(f"{100 * each.cpu[name] / each.seconds:.0f}" for each in (alone, beside))]
            for name in sorted(alone.cpu | beside.cpu)
        ],
    )


def _percentile_99(values: list[float]) -> float:
    """Return the value that one in a hundred exceeds."""
    return quantiles(values, n=100, method="inclusive")[-1]


async def run_debates(client: ParleyClient, measured: Measured, times: int) -> None:
    """Run debates one after the other, and get each twenty times a second."""
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
async def run_two_tenants(*rules: dict[str, object], other_model: str = "") -> AsyncIterator[System]:
    """Run each service as a process that asks who calls, on SQLite stores, with the limits that tenants have by default.

    The model server follows these rules. If there is an `other_model`, it has a server of its own, as the provider `other`.
    """
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        greedy, modest = [await _key(folder, tenant) for tenant in ("greedy", "modest")]
        models = await enter(model_server(keeps_calls=False))
        await models.begin(Latency(median=CALL_SECONDS))
        await models.follow(rules)
        settings = {"model": MODEL, "OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": models.base_url}
        if other_model:
            others = await enter(model_server(keeps_calls=False))
            await others.follow(rules)
            file = Path(folder) / "agents.yaml"
            file.write_text(_AGENTS.format(usual=models.base_url, other=others.base_url, model=other_model))
            settings = {"model": f"usual/{MODEL}", "agents_file": str(file)}

        async def start(name: str, **settings: str) -> str:
            return await enter(service(name, service_secret=SECRET, **settings))

        def store(name: str) -> str:
            return f"sqlite:///{folder}/{name}"

        convergence = await start("convergence")
        gateway = await start("gateway", store=store("gateway"), **settings)
        ratings = await start("ratings", store=store("ratings"))
        memory = await start(
            "memory", store=store("memory"), vectors=f"edge:{folder}/vectors", convergence=convergence
        )
        address = await start(
            "orchestrator",
            store=store("orchestrator"),
            auth="key",
            gateway=gateway,
            convergence=convergence,
            ratings=ratings,
            memory=memory,
            **_TENANT_DEFAULTS,
        )
        yield System(address, greedy, modest, models)


async def _key(folder: str, tenant: str) -> str:
    """Create a key of a tenant in the orchestrator's store, before the orchestrator starts."""
    async with open_store(f"sqlite:///{Path(folder) / 'orchestrator'}", "orchestrator") as store:
        ((_, header),) = await key_for(store.documents, tenant, [ACCESS_ROLE_DEBATE])
    return header.removeprefix("Bearer ")
