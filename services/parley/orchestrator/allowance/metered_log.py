"""A log that counts for its tenant what is appended: bytes, and what the calls that are recorded took."""

from collections.abc import AsyncGenerator, Iterable, Sequence

from parley.orchestrator.allowance.use import TenantUsage
from parley.orchestrator.log.usage import usage_of
from parley.storage.ports import Log, Record
from parley.v1.agent_pb2 import Usage
from parley.v1.event_pb2 import Event

__all__ = ["MeteredLog"]

_PAGE = 100


class MeteredLog:
    """Another log, counted."""

    def __init__(self, log: Log, use: TenantUsage) -> None:
        """Count in `use` what is appended to `log`."""
        self._log = log
        self._usage = use

    async def append(self, log: str, record: Record) -> None:
        """Append, and count it once it is durable; as with `Log`."""
        await self._log.append(log, record)
        tokens = cost = 0
        for entry in record.entries:
            for usage in _usages_of(Event.FromString(entry)):
                tokens += usage.input_tokens + usage.output_tokens
                cost += usage.cost_micros
        await self._usage.count(
            _tenant(log), tokens=tokens, cost_micros=cost, stored_bytes=sum(map(len, record.entries))
        )

    async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        """Read; as with `Log`."""
        return await self._log.read(log, after, limit)

    def follow(self, log: str, after: int = 0) -> AsyncGenerator[Record, None]:
        """Follow; as with `Log`."""
        return self._log.follow(log, after)

    async def delete(self, log: str) -> None:
        """Delete, and count what is freed; as with `Log`."""
        freed = await self._measure_size(log)
        await self._log.delete(log)
        if freed:
            await self._usage.count(_tenant(log), stored_bytes=-freed)

    async def _measure_size(self, log: str) -> int:
        size = after = 0
        while records := await self._log.read(log, after, _PAGE):
            size += sum(len(entry) for each in records for entry in each.entries)
            after = records[-1].last
        return size


def _usages_of(event: Event) -> Iterable[Usage]:
    """Return what the calls used that an event records: those of a step, or those that were stopped before they ended."""
    match event.WhichOneof("payload"):
        case "step_succeeded" | "step_failed" as kind:
            return (usage_of(getattr(event, kind)),)
        case "paused" | "closed" as kind:
            return (each.usage for each in getattr(event, kind).stopped)
        case _:
            return ()


def _tenant(log: str) -> str:
    return log.partition("/")[0]
