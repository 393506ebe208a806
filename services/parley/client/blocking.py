"""The clients for programs without asyncio: every call waits for its answer, and what is iterated comes as it is asked for.

with SyncParleyClient("localhost:7401") as parley:
    debate_id = parley.create_debate(DebateSpec(question="Which database?"))
    for event in parley.watch(debate_id):
        print(event)
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import wraps
from types import TracebackType
from typing import Concatenate, Final, Generic, ParamSpec, Self, TypeVar

from parley.client.agents import GatewayClient
from parley.client.connection import Connection
from parley.client.debates import ParleyClient
from parley.client.export import export
from parley.client.ratings import RatingsClient

__all__ = ["SyncConnection", "SyncGatewayClient", "SyncParleyClient", "SyncRatingsClient"]

_END: Final = object()

Client = TypeVar("Client", bound=Connection)
Given = ParamSpec("Given")
Item = TypeVar("Item")
Answer = TypeVar("Answer")


class SyncConnection(Generic[Client]):
    """What these clients have in common; use it as `with`. Several threads may use one at a time.

    The client runs in a thread of its own. A call that is interrupted, as by Ctrl-C, is cancelled. At the end of the block those of
    other threads are too: they raise RuntimeError.
    """

    _kind: type[Client]

    def __init__(
        self,
        target: str,
        tenant: str = "default",
        *,
        patience: float = 30.0,
        token: str | None = None,
        ca: str | None = None,
    ) -> None:
        """Take what the client that runs beneath takes."""
        self._client = self._kind(target, tenant, patience=patience, token=token, ca=ca)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn = threading.RLock()
        """Whose turn it is to hand the loop something, so that nothing is handed to one that has stopped."""

    def __enter__(self) -> Self:
        """Open the connection. Raise ConfigurationError where what says who calls cannot be used, or would be sent in the clear."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_run, args=[self._loop], name="parley-client", daemon=True)
        self._thread.start()
        try:
            self._wait(self._client.__aenter__)
        except BaseException:
            self._stop(self._loop)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._turn:
            loop, self._loop = self._loop, None
        if loop is not None:
            try:
                asyncio.run_coroutine_threadsafe(self._closed(kind, error, trace), loop).result()
            finally:
                self._stop(loop)

    async def _closed(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what other threads still wait for, then the connection."""
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_asyncgens()
        await self._client.__aexit__(kind, error, trace)

    def _stop(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = None
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join()

    def _wait(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        answer = self._asked(ask)
        try:
            return answer.result()
        except CancelledError:
            raise RuntimeError("the client was closed before the answer came") from None
        except BaseException:
            answer.cancel()
            raise

    def _asked(self, ask: Callable[[], Awaitable[Answer]]) -> Future[Answer]:
        async def answered() -> Answer:
            return await ask()

        with self._turn:
            if self._loop is None:
                raise RuntimeError("the client is not open: use it as `with`")
            return asyncio.run_coroutine_threadsafe(answered(), self._loop)

    def _end(self, close: Callable[[], Awaitable[None]]) -> None:
        """End an iteration. What is collected in the client's own thread cannot be waited for there."""
        with self._turn:
            if self._loop is None:
                return
            ended = self._asked(close)
        if threading.current_thread() is not self._thread:
            with suppress(CancelledError):  # the client was closed meanwhile
                ended.result()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def _waiting(
    method: Callable[Concatenate[Client, Given], Awaitable[Answer]],
) -> Callable[Concatenate[SyncConnection[Client], Given], Answer]:
    """Return the method that waits for the answer of this one."""

    @wraps(method)
    def wait(self: SyncConnection[Client], /, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        return self._wait(lambda: method(self._client, *args, **kwargs))

    return wait


def _iterating(
    method: Callable[Concatenate[Client, Given], AsyncGenerator[Item, None]],
) -> Callable[Concatenate[SyncConnection[Client], Given], Generator[Item, None, None]]:
    """Return the method that iterates over what this one yields."""

    @wraps(method)
    def iterate(
        self: SyncConnection[Client], /, *args: Given.args, **kwargs: Given.kwargs
    ) -> Generator[Item, None, None]:
        found, turn = method(self._client, *args, **kwargs), asyncio.Lock()

        async def following() -> object:
            async with turn:
                return await anext(found, _END)

        async def end() -> None:
            async with turn:  # one that was interrupted ends first
                await found.aclose()

        try:
            while (item := self._wait(following)) is not _END:
                yield item  # type: ignore[misc]
        finally:
            self._end(end)

    return iterate


class SyncParleyClient(SyncConnection[ParleyClient]):
    """Debates of one tenant at an orchestrator: `ParleyClient`, method by method; and `export`."""

    _kind = ParleyClient

    create_debate = _waiting(ParleyClient.create_debate)
    get = _waiting(ParleyClient.get)
    summary = _waiting(ParleyClient.summary)
    answer_of = _waiting(ParleyClient.answer_of)
    contributions = _iterating(ParleyClient.contributions)
    list = _iterating(ParleyClient.list)
    watch = _iterating(ParleyClient.watch)
    read_log = _iterating(ParleyClient.read_log)
    report = _waiting(ParleyClient.report)
    decision = _waiting(ParleyClient.decision)
    submit_feedback = _waiting(ParleyClient.submit_feedback)
    delete = _waiting(ParleyClient.delete)
    cancel = _waiting(ParleyClient.cancel)
    pause = _waiting(ParleyClient.pause)
    resume = _waiting(ParleyClient.resume)
    end_rounds = _waiting(ParleyClient.end_rounds)
    guide = _waiting(ParleyClient.guide)
    mute = _waiting(ParleyClient.mute)
    unmute = _waiting(ParleyClient.unmute)
    go_on = _waiting(ParleyClient.go_on)
    answer = _waiting(ParleyClient.answer)
    approve = _waiting(ParleyClient.approve)
    create_key = _waiting(ParleyClient.create_key)
    list_keys = _iterating(ParleyClient.list_keys)
    revoke_key = _waiting(ParleyClient.revoke_key)
    export = _waiting(export)


class SyncGatewayClient(SyncConnection[GatewayClient]):
    """Agents and routes of a gateway: `GatewayClient`, method by method."""

    _kind = GatewayClient

    agents = _waiting(GatewayClient.agents)
    routes = _waiting(GatewayClient.routes)


class SyncRatingsClient(SyncConnection[RatingsClient]):
    """Ratings of one tenant's agents: `RatingsClient`, method by method."""

    _kind = RatingsClient

    list = _iterating(RatingsClient.list)
