"""The clients for programs without asyncio: every call waits for its answer, and iterators fetch items as they are needed.

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

from parley.client.connection import Connection
from parley.client.debates import ParleyClient
from parley.client.export import export
from parley.client.listings import GatewayClient, RatingsClient

_END: Final = object()

Client = TypeVar("Client", bound=Connection)
Params = ParamSpec("Params")
Item = TypeVar("Item")
Answer = TypeVar("Answer")


class SyncConnection(Generic[Client]):
    """The common part of these clients; use it as `with`. Several threads may use one client.

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
        """Take the arguments of the client without `Sync`."""
        self._client = self._kind(target, tenant, patience=patience, token=token, ca=ca)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn = threading.RLock()
        """Guards the loop, so that nothing is submitted to a stopped one."""

    def __enter__(self) -> Self:
        """Open the connection. Raise ConfigurationError if the credentials cannot be used, or would be sent without TLS."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=_run_loop, args=[self._loop], name="parley-client", daemon=True
        )
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
                asyncio.run_coroutine_threadsafe(self._close(kind, error, trace), loop).result()
            finally:
                self._stop(loop)

    async def _close(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel the calls of other threads, then close the connection."""
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
        answer = self._submit(ask)
        try:
            return answer.result()
        except CancelledError:
            raise RuntimeError("the client was closed before the response came") from None
        except BaseException:
            answer.cancel()
            raise

    def _submit(self, ask: Callable[[], Awaitable[Answer]]) -> Future[Answer]:
        async def run() -> Answer:
            return await ask()

        with self._turn:
            if self._loop is None:
                raise RuntimeError("the client is not open: use it as `with`")
            return asyncio.run_coroutine_threadsafe(run(), self._loop)

    def _end_iteration(self, close: Callable[[], Awaitable[None]]) -> None:
        """End an iteration. If it is garbage collected in the client's own thread, do not wait there."""
        with self._turn:
            if self._loop is None:
                return
            ended = self._submit(close)
        if threading.current_thread() is not self._thread:
            with suppress(CancelledError):  # the client was closed by now
                ended.result()


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def _blocking_call(
    method: Callable[Concatenate[Client, Params], Awaitable[Answer]],
) -> Callable[Concatenate[SyncConnection[Client], Params], Answer]:
    """Return the blocking form of a method."""

    @wraps(method)
    def wait(self: SyncConnection[Client], /, *args: Params.args, **kwargs: Params.kwargs) -> Answer:
        return self._wait(lambda: method(self._client, *args, **kwargs))

    return wait


def _blocking_iterator(
    method: Callable[Concatenate[Client, Params], AsyncGenerator[Item, None]],
) -> Callable[Concatenate[SyncConnection[Client], Params], Generator[Item, None, None]]:
    """Return the blocking form of a method that yields items."""

    @wraps(method)
    def iterate(
        self: SyncConnection[Client], /, *args: Params.args, **kwargs: Params.kwargs
    ) -> Generator[Item, None, None]:
        found, turn = method(self._client, *args, **kwargs), asyncio.Lock()

        asked: asyncio.Task[object] | None = None

        async def next_item() -> object:
            nonlocal asked
            async with turn:
                asked = asyncio.current_task()
                return await anext(found, _END)

        async def close() -> None:
            if asked is not None:
                asked.cancel()  # an interruption may have come before the wait that would have done it
            async with turn:  # a call that was interrupted ends first
                await found.aclose()

        try:
            while (item := self._wait(next_item)) is not _END:
                yield item  # type: ignore[misc]
        finally:
            self._end_iteration(close)

    return iterate


