"""Lets a tenant in as long as it keeps within its limits."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

from parley.orchestrator.allowance.limits import TenantLimits
from parley.orchestrator.allowance.use import TenantUse
from parley.orchestrator.log.index import PENDING, RUNNING, WAITING, DebateIndex
from parley.runtime.clock import Clock
from parley.runtime.errors import ParleyError, resource_exhausted

__all__ = ["Allowance"]

_STREAMS: Final = frozenset({"WatchDebate", "ReadLog", "StreamReport"})
_READING: Final = (
    "GetAnswer",
    "GetDebate",
    "GetDecision",
    "GetReport",
    "ListContributions",
    "ListDebates",
    "SubmitFeedback",
)
_TURNS: Final = (
    dict.fromkeys(_READING, ("reading", 2))
    | dict.fromkeys(("StreamReport", "ReadLog"), ("sending", 4))
    | dict.fromkeys(("CreateDebate", "DeleteDebate"), ("asking", 8))
    | {"Intervene": ("intervening", 32)}
)
"""Of which calls how many of a tenant are worked on at a time: each takes milliseconds of the loop, more are no sooner done, and
others would wait behind all of them. Those that wait for a reader, or for a debate's owner, leave no place of the others' taken."""
_LATE_SECONDS: Final = 1.0
_LATE_AT_ONCE: Final = 256
"""Refusals of a tenant that are told late, at a time; beyond them, it would only have the memory of more."""
_LOOK_SECONDS: Final = 1.0
"""Time between two looks at how many debates a tenant has; those made here meanwhile are added."""
_SOON: Final = 5.0
_MINUTE: Final = 60
_DAY: Final = 86_400


@dataclass(slots=True)
class _Debates:
    """How many debates a tenant had when somebody last looked, and has made here since."""

    running: int
    waiting: int
    looked_at: float
    made: int = 0


@dataclass(frozen=True, slots=True)
class Allowance:
    """What each tenant may still do."""

    limits: TenantLimits
    use: TenantUse
    index: DebateIndex
    clock: Clock
    _debates: dict[str, _Debates] = field(default_factory=dict)
    _making: Counter[str] = field(default_factory=Counter)
    _turns: WeakValueDictionary[tuple[str, str], asyncio.Semaphore] = field(
        default_factory=WeakValueDictionary
    )
    _late: Counter[str] = field(default_factory=Counter)

    @asynccontextmanager
    async def call(self, method: str, tenant: str) -> AsyncIterator[None]:
        """Let a call in (`parley.v1.OrchestratorService/GetDebate`) and count it while the block runs.

        So many calls of a kind are worked on for a tenant at a time; the others wait their turn, so that no tenant waits behind all
        calls of another.
        That a tenant has made too many is told a second late: who asks again at once would else have most of the loop to be refused in.

        Raises:
            ParleyError: RESOURCE_EXHAUSTED `TENANT_REQUESTS` or `TENANT_WATCHES`.
        """
        await self._check_requests(tenant)
        await self.use.count(tenant, requests=1)
        name = method.rpartition("/")[2]
        async with AsyncExitStack() as stack:
            if name in _STREAMS:
                await self._check_watches(tenant)
                stack.enter_context(self.use.watching(tenant))
            if name in _TURNS:
                kind, at_once = _TURNS[name]
                turns = self._turns.setdefault((tenant, kind), asyncio.Semaphore(at_once))
                await stack.enter_async_context(turns)
            yield

    @asynccontextmanager
    async def debate(self, tenant: str) -> AsyncIterator[None]:
        """Let a tenant have one more debate, which the block makes; one that fails has made none.

        Raises:
            ParleyError: RESOURCE_EXHAUSTED `TENANT_DEBATES`, `TENANT_WAITING`, `TENANT_TOKENS`, `TENANT_COST` or `TENANT_BYTES`.
        """
        limits, used = self.limits, await self.use.used(tenant)
        day_ends = _DAY - int(self.clock.now().timestamp()) % _DAY
        for name, is_over, what, after in (
            ("TENANT_TOKENS", _over(used.tokens, limits.tokens), "tokens of today are used up", day_ends),
            (
                "TENANT_COST",
                _over(used.cost_micros, limits.cost_micros),
                "money of today is used up",
                day_ends,
            ),
            (
                "TENANT_BYTES",
                _over(used.stored_bytes, limits.stored_bytes),
                "room is full; delete debates",
                _DAY,
            ),
        ):
            if is_over:
                raise _refusal(name, tenant, f"its {what}", after)
        if not (limits.debates or limits.waiting):
            yield
            return
        debates = await self._looked(tenant)
        if _over(debates.running + debates.made + self._making[tenant], limits.debates):
            what = f"{limits.debates} debates of it run or are to be run, which is its limit"
            raise _refusal("TENANT_DEBATES", tenant, what, _SOON)
        if _over(debates.waiting, limits.waiting):
            what = f"{limits.waiting} debates of it wait for a person or a provider, which is its limit"
            raise _refusal("TENANT_WAITING", tenant, what, _MINUTE)
        self._making[tenant] += 1
        try:
            yield
            if (known := self._debates.get(tenant)) is not None:
                known.made += 1
        finally:
            self._making[tenant] -= 1
            if not self._making[tenant]:
                del self._making[tenant]

    async def _looked(self, tenant: str) -> _Debates:
        now = self.clock.monotonic()
        known = self._debates.get(tenant)
        if known is None or now >= known.looked_at + _LOOK_SECONDS:
            for each in [name for name, old in self._debates.items() if now >= old.looked_at + _MINUTE]:
                del self._debates[each]
            running = await self.index.count(tenant, (PENDING, RUNNING), self.limits.debates)
            waiting = await self.index.count(tenant, (WAITING,), self.limits.waiting)
            known = self._debates[tenant] = _Debates(running, waiting, now)
        return known

    async def _check_requests(self, tenant: str) -> None:
        used = await self.use.used(tenant)
        if _over(used.requests, self.limits.requests):
            await self._let_wait(tenant)
            left = _MINUTE - int(self.clock.now().timestamp()) % _MINUTE
            what = f"it has made its {self.limits.requests} requests of this minute"
            raise _refusal("TENANT_REQUESTS", tenant, what, left)

    async def _let_wait(self, tenant: str) -> None:
        if self._late[tenant] >= _LATE_AT_ONCE:
            return
        self._late[tenant] += 1
        try:
            await self.clock.sleep(_LATE_SECONDS)
        finally:
            self._late[tenant] -= 1
            if not self._late[tenant]:
                del self._late[tenant]

    async def _check_watches(self, tenant: str) -> None:
        if self.limits.watches and _over(await self.use.watches(tenant), self.limits.watches):
            what = f"it has {self.limits.watches} streams open, which is its limit"
            raise _refusal("TENANT_WATCHES", tenant, what, _SOON)


def _over(used: int, limit: int) -> bool:
    return bool(limit) and used >= limit


def _refusal(reason: str, tenant: str, what: str, after: float) -> ParleyError:
    message = f"tenant {tenant}: {what}; try again in {after:.0f} s"
    return resource_exhausted(reason, message, retry_after=float(after))
