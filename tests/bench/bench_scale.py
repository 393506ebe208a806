"""Debates a second with three orchestrators over those with one, each a process, on one shared store."""

import asyncio
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from statistics import median
from urllib.parse import urlsplit

from pymongo import AsyncMongoClient

from parley.client import ParleyClient
from parley.v1.debate_pb2 import DebateStatus
from tests.bench.environment import MODEL
from tests.bench.figures import main, show_middle, table
from tests.bench.graph import Shape
from tests.bench.models import Models, model_server
from tests.bench.replicas import cpu_seconds, service
from tests.bench.system import spec
from tests.contract.mongodb_server import run_server
from tests.support.model_server import Latency

_SHAPE = Shape(3, 1)
_MAX_DEBATES = 4
_GATEWAYS = 2
_REPLICAS = (1, 3)
_MIN_GAIN = 2.2
_SHOWN = 0.005
_LOOK_SECONDS = 0.25
_PATIENCE = 240
_UNFINISHED = (
    DebateStatus.DEBATE_STATUS_PENDING,
    DebateStatus.DEBATE_STATUS_RUNNING,
    DebateStatus.DEBATE_STATUS_WAITING,
)
_STORE_PROCESS = "mongoeco_server.py"


@dataclass(frozen=True, slots=True)
class _Load:
    """Seconds that the model takes to answer, the debates of a round, and the rounds."""

    latency: float
    debates: int
    rounds: int


_LOADS = (_Load(0.2, 60, 5), _Load(1.0, 36, 3))
_QUICK_LOADS = (_Load(0.2, 24, 2), _Load(1.0, 24, 1))
"""At 200 ms three replicas may well have more to do than this machine can; at 1 s a slot is what a debate waits for."""


@dataclass(frozen=True, slots=True)
class _Replicas:
    """Some orchestrators on a database of their own, and a client of all of them."""

    amount: int
    client: ParleyClient
    store: str

    async def settled(self) -> None:
        """Wait until what follows from every answer is done, then remove all debates: a full store may be slower."""
        url = urlsplit(self.store)
        async with AsyncMongoClient[dict[str, object]](self.store) as client:
            database = client[f"{url.path.strip('/')}_orchestrator"]
            await _wait_until_nothing(lambda: database["debates"].find_one({"open": True}))
            for name in ("debates", "inbox", "_log"):
                await database[name].delete_many({})


@dataclass(frozen=True, slots=True)
class _Round:
    """Debates a second, and the cores that each process had meanwhile."""

    rate: float
    cores: dict[str, float]


async def run(quick: bool) -> None:
    """Hold the same debates on one orchestrator and on three, by turns."""
    found: dict[_Load, dict[int, list[_Round]]] = {}
    async with _system() as (kind, models, systems):
        for replicas in systems:
            await _hold(replicas, _MAX_DEBATES, "warm")
        for load in _QUICK_LOADS if quick else _LOADS:
            await models.begin(Latency(median=load.latency))
            found[load] = {amount: [] for amount in _REPLICAS}
            for number in range(load.rounds):
                for replicas in systems:
                    found[load][replicas.amount].append(
                        await _hold(replicas, load.debates, f"{load.latency} {number}")
                    )
    print(f"store: {kind}; gateways: {_GATEWAYS}\n")
    _show_rates(found)
    print()
    _show_cores(found)


async def _hold(replicas: _Replicas, debates: int, mark: str) -> _Round:
    client, before, began = replicas.client, cpu_seconds(), time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for number in range(debates):
            tasks.create_task(client.create_debate(spec(_SHAPE, f"Bench question {mark} {number}?")))
    await _wait_until_nothing(lambda: anext(client.list(_UNFINISHED, page_size=1), None))
    seconds, after = time.monotonic() - began, cpu_seconds()
    answered = [
        debate async for debate in client.list([DebateStatus.DEBATE_STATUS_COMPLETED], page_size=debates)
    ]
    assert len(answered) == debates, f"{len(answered)} of {debates} debates came to an answer"
    await replicas.settled()
    cores = {name: (after[name] - before.get(name, 0.0)) / seconds for name in after}
    return _Round(debates / seconds, cores)


