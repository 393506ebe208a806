"""Any sequence of calls does to a log what it does to a list."""

from dataclasses import dataclass, field
from itertools import count

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.storage.opening import Store
from parley.storage.ports import AppendConflictError, AppendGapError, Log, Record, StorageError
from tests.contract.conftest import rarely_on_a_replica_set

_NAMES = (f"log {number}" for number in count())


@dataclass(frozen=True)
class Append:
    offset: int  # from the end of the log
    entries: tuple[bytes, ...]
    append_id: str


@dataclass(frozen=True)
class Read:
    after: int
    limit: int


@dataclass(frozen=True)
class Delete:
    pass


@dataclass
class Model:
    records: list[Record] = field(default_factory=list)

    @property
    def last(self) -> int:
        return self.records[-1].last if self.records else 0

    def append(self, record: Record) -> type[Exception] | None:
        if record.first == self.last + 1:
            self.records.append(record)
        elif record.first > self.last:
            return AppendGapError
        elif (record.first, record.append_id) not in [(one.first, one.append_id) for one in self.records]:
            return AppendConflictError
        return None

    def read(self, after: int, limit: int) -> list[Record]:
        return [one for one in self.records if one.last > after][:limit]


call = st.one_of(
    st.builds(
        Append,
        offset=st.sampled_from([1, 1, 1, 1, 0, -1, -2, 2]),
        entries=st.lists(st.binary(max_size=5), min_size=1, max_size=3).map(tuple),
        append_id=st.sampled_from(["a", "b"]),
    ),
    st.builds(Read, after=st.integers(0, 10), limit=st.integers(1, 4)),
    st.builds(Delete),
)


async def apply(log: Log, name: str, model: Model, call: Append | Read | Delete) -> None:
    match call:
        case Append(offset, entries, append_id):
            record = Record(max(1, model.last + offset), append_id, entries)
            expected = model.append(record)
            seen: type[Exception] | None = None
            try:
                await log.append(name, record)
            except StorageError as error:
                seen = type(error)
            assert seen == expected
        case Read(after, limit):
            assert await log.read(name, after, limit) == model.read(after, limit)
        case Delete():
            await log.delete(name)
            model.records.clear()


@rarely_on_a_replica_set
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=st.lists(call, max_size=12))
async def test_a_log_behaves_like_a_list(store: Store, calls: list[Append | Read | Delete]) -> None:
    name, model = next(_NAMES), Model()
    for one in calls:
        await apply(store.log, name, model, one)
    assert await store.log.read(name) == model.records
