"""Admits a tenant's calls and debates while it keeps within its limits."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from typing import Final
from weakref import WeakValueDictionary

from google.protobuf import descriptor_pool
from msgspec import Struct, field

from parley.orchestrator.allowance.limits import REQUEST_BYTES, TenantLimits
from parley.orchestrator.allowance.usage import TenantUsage, key_account
from parley.orchestrator.log.debate_record import PENDING, RUNNING, WAITING
from parley.orchestrator.log.index import DebateIndex
from parley.runtime.byte_budget import ByteBudget
from parley.runtime.clock import Clock
from parley.runtime.errors import ParleyError, resource_exhausted
from parley.v1.access_pb2 import (
    CALL_QUEUE_CREATE,
    CALL_QUEUE_INTERVENE,
    CALL_QUEUE_READ,
    CALL_QUEUE_SEND,
    CallQueue,
)
from parley.v1.access_pb2 import queue as queue_option
from parley.v1.key_pb2 import KeyBudget

_CALLS_AT_ONCE: Final[Mapping[CallQueue.ValueType, int]] = {
    CALL_QUEUE_READ: 2,
    CALL_QUEUE_SEND: 4,
    CALL_QUEUE_CREATE: 8,
    CALL_QUEUE_INTERVENE: 32,
}
"""How many calls of a tenant in each queue run at a time. A call takes milliseconds of the loop, so more at once end no sooner,
and other tenants would wait behind all of them. Calls that wait for a client or for a debate's owner have their own queues."""
_DELAY_SECONDS: Final = 1.0
_MAX_DELAYED: Final = 256
"""Refusals of a tenant that are delayed at a time. More of them would only take memory."""
_RECOUNT_SECONDS: Final = 1.0
"""How often the debates of a tenant are counted. Those created here in between are added."""
_RETRY_SOON_SECONDS: Final = 5.0
_LARGE_REQUEST: Final = 256 * 1024
_REQUEST_SECONDS: Final = 10.0
"""How long a large request waits for others."""
_MINUTE: Final = 60
_DAY: Final = 86_400


class _DebateCounts(Struct):
    """How many debates a tenant had at `counted_at`, and created here since."""

    running: int
    waiting: int
    counted_at: float
    created: int = 0


