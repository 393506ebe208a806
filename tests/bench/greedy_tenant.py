"""A tenant that takes all it can get, as a process of its own: prints `ready` once it is at its limits, and what it did when stdin ends."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar

import grpc

from parley.runtime.channel import channel
from parley.v1 import orchestrator_pb2 as pb
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import ContextDocument, DebateSpec, Participant
from parley.v1.orchestrator_pb2_grpc import OrchestratorServiceStub
from parley.v1.panel_pb2 import PanelSettings
from tests.bench.environment import MODEL

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

DEAD_MODEL: Final = "dead-model"
"""The model that its debates ask."""
_ROUTE: Final = f"openai/{DEAD_MODEL}"
_STREAMS_A_CONNECTION: Final = 1000
_WORKERS: Final = 32
_STARTS_WITHIN: Final = 300.0


Answer = TypeVar("Answer")
Greedy = TypeVar("Greedy", bound="DataclassInstance")
Take = Callable[[list[OrchestratorServiceStub], asyncio.TaskGroup], Awaitable[None]]
"""Comes to the limits, and stays there in tasks that do not end."""


@dataclass(frozen=True, slots=True)
class Greed:
    """How much the tenant tries to take.

    Attributes:
        debates: On a model that says nothing.
        watches: Streams that it tries to open.
        requests: Calls that it makes each second once it has these; 0: as many as are answered, of 32 at a time.
        parts: Documents of a debate that it asks for twice a second; 0: it asks for none.
        documents: Debates with 4 MiB of documents that it holds at a time, on a model that answers.
    """

    debates: int = 64
    watches: int = 10_000
    requests: int = 400
    parts: int = 60_000
    documents: int = 0


@dataclass(slots=True)
class Told:
    """What became of it: how often each answer was heard, by what was asked for, and in how many seconds."""

    seconds: float = 0.0
    answers: dict[str, dict[str, int]] = field(default_factory=dict)

    def count(self, what: str, answer: str) -> None:
        """Count an answer."""
        counts = self.answers.setdefault(what, {})
        counts[answer] = counts.get(answer, 0) + 1


@asynccontextmanager
async def greedy_tenant(
    address: str, key: str, greed: "DataclassInstance", module: str = "tests.bench.greedy_tenant"
) -> AsyncIterator[dict[str, Any]]:
    """Run a module as the tenant at its limits while the block runs; what it counted is in the yielded dict after the block."""
    environment = os.environ | {"ADDRESS": address, "KEY": key, "GREED": json.dumps(asdict(greed))}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module),
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 20,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    told: dict[str, Any] = {}
    try:
        async with asyncio.timeout(_STARTS_WITHIN):
            assert await process.stdout.readline() == b"ready\n", "the greedy tenant did not start"
        yield told
        process.stdin.close()
        told |= json.loads(await process.stdout.readline())
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


class _Tenant:
    def __init__(self, key: str, greed: Greed) -> None:
        self._metadata = (("authorization", f"Bearer {key}"),)
        self._greed = greed
        self._debates: list[str] = []
        self.told = Told()

    async def take(self, stubs: list[OrchestratorServiceStub], tasks: asyncio.TaskGroup) -> None:
        """Come to the limits, and stay there in tasks that do not end."""
        for number in range(self._greed.debates):
            made = await self._asked(
                "debate", stubs[0].CreateDebate(create_request(str(number)), metadata=self._metadata)
            )
            if made is not None:
                self._debates.append(made.debate_id)
        opening = asyncio.Semaphore(4 * _WORKERS)
        async with asyncio.TaskGroup() as opened:
            for number in range(self._greed.watches):
                stub = stubs[1 + number // _STREAMS_A_CONNECTION]
                opened.create_task(self._watch(stub, number, opening, tasks))
        await self._settled()
        if self._debates:
            self._flood(stubs[0], tasks)
        if self._greed.parts:
            tasks.create_task(self._ask_for_parts(stubs[0]))
        for number in range(self._greed.documents):
            tasks.create_task(self._hold_large_debates(stubs[1], number))

    async def _settled(self) -> None:
        """Wait until the streams have brought what there was already."""
        before, heard = -1, 0
        while heard != before:
            await asyncio.sleep(1.0)
            before, heard = heard, self.told.answers.get("watch, later", {}).get("OK", 0)

    def _flood(self, stub: OrchestratorServiceStub, tasks: asyncio.TaskGroup) -> None:
        """Make calls at a steady rate, whether or not they are answered, or as fast as they are."""
        rate = self._greed.requests
        for number in range(_WORKERS):
            tasks.create_task(self._call(stub, number * (_WORKERS / rate / _WORKERS) if rate else 0.0))

    async def _call(self, stub: OrchestratorServiceStub, after: float) -> None:
        pause = _WORKERS / self._greed.requests if self._greed.requests else 0.0
        due = time.monotonic() + after
        while True:
            await asyncio.sleep(max(due - time.monotonic(), 0.0))
            due += pause
            debate = self._debates[int(due * 1000) % len(self._debates)]
            await self._asked(
                "request", stub.GetDebate(pb.GetDebateRequest(debate_id=debate), metadata=self._metadata)
            )

    async def _watch(
        self, stub: OrchestratorServiceStub, number: int, opening: asyncio.Semaphore, tasks: asyncio.TaskGroup
    ) -> None:
        async with opening:
            request = pb.WatchDebateRequest(debate_id=self._debates[number % len(self._debates)])
            call = stub.WatchDebate(request, metadata=self._metadata)
            if await self._asked("watch", call.read()) is not None:
                tasks.create_task(self._read_on(call))

    async def _read_on(
        self, call: "grpc.aio.UnaryStreamCall[pb.WatchDebateRequest, pb.WatchDebateResponse]"
    ) -> None:
        while await self._asked("watch, later", call.read()) not in (None, grpc.aio.EOF):
            pass

    async def _ask_for_parts(self, stub: OrchestratorServiceStub) -> None:
        request = create_request("parts")
        request.spec.context.extend(
            ContextDocument(path=f"{number}.md", text="x") for number in range(self._greed.parts)
        )
        while True:
            await self._asked("parts", stub.CreateDebate(request, metadata=self._metadata))
            await asyncio.sleep(0.5)

    async def _hold_large_debates(self, stub: OrchestratorServiceStub, place: int) -> None:
        """Hold one debate with large documents after the other."""
        for number in count():
            request = create_request(f"large-{place}-{number}", f"openai/{MODEL}")
            request.spec.context.add(path="large.md", text="Words of a document. " * 199_000)
            made = await self._asked("large", stub.CreateDebate(request, metadata=self._metadata))
            if made is None:
                await asyncio.sleep(0.5)
                continue
            call = stub.WatchDebate(pb.WatchDebateRequest(debate_id=made.debate_id), metadata=self._metadata)
            while await self._asked("large, its events", call.read()) not in (None, grpc.aio.EOF):
                pass

    async def _asked(self, what: str, call: Awaitable[Answer]) -> Answer | None:
        """Return the answer, and count what it was; None where the call was refused."""
        try:
            answer = await call
        except grpc.aio.AioRpcError as error:
            self.told.count(what, error.code().name)
            return None
        self.told.count(what, "OK")
        return answer


def create_request(name: str, route: str = _ROUTE) -> pb.CreateDebateRequest:
    """Return a request for a debate of three agents on a route."""
    spec = DebateSpec(
        question=f"What is to be done about {name}?",
        agents=[
            Participant(agent=Agent(id=f"agent-{each}", role="architect", routes=[route]))
            for each in (1, 2, 3)
        ],
        judge=Participant(agent=Agent(id="judge", role="generalist", routes=[route])),
        panel=PanelSettings(rounds=1),
    )
    return pb.CreateDebateRequest(request_id=f"greedy-{name}", spec=spec)


def read_greed(usual: Greedy) -> Greedy:
    """Return how much a tenant takes: as usual, but where `PARLEY_BENCH_WATCHES=0` and the like say otherwise."""
    amounts = asdict(usual).items()
    return replace(
        usual, **{name: int(os.environ.get(f"PARLEY_BENCH_{name.upper()}", many)) for name, many in amounts}
    )


async def run_tenant(take: Take, told: Told, connections: int) -> None:
    """Run the tenant's process: it takes all it can get over so many connections until stdin ends, and then prints what it counted."""
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(channel(os.environ["ADDRESS"])) for _ in range(connections)]
        async with asyncio.TaskGroup() as tasks:
            await take([OrchestratorServiceStub(each) for each in opened], tasks)
            print("ready", flush=True)
            began = time.monotonic()
            await asyncio.to_thread(sys.stdin.read)
            told.seconds = time.monotonic() - began
            print(json.dumps(asdict(told)), flush=True)
            os._exit(0)  # thousands of streams need no farewell


async def _main() -> None:
    greed = Greed(**json.loads(os.environ["GREED"]))
    tenant = _Tenant(os.environ["KEY"], greed)
    await run_tenant(tenant.take, tenant.told, 2 + greed.watches // _STREAMS_A_CONNECTION)


if __name__ == "__main__":
    asyncio.run(_main())
