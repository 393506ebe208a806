"""A log in memory, shared by replicas in one process, that counts how often it is read."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any

from parley.orchestrator.log.envelope import GENESIS, Envelope, create_event, seal
from parley.orchestrator.log.events import Payload
from parley.runtime.clock import SystemClock
from parley.storage.ports import Record, StorageError
from parley.storage.tails import Tails
from parley.v1.event_pb2 import Event


class SharedRecords:
    """What is stored. `broken` is raised by every read while it is set."""

    def __init__(self) -> None:
        self.records: dict[str, list[Record]] = {}
        self.broken: StorageError | None = None


class MemoryLog:
    """One replica's way to the records. It hears of its own appends at once and of others' when it polls.

    Attributes:
        reads: How often records were read.
    """

    def __init__(self, shared: SharedRecords | None = None, poll_interval: float = 0.01) -> None:
        self.shared = shared or SharedRecords()
        self.reads = 0
        self._tails = Tails(self._read_news, poll_interval)

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        assert not any(beside.values()), "it has no documents"
        records = self.shared.records.setdefault(log, [])
        assert record.first == (records[-1].last + 1 if records else 1)
        records.append(record)
        self._tails.offer(log, record, is_own=True)

    async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        self.reads += 1
        if self.shared.broken is not None:
            raise self.shared.broken
        return [record for record in self.shared.records.get(log, ()) if record.last > after][:limit]

    async def _read_news(self, positions: Mapping[str, int]) -> Mapping[str, Sequence[Record]]:
        return {log: await self.read(log, after) for log, after in positions.items()}

    def follow(self, log: str, after: int = 0) -> AsyncGenerator[Record, None]:
        return self._tails.follow(log, after)

    async def delete(self, log: str) -> None:
        self.shared.records.pop(log, None)


class WrittenLog:
    """The log of one debate as a test writes it.

    Attributes:
        events: All that was written.
    """

    def __init__(self, log: MemoryLog, tenant: str, debate: str) -> None:
        self.events: list[Envelope] = []
        self._log = log
        self._tenant = tenant
        self.debate = debate

    async def write(self, *payloads: Event | Payload, epoch: int = 1) -> None:
        """Append events as one record."""
        entries = list(self._sealed(payloads, epoch))
        record = Record(self.events[-len(entries)].sequence, str(len(self.events)), tuple(entries))
        await self._log.append(f"{self._tenant}/{self.debate}", record)

    def _sealed(self, payloads: Sequence[Event | Payload], epoch: int) -> Iterable[bytes]:
        for payload in payloads:
            sequence = len(self.events) + 1
            envelope = seal(
                to_event(payload, f"key/{sequence}"),
                tenant=self._tenant,
                debate=self.debate,
                sequence=sequence,
                epoch=epoch,
                time=SystemClock().now(),
                before=self.events[-1].hash if self.events else GENESIS,
            )
            self.events.append(envelope)
            yield envelope.entry


def to_event(given: Event | Payload, key: str = "") -> Event:
    """Return an event to seal: of a payload, under this key, or a copy of an event, which may stand in other logs too."""
    if not isinstance(given, Event):
        return create_event(key, given)
    copy = Event()
    copy.CopyFrom(given)
    return copy