class Allowance(Struct, frozen=True):
    """Admits calls and debates of each tenant.

    Attributes:
        large_requests: Bounds the bytes of large requests for debates that are worked on at a time.
    """

    limits: TenantLimits
    usage: TenantUsage
    index: DebateIndex
    clock: Clock
    large_requests: ByteBudget = field(default_factory=lambda: ByteBudget(REQUEST_BYTES))
    _debates: dict[str, _DebateCounts] = field(default_factory=dict)
    _creating: Counter[str] = field(default_factory=Counter)
    _slots: WeakValueDictionary[tuple[str, int], asyncio.Semaphore] = field(
        default_factory=WeakValueDictionary
    )
    _delayed: Counter[str] = field(default_factory=Counter)

    @asynccontextmanager
    async def admit_call(self, method: str, tenant: str) -> AsyncIterator[None]:
        """Admit a call (`parley.v1.OrchestratorService/GetDebate`) and count it while the block runs.

        Calls of a tenant wait in the queue that the contract names for the RPC, so that no tenant waits behind all
        calls of another. A refusal of too many requests comes a second late, or retries would take most of the loop.
        Raise ParleyError: RESOURCE_EXHAUSTED `TENANT_REQUESTS` or `TENANT_WATCHES`.
        """
        await self._check_requests(tenant)
        await self.usage.count(tenant, requests=1)
        queue, is_stream = _find_queue(method)
        async with AsyncExitStack() as stack:
            if is_stream:
                await self._check_watches(tenant)
                stack.enter_context(self.usage.track_watch(tenant))
            if queue in _CALLS_AT_ONCE:
                slots = self._slots.setdefault((tenant, queue), asyncio.Semaphore(_CALLS_AT_ONCE[queue]))
                await stack.enter_async_context(slots)
            yield

    @asynccontextmanager
    async def admit_request(self, tenant: str, size: int) -> AsyncIterator[None]:
        """Admit a request for a debate of so many bytes, of which the block makes copies. It waits while others take too many.

        Raises:
            ParleyError: RESOURCE_EXHAUSTED `TENANT_REQUEST_BYTES` if it had to wait for long.
        """
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                share = await self.large_requests.take(size if size > _LARGE_REQUEST else 0)
        except TimeoutError:
            what = "its large requests wait for each other"
            raise _refusal("TENANT_REQUEST_BYTES", tenant, what, _RETRY_SOON_SECONDS) from None
        try:
            yield
        finally:
            share.release()

    @asynccontextmanager
    async def admit_debate(
        self, tenant: str, budget: KeyBudget | None = None, key_id: str = ""
    ) -> AsyncIterator[None]:
        """Admit one more debate of a tenant, which the block creates; it is not counted if the block raises.

        With `budget`, its calls also count against that budget, of the key `key_id`. Raise ParleyError: RESOURCE_EXHAUSTED
        `TENANT_DEBATES`, `TENANT_WAITING`, `TENANT_TOKENS`, `TENANT_COST`, `TENANT_BYTES`, `KEY_TOKENS` or `KEY_COST`.
        """
        day_ends = _DAY - int(self.clock.now().timestamp()) % _DAY
        await self._check_use(tenant, day_ends)
        if budget is not None:
            await self._check_budget(tenant, key_id, budget, day_ends)
        if not (self.limits.debates or self.limits.waiting):
            yield
            return
        await self._check_debates(tenant)
        self._creating[tenant] += 1
        try:
            yield
            if (known := self._debates.get(tenant)) is not None:
                known.created += 1
        finally:
            self._creating[tenant] -= 1
            if not self._creating[tenant]:
                del self._creating[tenant]

    async def _check_use(self, tenant: str, day_ends: int) -> None:
        limits, used = self.limits, await self.usage.get_counts(tenant)
        if _is_over(used.tokens, limits.tokens):
            raise _refusal("TENANT_TOKENS", tenant, "its tokens of today are used up", day_ends)
        if _is_over(used.cost_micros, limits.cost_micros):
            raise _refusal("TENANT_COST", tenant, "its money of today is used up", day_ends)
        if _is_over(used.stored_bytes, limits.stored_bytes):
            raise _refusal("TENANT_BYTES", tenant, "its storage is full; delete debates", _DAY)

    async def _check_debates(self, tenant: str) -> None:
        limits, debates = self.limits, await self._count_debates(tenant)
        if _is_over(debates.running + debates.created + self._creating[tenant], limits.debates):
            what = f"{limits.debates} of its debates run or wait to run, which is its limit"
            raise _refusal("TENANT_DEBATES", tenant, what, _RETRY_SOON_SECONDS)
        if _is_over(debates.waiting, limits.waiting):
            what = f"{limits.waiting} of its debates wait for a person or a provider, which is its limit"
            raise _refusal("TENANT_WAITING", tenant, what, _MINUTE)

    async def _check_budget(self, tenant: str, key_id: str, budget: KeyBudget, day_ends: int) -> None:
        used = await self.usage.get_counts(key_account(tenant, key_id))
        for reason, is_over, what in (
            ("KEY_TOKENS", _is_over(used.tokens, budget.tokens_per_day), "tokens"),
            ("KEY_COST", _is_over(used.cost_micros, budget.cost_micros_per_day), "money"),
        ):
            if is_over:
                message = f"key {key_id}: what its budget has of {what} for today is used up; try again in {day_ends} s"
                raise resource_exhausted(reason, message, retry_after=float(day_ends))

    async def _count_debates(self, tenant: str) -> _DebateCounts:
        now = self.clock.monotonic()
        known = self._debates.get(tenant)
        if known is None or now >= known.counted_at + _RECOUNT_SECONDS:
            for each in [name for name, old in self._debates.items() if now >= old.counted_at + _MINUTE]:
                del self._debates[each]
            running = await self.index.count(tenant, (PENDING, RUNNING), self.limits.debates)
            waiting = await self.index.count(tenant, (WAITING,), self.limits.waiting)
            known = self._debates[tenant] = _DebateCounts(running, waiting, now)
        return known

    async def _check_requests(self, tenant: str) -> None:
        used = await self.usage.get_counts(tenant)
        if _is_over(used.requests, self.limits.requests):
            await self._delay_refusal(tenant)
            left = _MINUTE - int(self.clock.now().timestamp()) % _MINUTE
            what = f"its {self.limits.requests} requests of this minute are used up"
            raise _refusal("TENANT_REQUESTS", tenant, what, left)

    async def _delay_refusal(self, tenant: str) -> None:
        if self._delayed[tenant] >= _MAX_DELAYED:
            return
        self._delayed[tenant] += 1
        try:
            await self.clock.sleep(_DELAY_SECONDS)
        finally:
            self._delayed[tenant] -= 1
            if not self._delayed[tenant]:
                del self._delayed[tenant]

    async def _check_watches(self, tenant: str) -> None:
        if self.limits.watches and _is_over(await self.usage.count_watches(tenant), self.limits.watches):
            what = f"it has {self.limits.watches} open streams, which is its limit"
            raise _refusal("TENANT_WATCHES", tenant, what, _RETRY_SOON_SECONDS)


@cache
def _find_queue(method: str) -> tuple[CallQueue.ValueType, bool]:
    """Return the queue of an RPC of the orchestrator, and whether it sends a stream. An RPC without a queue option uses the queue of reads."""
    found = descriptor_pool.Default().FindMethodByName(method.replace("/", "."))
    named: CallQueue.ValueType = found.GetOptions().Extensions[queue_option]
    return named or CALL_QUEUE_READ, found.server_streaming


def _is_over(used: int, limit: int) -> bool:
    return bool(limit) and used >= limit


def _refusal(reason: str, tenant: str, what: str, after: float) -> ParleyError:
    message = f"tenant {tenant}: {what}; try again in {after:.0f} s"
    return resource_exhausted(reason, message, retry_after=float(after))
