"""Replicas of the gateway that make calls over one store, and the model that they ask."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parley.gateway.calls.registry import CallRegistry
from parley.gateway.calls.store import CallStore, call_key
from parley.gateway.calls.stream import RunningCall
from parley.gateway.routing.route import Route
from parley.storage.opening import open_store
from parley.storage.ports import StoreUnavailableError
from parley.v1.gateway_pb2 import CallId, GenerateCompleted, GenerateResponse
from tests.support.manual_clock import ManualClock

KEY = call_key(CallId(tenant="t", debate_id="deb-1", step="round/1/propose/ada", step_attempt=1))
LEASE = 60.0
"""Longer than any test: what is done within it was done at once."""
SHORT_LEASE = 1.0
"""For tests that see one end. A busy machine must let who lives say so within it."""


def answer(text: str) -> GenerateCompleted:
    return GenerateCompleted(text=text, route="p/m", model="m")


async def read_all(events: AsyncIterator[GenerateResponse]) -> list[GenerateResponse]:
    return [event async for event in events]


async def read_completed(events: AsyncIterator[GenerateResponse]) -> GenerateCompleted:
    last = (await read_all(events))[-1]
    assert last.HasField("completed")
    return last.completed


@dataclass
class Model:
    """Answers when it is let, and counts what it was asked."""

    asked: int = 0
    stopped: int = 0
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    text: str = "yes"

    async def __call__(self, call: RunningCall) -> GenerateCompleted:
        self.asked += 1
        call.start_route_attempt("p/m")
        call.add_text(self.text[:1])
        used = call.meter.of(Route("p/m", "p", "m"))
        used.requests, used.input_tokens = used.requests + 1, 30
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return answer(self.text)


def create_quick_model() -> Model:
    """Return a model that answers at once."""
    model = Model()
    model.may_answer.set()
    return model


class Replica:
    """One gateway's calls; `die` is what kill -9 does to them."""

    def __init__(self, store: CallStore, calls: CallRegistry) -> None:
        self.store, self.calls = store, calls
        self.keeping = asyncio.create_task(calls.keep())

    def ask(
        self, model: Any, key: str | None = KEY, digest: str = "d", *, records: bool = False
    ) -> AsyncIterator[GenerateResponse]:
        return self.calls.listen(key, lambda: digest, model, records=records)

    async def die(self) -> None:
        self.keeping.cancel()

        async def fail_as_gone(*_: object) -> bool:
            raise StoreUnavailableError("dead")

        self.store.end = fail_as_gone  # type: ignore[method-assign, assignment]


@asynccontextmanager
async def replicas(
    folder: Path, count: int = 1, clock: ManualClock | None = None, lease: float = LEASE
) -> AsyncIterator[list[Replica]]:
    async with AsyncExitStack() as stack:
        made = []
        for _ in range(count):
            opened = await stack.enter_async_context(open_store(f"sqlite:///{folder}", "gateway"))
            store = CallStore(opened.documents, clock or ManualClock())
            await store.prepare()
            made.append(Replica(store, CallRegistry(store, lease)))
        try:
            yield made
        finally:
            for each in made:
                each.keeping.cancel()
                await each.calls.close(0)
