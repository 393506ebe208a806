"""What a look for debates to claim costs a replica, by how many debates are open, owned and well, and by how many replicas."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from msgspec.structs import asdict

from parley.orchestrator.engine.inbox import INBOX, Inbox
from parley.orchestrator.engine.owner import OwnerDependencies
from parley.orchestrator.engine.runner import Runner, RunnerSettings
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log.debate_record import RUNNING, DebateRecord
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.orchestrator.model.times import time_text
from parley.runtime.clock import SystemClock
from parley.storage.opening import open_store
from parley.storage.ports import Documents
from tests.bench.figures import aim, main, show_middle, table
from tests.support.counting_documents import CountingDocuments
from tests.support.debate_records import create_record

_REPLICAS: Final = (1, 3, 10)
_DEBATES: Final = (0, 1000, 10_000)
_TENANTS: Final = 20
_LEASE_SECONDS: Final = 3600.0
"""Nobody beats for these debates, which are to stay well while they are looked at."""
_POLL_SECONDS: Final = 1.0
_AT_ONCE: Final = 500
_FULL_LOOKS: Final = 5


async def run(quick: bool) -> None:
    """Look at a store again and again, as one of so many replicas. Times are CPU time of this process, the store's thread too."""
    looks = 20 if quick else 100
    rows, read_most = [], 0
    for replicas in _REPLICAS:
        for debates in _DEBATES:
            async with _store(debates, replicas) as documents:
                every = await _look(documents, _FULL_LOOKS, exclusive=True)
                well = await _look(documents, looks, exclusive=False)
            middles = sorted(well[1])[looks // 2]
            read_most = max(read_most, well[0])
            share = 100 * middles / 1000 / _POLL_SECONDS
            read = (f"{well[0] / looks:.0f}", f"{every[0] / _FULL_LOOKS:.0f}")
            rows.append(
                [
                    str(replicas),
                    str(debates),
                    *read,
                    show_middle(well[1], 2),
                    show_middle(every[1], 2),
                    f"{share:.2f}",
                ]
            )
    head = [
        "replicas",
        "open debates, owned and well",
        "records read a look",
        "by one that has the store alone",
    ]
    table([*head, "ms of CPU a look", "by one that has it alone (ms)", "% of a core, a look a second"], rows)
    print(
        f"\nrecords of debates that are owned and well, read in all looks: {read_most}, {aim(read_most, 0)}"
    )


@asynccontextmanager
async def _store(debates: int, replicas: int) -> AsyncIterator[Documents]:
    """Yield a store in which so many debates run, each owned by one of the replicas."""
    now = datetime.now(UTC)
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(f"sqlite:///{folder}", "orchestrator") as store:
            await store.documents.prepare(DEBATES, INBOX)
            records = [_record(number, f"replica-{number % replicas}", now) for number in range(debates)]
            for start in range(0, debates, _AT_ONCE):  # one commit takes many
                await asyncio.gather(
                    *(
                        store.documents.insert(DEBATES, record.key, asdict(record))
                        for record in records[start : start + _AT_ONCE]
                    )
                )
            yield store.documents


def _record(number: int, owner: str, now: datetime) -> DebateRecord:
    return create_record(
        f"tenant-{number % _TENANTS}",
        f"deb-20300101-000000-{number:08d}",
        now - timedelta(seconds=number),
        RUNNING,
        owner=owner,
        epoch=1,
        heartbeat=3,
        question="Q" * 200,
        alive=time_text(now),
    )


async def _look(documents: Documents, looks: int, *, exclusive: bool) -> tuple[int, list[float]]:
    """Look so many times as a replica that owns none of them; return the records read and the milliseconds of CPU of each look."""
    counting = CountingDocuments(documents)
    nothing = cast("Any", None)  # a look at debates that are well uses none of these
    dependencies = OwnerDependencies(
        log=nothing,
        index=DebateIndex(cast("Documents", counting)),
        inbox=Inbox(cast("Documents", counting)),
        agents=nothing,
        services=nothing,
        formats=all_formats(),
        follow_up=nothing,
        follow_up_limits=nothing,
        clock=SystemClock(),
        publish=nothing,
        end_publishing=nothing,
        owner="looking",
        lease_heartbeat_seconds=_LEASE_SECONDS / 3,
    )
    settings = RunnerSettings(_LEASE_SECONDS, _POLL_SECONDS, max_debates=64, exclusive=exclusive, adopt=False)
    runner = Runner(dependencies, settings)
    times = []
    for _ in range(looks):
        began = time.process_time()
        await runner._scan()
        times.append((time.process_time() - began) * 1000)
    return counting.read, times


if __name__ == "__main__":
    main(__doc__, run)