async def _wait_until_nothing(found: Callable[[], Awaitable[object]]) -> None:
    ends = time.monotonic() + _PATIENCE
    while (one := await found()) is not None:
        if time.monotonic() > ends:
            raise TimeoutError(f"not done within {_PATIENCE} s, among others: {one}")
        await asyncio.sleep(_LOOK_SECONDS)


def _show_rates(found: dict[_Load, dict[int, list[_Round]]]) -> None:
    rows = []
    for load, sides in found.items():
        one, three = ([each.rate for each in sides[amount]] for amount in _REPLICAS)
        gain = median(three) / median(one)
        aim = f">= {_MIN_GAIN:g}: {'met' if gain >= _MIN_GAIN else 'missed'}"
        rows.append(
            [
                _seconds(load),
                str(load.debates),
                show_middle(one, 2),
                show_middle(three, 2),
                f"{gain:.2f}",
                aim,
            ]
        )
    head = ["debates in a round", "one (debates/s)", "three (debates/s)", "three / one", "aim"]
    table([f"{_MAX_DEBATES} debates at once a replica, model answers after", *head], rows)


def _show_cores(found: dict[_Load, dict[int, list[_Round]]]) -> None:
    columns = {
        f"{_seconds(load)}, {amount}": rounds
        for load, sides in found.items()
        for amount, rounds in sides.items()
    }
    names = {name for rounds in columns.values() for each in rounds for name in each.cores}
    shares = {
        name: [median([each.cores.get(name, 0.0) for each in rounds]) for rounds in columns.values()]
        for name in names
    }
    shown = sorted(
        (name for name in names if max(shares[name]) >= _SHOWN), key=lambda name: -max(shares[name])
    )
    shares["all of these"] = [sum(share) for share in zip(*shares.values(), strict=True)]
    table(
        ["cores taken by", *columns],
        [[_name(name), *(f"{each:.2f}" for each in shares[name])] for name in (*shown, "all of these")],
    )


def _seconds(load: _Load) -> str:
    return f"{load.latency:g} s"


def _name(process: str) -> str:
    return "the store's stand-in" if process == _STORE_PROCESS else process


@asynccontextmanager
async def _system() -> AsyncIterator[tuple[str, Models, list[_Replicas]]]:
    """Run everything; yield what the store is, the model server, and the orchestrators of each side of the comparison.

    The shared store is the orchestrators' alone; any other service keeps a file of its own.
    """
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(run_server())
        models = await enter(model_server())
        embedding = {"embedding_fine": "endpoint", "embedding_fast": "endpoint"}
        convergence = await enter(service("convergence", **embedding, embedding_base_url=models.base_url))
        ratings = await enter(service("ratings", store=f"sqlite:///{folder}/ratings"))
        memory = await enter(
            service(
                "memory",
                store=f"sqlite:///{folder}/memory",
                vectors=f"edge:{folder}/vectors",
                convergence=convergence,
            )
        )
        gateways = [
            await enter(
                service(
                    "gateway",
                    f"gateway {number}",
                    store=f"sqlite:///{folder}/gateway-{number}",
                    model=MODEL,
                    OPENAI_API_KEY="bench",
                    OPENAI_BASE_URL=models.base_url,
                )
            )
            for number in range(1, _GATEWAYS + 1)
        ]
        systems = []
        for amount in _REPLICAS:
            store = server.database_url(f"parley_bench_{uuid.uuid4().hex[:8]}")
            addresses = [
                await enter(
                    service(
                        "orchestrator",
                        f"orchestrator {number} of {amount}",
                        store=store,
                        max_debates=str(_MAX_DEBATES),
                        gateway=f"ipv4:{','.join(gateways)}",
                        convergence=convergence,
                        ratings=ratings,
                        memory=memory,
                    )
                )
                for number in range(1, amount + 1)
            ]
            client = await enter(ParleyClient(f"ipv4:{','.join(addresses)}", patience=120))
            systems.append(_Replicas(amount, client, store))
        yield server.kind, models, systems


if __name__ == "__main__":
    main(__doc__, run)
