"""A tenant with many debates of large documents, as a process of its own, as `greedy_tenant.py` runs: it watches all, and some without reading."""

import asyncio
import json
import os
from dataclasses import dataclass
from typing import Final

import grpc
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from parley.v1 import orchestrator_pb2 as pb
from parley.v1.orchestrator_pb2_grpc import OrchestratorServiceStub
from tests.bench.greedy_tenant import Told, create_request, run_tenant

DOCUMENT_MODEL: Final = "document-model"
"""The model that its debates ask."""
_ROUTE: Final = f"other/{DOCUMENT_MODEL}"
_LINE: Final = "Words of a document. "
_STREAMS_A_CONNECTION: Final = 500
_OPENING: Final = 64


@dataclass(frozen=True, slots=True)
class DocumentGreed:
    """How much the tenant takes.

    Attributes:
        debates: Debates that it runs at a time, each with documents of its own.
        bytes: Of the documents of a debate.
        watches: Streams that it reads, of all its debates.
        stalled: Streams that it opens and does not read.
    """

    debates: int = 70
    bytes: int = 4_190_000
    watches: int = 1000
    stalled: int = 20


class _Tenant:
    def __init__(self, key: str, greed: DocumentGreed) -> None:
        self.told = Told()
        self._metadata = (("authorization", f"Bearer {key}"),)
        self._greed = greed
        self._debates: list[str] = []
        self._tried = 0
        self._all_tried = asyncio.Event()
        self._stalled: list[object] = []

    async def take(self, stubs: list[OrchestratorServiceStub], tasks: asyncio.TaskGroup) -> None:
        """Come to the limits, and stay there in tasks that do not end."""
        for place in range(self._greed.debates):
            tasks.create_task(self._run_debates(stubs[0], place))
        await self._all_tried.wait()
        opening = asyncio.Semaphore(_OPENING)
        for number in range(self._greed.watches):
            stub = stubs[1 + number // _STREAMS_A_CONNECTION]
            tasks.create_task(self._watch_again(stub, number, opening))
        for number in range(self._greed.stalled):
            tasks.create_task(self._stall(stubs[-1], number))

    async def _run_debates(self, stub: OrchestratorServiceStub, place: int) -> None:
        """Run one debate after the other."""
        number = 0
        while True:
            request = create_request(f"{place}-{number}", _ROUTE)
            text = f"Document {place}-{number}. " + _LINE * (self._greed.bytes // len(_LINE))
            request.spec.context.add(path="large.md", text=text[: self._greed.bytes])
            try:
                made = await stub.CreateDebate(request, metadata=self._metadata)
            except grpc.aio.AioRpcError as error:
                self._count("debate", error)
                self._note_try()
                del request, text
                await asyncio.sleep(_seconds_to_wait(error))
                continue
            del request, text
            self.told.count("debate", "OK")
            self._debates.append(made.debate_id)
            self._note_try()
            await self._watch(stub, made.debate_id, "its watch")
            number += 1

    def _note_try(self) -> None:
        self._tried += 1
        if self._tried >= self._greed.debates:
            self._all_tried.set()

    async def _watch_again(
        self, stub: OrchestratorServiceStub, number: int, opening: asyncio.Semaphore
    ) -> None:
        while True:
            async with opening:
                await self._watch(stub, self._debates[-1 - number % len(self._debates)], "watch")
            await asyncio.sleep(5.0)

    async def _watch(self, stub: OrchestratorServiceStub, debate: str, what: str) -> None:
        after = 0
        while True:
            request = pb.WatchDebateRequest(debate_id=debate, after_sequence=after)
            try:
                async for message in stub.WatchDebate(request, metadata=self._metadata):
                    after = message.event.sequence if message.HasField("event") else after
                    self.told.count(what, "OK")
            except grpc.aio.AioRpcError as error:
                self._count(what, error)
                await asyncio.sleep(_seconds_to_wait(error))
            else:
                return

    async def _stall(self, stub: OrchestratorServiceStub, number: int) -> None:
        """Open streams that are never read, one after the other."""
        while True:
            request = pb.WatchDebateRequest(debate_id=self._debates[-1 - number % len(self._debates)])
            call = stub.WatchDebate(request, metadata=self._metadata)
            code = await call.code()
            self.told.count("stalled", code.name)
            await asyncio.sleep(1.0)

    def _count(self, what: str, error: grpc.aio.AioRpcError) -> None:
        self.told.count(what, error.code().name)


def _seconds_to_wait(error: grpc.aio.AioRpcError) -> float:
    """Return the seconds that a refusal says; one second if it says none."""
    for name, value in error.trailing_metadata() or ():
        if name == "grpc-status-details-bin" and isinstance(value, bytes):
            for detail in Status.FromString(value).details:
                retry = RetryInfo()
                if detail.Unpack(retry):
                    return max(float(retry.retry_delay.seconds), 0.5)
    return 1.0


async def _main() -> None:
    greed = DocumentGreed(**json.loads(os.environ["GREED"]))
    tenant = _Tenant(os.environ["KEY"], greed)
    await run_tenant(tenant.take, tenant.told, 3 + greed.watches // _STREAMS_A_CONNECTION)


if __name__ == "__main__":
    asyncio.run(_main())