class SyncParleyClient(SyncConnection[ParleyClient]):
    """Debates of one tenant at an orchestrator: `ParleyClient`, method by method; and `export`."""

    _kind = ParleyClient

    # made by make protos: ParleyClient
    create_debate = _blocking_call(ParleyClient.create_debate)
    estimate_debate = _blocking_call(ParleyClient.estimate_debate)
    get = _blocking_call(ParleyClient.get)
    get_summary = _blocking_call(ParleyClient.get_summary)
    get_answer = _blocking_call(ParleyClient.get_answer)
    list_contributions = _blocking_iterator(ParleyClient.list_contributions)
    list = _blocking_iterator(ParleyClient.list)
    watch = _blocking_iterator(ParleyClient.watch)
    read_log = _blocking_iterator(ParleyClient.read_log)
    get_report = _blocking_call(ParleyClient.get_report)
    get_decision = _blocking_call(ParleyClient.get_decision)
    get_analysis = _blocking_call(ParleyClient.get_analysis)
    submit_feedback = _blocking_call(ParleyClient.submit_feedback)
    delete = _blocking_call(ParleyClient.delete)
    search_memory = _blocking_iterator(ParleyClient.search_memory)
    get_memory = _blocking_call(ParleyClient.get_memory)
    forget_memory = _blocking_call(ParleyClient.forget_memory)
    list_patterns = _blocking_iterator(ParleyClient.list_patterns)
    list_positions = _blocking_iterator(ParleyClient.list_positions)
    list_moments = _blocking_iterator(ParleyClient.list_moments)
    list_agents = _blocking_call(ParleyClient.list_agents)
    list_ratings = _blocking_iterator(ParleyClient.list_ratings)
    list_matches = _blocking_iterator(ParleyClient.list_matches)
    get_persona = _blocking_call(ParleyClient.get_persona)
    list_relationships = _blocking_iterator(ParleyClient.list_relationships)
    cancel = _blocking_call(ParleyClient.cancel)
    pause = _blocking_call(ParleyClient.pause)
    resume = _blocking_call(ParleyClient.resume)
    end_rounds = _blocking_call(ParleyClient.end_rounds)
    guide = _blocking_call(ParleyClient.guide)
    mute = _blocking_call(ParleyClient.mute)
    unmute = _blocking_call(ParleyClient.unmute)
    continue_debate = _blocking_call(ParleyClient.continue_debate)
    answer = _blocking_call(ParleyClient.answer)
    approve = _blocking_call(ParleyClient.approve)
    create_key = _blocking_call(ParleyClient.create_key)
    list_keys = _blocking_iterator(ParleyClient.list_keys)
    revoke_key = _blocking_call(ParleyClient.revoke_key)
    list_audit_entries = _blocking_iterator(ParleyClient.list_audit_entries)
    read_audit_log = _blocking_iterator(ParleyClient.read_audit_log)
    verify_audit_log = _blocking_call(ParleyClient.verify_audit_log)
    create_hook = _blocking_call(ParleyClient.create_hook)
    list_hooks = _blocking_iterator(ParleyClient.list_hooks)
    delete_hook = _blocking_call(ParleyClient.delete_hook)
    rotate_hook_secret = _blocking_call(ParleyClient.rotate_hook_secret)
    test_hook = _blocking_call(ParleyClient.test_hook)
    list_deliveries = _blocking_iterator(ParleyClient.list_deliveries)
    resend_delivery = _blocking_call(ParleyClient.resend_delivery)
    get_receipt = _blocking_call(ParleyClient.get_receipt)
    import_debate = _blocking_call(ParleyClient.import_debate)
    list_receipt_keys = _blocking_call(ParleyClient.list_receipt_keys)
    # end of ParleyClient
    export = _blocking_call(export)


class SyncGatewayClient(SyncConnection[GatewayClient]):
    """Agents and routes of a gateway: `GatewayClient`, method by method."""

    _kind = GatewayClient

    # made by make protos: GatewayClient
    list_agents = _blocking_call(GatewayClient.list_agents)
    list_routes = _blocking_call(GatewayClient.list_routes)
    # end of GatewayClient


class SyncRatingsClient(SyncConnection[RatingsClient]):
    """Ratings of one tenant's agents: `RatingsClient`, method by method."""

    _kind = RatingsClient

    # made by make protos: RatingsClient
    list = _blocking_iterator(RatingsClient.list)
    # end of RatingsClient
